"""A filter of rows as functions of plain named arrays: what streams compile and exports write."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped, UInt32

from fivo.inference.rowfilters import RowFilter

State = dict[str, Array]
"""The state of one series by the names of its arrays; random keys are two words each."""


class PlainRows:
    """`begin` and `step` of a `RowFilter` with plain arrays in and out.

    Args:
        rows: The filter.
    """

    def __init__(self, rows: RowFilter) -> None:
        self.rows = rows
        like = jax.eval_shape(rows.begin, jax.random.key(0))
        named, self._tree = jax.tree_util.tree_flatten_with_path(like)
        self._names = [jax.tree_util.keystr(path).lstrip(".") for path, _ in named]
        self._keys = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for _, leaf in named]

    def begin(self, key: UInt32[Array, "2"]) -> State:
        """The state before the first row.

        Args:
            key: The two words of a random key: `jax.random.key_data(jax.random.key(seed))`.
        """
        return self._taken_apart(self.rows.begin(jax.random.wrap_key_data(key)))

    def step(
        self,
        state: State,
        x: Shaped[Array, " dim"],
        mask: Bool[Array, " dim"],
        inputs: Float[Array, " input"] | None = None,
    ) -> tuple[State, dict[str, Array]]:
        """Take in one row, as `RowFilter.step` does.

        Returns:
            The state for the next row, and what the filter says of this one, by its names in `Rows`.
        """
        following, made = self.rows.step(self._put_together(state), x, mask, inputs)
        return self._taken_apart(following), made._asdict()

    def _taken_apart(self, state: Any) -> State:
        leaves = [
            jax.random.key_data(leaf) if is_key else leaf
            for leaf, is_key in zip(jax.tree.leaves(state), self._keys, strict=True)
        ]
        return dict(zip(self._names, leaves, strict=True))

    def _put_together(self, state: State) -> Any:
        leaves = [
            jax.random.wrap_key_data(state[name]) if is_key else state[name]
            for name, is_key in zip(self._names, self._keys, strict=True)
        ]
        return jax.tree.unflatten(self._tree, leaves)
