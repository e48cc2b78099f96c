"""The particle filter: Algorithm 1 of the paper as one scan over time, over a padded batch or one frame at a time."""

from collections.abc import Collection
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, Key, Shaped

from fivo._fuse import scan, straight
from fivo.batch import Batch, as_batch
from fivo.devices.mesh import checked_mesh
from fivo.errors import InputError
from fivo.models import SequenceModel, has_twist, inspect_step, over_time, read_batch
from fivo.resampling import (
    SMALL,
    Always,
    AnyScheme,
    Criterion,
    DifferentiableScheme,
    ESSBelow,
    Never,
    check_criterion,
    checked_scheme,
    get_scheme,
)
from fivo.smc import _stream
from fivo.smc._importance import MAX_WEIGHTS, weigh_trajectories, without_state
from fivo.smc._over_devices import run_over_devices
from fivo.smc._result import FilterResult, Record, checked_records, without
from fivo.smc._rules import EVERY_PATH, Rules
from fivo.smc._step import Particles, StepInfo, StepInputs, initial_particles, propose, resample, weigh


class ParticleFilter(eqx.Module):
    """A particle filter (Algorithm 1 of the paper): how many particles, how they are resampled, and when.

    Args:
        num_particles: N.
        resampling: how ancestors are drawn: the name of a scheme ("multinomial", "stratified", "systematic",
            "residual", "soft", "relaxed", "transport"), a scheme of `fivo.resampling`, or a function of your own
            (key, log_weights, num_draws) -> ancestors.
        criterion: when to resample, such as `ESSBelow(0.5)`, `Always()`, `Never()` or `Every(10)`.
        twisted: weigh particles by the model's twist too, so that its targets p(z_1:t, x_1:t) r_t(z_t) look ahead; the
            estimate of p(x) stays unbiased whatever the twist. Its increments then say nothing of single frames.
        mesh: devices that share out the particles, such as `fivo.devices.data_mesh()`, for more particles than one
            device holds; sequences are then filtered one after the other.
        exchange: how particles on several devices are resampled. "exact" draws all by all weights, with the ancestors
            that one device would draw. "islands" resamples the particles of each device among themselves, by the
            criterion, and whole devices where their weights differ: another unbiased estimate of p(x), for which
            weights are never collected and particles seldom move.

    Call it with a model and sequences, or stream: `state = pf.init(model, key=key)`, then for every frame
    `state, info = pf.step(model, state, x)`, and `pf.finish(state)`.
    """

    num_particles: int = eqx.field(static=True)
    resampling: str | AnyScheme = eqx.field(static=True, default="multinomial")
    criterion: Criterion = ESSBelow(0.5)
    twisted: bool = eqx.field(static=True, default=False)
    mesh: Mesh | None = eqx.field(static=True, default=None, converter=checked_mesh)
    exchange: Literal["exact", "islands"] = eqx.field(static=True, default="exact")

    def __check_init__(self) -> None:
        check_particles(self.num_particles)
        if self.exchange not in ("exact", "islands"):
            raise InputError(f'exchange must be "exact" or "islands", got {self.exchange!r:.60}.')
        if self.mesh is not None and self.num_particles % self.mesh.size:
            raise InputError(
                f"num_particles must be a multiple of the {self.mesh.size} devices that share them, got "
                f"{self.num_particles}."
            )
        if self.mesh is not None and self.twisted:
            raise InputError("a twisted filter must have its particles on one device; leave `mesh` out.")
        if self.mesh is not None and isinstance(get_scheme(self.resampling), DifferentiableScheme):
            raise InputError(
                f"resampling over devices must be by ancestors, such as 'systematic', got {self.resampling!r:.60}."
            )
        checked_scheme(self.resampling, self.num_particles)
        check_criterion(self.criterion, self.num_particles)

    @property
    def scheme(self) -> AnyScheme:
        """The resampling scheme itself."""
        return get_scheme(self.resampling)

    @property
    def resamples(self) -> bool:
        """Whether particles are ever exchanged."""
        return not isinstance(self.criterion, Never)

    def __call__(
        self,
        model: SequenceModel,
        batch: Any,
        *,
        key: Key[Array, "*batch"],
        keep: Collection[Record] = (),
        rules: Rules = EVERY_PATH,
    ) -> FilterResult:
        """Filter every sequence of a batch.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.
            keep: which per-particle records to return: "log_weights", "ancestors", "latents".
            rules: what derivatives follow; bounds choose it by their gradient.

        Returns:
            The estimates of every step and sequence. Given its key, the estimate of a sequence depends neither on
            padding nor on the rest of the batch.
        """
        records, batch = checked_records(keep), as_batch(batch)
        return self._filter(model, batch, straight(sequence_keys(key, batch.lengths.shape[0])), records, rules)

    def _filter(
        self, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"], records: frozenset[str], rules: Rules
    ) -> FilterResult:
        if self.mesh is not None:
            if rules is not EVERY_PATH:
                raise InputError("particles over devices must be run with the pathwise gradient, got another.")
            return run_over_devices(self, model, batch, keys, records)
        return _run(self, model, batch, keys, records, rules)

    def init(self, model: SequenceModel, *, key: Key[Array, ""]) -> "_stream.FilterState":
        """Start a stream.

        Args:
            model: a model whose proposal reads no future frames.
            key: a random key, for the whole stream.

        Returns:
            The state before the first frame.
        """
        if self.mesh is not None:
            raise InputError("a stream must have its particles on one device; leave `mesh` out.")
        return _stream.init(self, model, key)

    def step(
        self,
        model: SequenceModel,
        state: "_stream.FilterState",
        x: Shaped[Array, " dim"],
        *,
        mask: Bool[Array, " dim"] | None = None,
        inputs: Float[Array, " input"] | None = None,
    ) -> tuple["_stream.FilterState", StepInfo]:
        """Take in one frame; the numbers are those of the filter on the whole sequence with the same key.

        Args:
            model: the model.
            state: from `init` or the last `step`; `fivo.save` and `fivo.load` store it.
            x: the frame [dim].
            mask: true where an entry was observed; None where all were.
            inputs: u_t [input], for models that read inputs.

        Returns:
            The state for the next frame, and what happened in this step.
        """
        return _stream.step(self, model, state, x, mask, inputs)

    def finish(self, state: "_stream.FilterState") -> "_stream.StreamResult":
        """End a stream.

        Args:
            state: from the last `step`.

        Returns:
            The evidence estimate and the final particles.
        """
        return _stream.finish(state)


def check_filter(pf: object) -> None:
    """Refuse anything that is not a filter, such as a model given in its place.

    Args:
        pf: what was given for a filter.
    """
    if not isinstance(pf, ParticleFilter):
        raise InputError(f"the filter must be a ParticleFilter, got {type(pf).__name__}.")
    if type(pf) is not ParticleFilter:
        raise InputError(f"the filter must be a plain ParticleFilter here, got a {type(pf).__name__}.")


def check_twist(pf: ParticleFilter, model: SequenceModel) -> None:
    """Refuse to twist with a model that does not say how.

    Args:
        pf: the filter.
        model: the model.
    """
    if pf.twisted and not has_twist(model):
        raise InputError(
            f"{type(model).__name__} must define lookahead(sequence) and twist(state, latent, future) to be filtered "
            "with a twist; wrap it as fivo.models.Twisted(model, twist)."
        )


def check_particles(num_particles: int, name: str = "num_particles") -> None:
    """Refuse anything but a positive whole number.

    Args:
        num_particles: N.
        name: what the message calls it.
    """
    if not isinstance(num_particles, int) or isinstance(num_particles, bool) or num_particles < 1:
        raise InputError(f"{name} must be a positive integer, got {num_particles!r:.60}.")


def sequence_keys(key: Key[Array, "*batch"], num_sequences: Any) -> Key[Array, " sequence"]:
    """One key per sequence, from one key or from as many.

    Args:
        key: one random key, or one for each sequence.
        num_sequences: how many sequences there are; a symbol in exports.

    Returns:
        The keys [sequence].
    """
    kind = getattr(key, "dtype", None)
    if kind == jnp.uint32:
        key = jax.random.wrap_key_data(key)
    elif kind is None or not jnp.issubdtype(kind, jax.dtypes.prng_key):
        raise InputError(f"key must be a random key, such as jax.random.key(0), got {key!r:.60}.")
    if key.ndim == 0:
        return jax.random.split(key, num_sequences)
    if key.shape != (num_sequences,):
        raise InputError(
            f"key must be one key or {num_sequences} keys (one per sequence), got keys of shape {key.shape}."
        )
    return key


@eqx.filter_jit
def _run(
    pf: ParticleFilter,
    model: SequenceModel,
    batch: Batch,
    keys: Key[Array, " batch"],
    keep: frozenset[str],
    rules: Rules,
) -> FilterResult:
    check_twist(pf, model)
    reading = read_batch(model, batch, time_first=True, twisted=pf.twisted)
    frames, num_steps = reading.frames, batch.observations.shape[1]
    kinds = inspect_step(model, frames._replace(ahead=None), num_axes=2)
    first_context = jax.tree.map(lambda leaf: leaf[0], frames.context)
    start = jax.vmap(
        lambda context: initial_particles(model, context, pf.num_particles, rules, twisted=pf.twisted),
        axis_size=batch.lengths.shape[0],  # for models without a context
    )(first_context)
    steps = jnp.arange(num_steps, dtype=jnp.int32)
    active = steps[:, None] < batch.lengths[None, :]
    inputs = StepInputs(
        step=steps,
        key=jax.vmap(lambda t: jax.vmap(lambda k: jax.random.fold_in(k, t))(keys))(steps),
        active=active,
        frame=frames,
        weights=None if rules.weights is None else jnp.swapaxes(rules.weights, 0, 1),
    )
    axes = StepInputs(None, 0, 0, 0, 0)  # pyright: ignore[reportArgumentType]

    def propose_all(state: Any, now: StepInputs, first: bool) -> Any:
        one = lambda h, i: propose(model, h, pf.num_particles, i, first, rules)  # noqa: E731
        return jax.vmap(one, in_axes=(0, axes))(state, now)

    def step(particles: Particles, now: StepInputs, first: bool) -> tuple[Particles, StepInfo]:
        made = propose_all(particles.state, now, first)
        particles, info = jax.vmap(lambda p, m, i: weigh(pf.criterion, p, m, i), in_axes=(0, 0, axes))(
            particles, made, now
        )
        particles, ancestors = _resample_batch(pf, now.key, info, particles, rules)
        return particles, without(eqx.tree_at(lambda i: i.ancestors, info, ancestors), keep)

    never = not pf.resamples or pf.num_particles == 1  # one particle is its own only ancestor
    if never and active.size * pf.num_particles <= MAX_WEIGHTS:
        move = lambda state, now, first: without_state(propose_all(state, now, first))  # noqa: E731
        state, made = over_time(model, move, start.state, inputs, scan)
        info = weigh_trajectories(pf.criterion, start.log_weights, made, active)
        particles, info = Particles(state, info.log_weights[-1]), without(info, keep)
    else:
        particles, info = over_time(model, step, start, inputs, scan)
    info = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), info)
    return FilterResult.of(particles, info, discrete=kinds.discrete)


def _resample_batch(
    pf: ParticleFilter, keys: Key[Array, " batch"], info: StepInfo, particles: Particles, rules: Rules
) -> tuple[Particles, Int[Array, "batch particle"]]:
    """Resample the sequences that are due; steps where none is skip the work where it is worth skipping."""
    scheme = rules.scheme(pf.scheme)

    def resample_due(particles: Particles) -> tuple[Particles, Int[Array, "batch particle"]]:
        return jax.vmap(lambda k, due, p: resample(scheme, k, due, p, rules))(keys, info.resampled, particles)

    if isinstance(pf.criterion, Always) or pf.num_particles <= SMALL:
        return resample_due(particles)
    return lax.cond(jnp.any(info.resampled), resample_due, lambda particles: (particles, info.ancestors), particles)
