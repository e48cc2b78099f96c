"""Training programs that equal runs share: in tiny runs, tracing them again is most of the work."""

from collections.abc import Callable, Hashable
from functools import cache
from typing import Any

import equinox as eqx
import jax
import numpy as np
import optax

from fivo._fuse import enabled
from fivo._scoring import compiler_options
from fivo.settings import Adam
from fivo.training import Trainer, adam
from fivo.training.groups import trainable
from fivo.training.optimizer import Optimizer

OWNERS: dict[Hashable, Trainer] = {}
"""A trainer of each kind, which never trains, with the programs of all others of its kind."""


class SharingTrainer(Trainer):
    """A trainer with the programs of its kind.

    What the programs depend on is in the kind, or an argument of theirs. Of runs that go on in another process, other
    tests see to it that they end in the same bits.
    """

    def __init__(self, *arguments: Any, compiling: Callable[[], None] = lambda: None, **options: Any) -> None:
        super().__init__(*arguments, compiling=compiling, **options)
        self.shares = False
        if self.mesh is not None or self.updates:
            return
        try:
            kind = self._kind()
            if kind not in OWNERS:
                OWNERS[kind] = Trainer(*arguments, **options)
        except TypeError:  # something that does not hash
            return
        owner, self.shares = OWNERS[kind], True
        self._whole_step, self._accumulate, self._update = owner._whole_step, owner._accumulate, owner._update

    def _take(self, *arguments: Any) -> Any:
        outcome = super()._take(*arguments)
        if self.shares:
            self.compilations = len(self._shapes)  # as it would have been alone
        return outcome

    def _kind(self) -> Hashable:
        leaves, structure = jax.tree.flatten(trainable(self.template))
        options = compiler_options()
        return (
            structure,
            tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves),
            _content(eqx.filter(self.template, eqx.is_inexact_array, inverse=True)),
            _content(self.bound),
            self.optimizer.rule,
            self.average_decay,
            enabled(),
            None if options is None else tuple(options.items()),
        )


def _content(tree: Any) -> Hashable:
    """Structure and leaves, arrays by their bytes."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(
        (str(leaf.dtype), leaf.shape, np.asarray(leaf).tobytes()) if hasattr(leaf, "dtype") else leaf for leaf in leaves
    )


def adam_of_one_rule(settings: Adam, steps: int) -> Optimizer:
    """The rule depends on neither rates nor steps."""
    return adam(settings, steps)._replace(rule=_rule(settings.clip, settings.weight_decay))


@cache
def _rule(clip: float, weight_decay: float) -> optax.GradientTransformationExtraArgs:
    return adam(Adam(clip=clip, weight_decay=weight_decay), 1).rule
