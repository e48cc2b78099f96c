"""How the recurrent models read a frame."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, Shaped

from fivo.errors import InputError
from fivo.models._emissions import Emission
from fivo.models._layers import MLP


class DataEncoder(eqx.Module):
    """φ_x: a network of the centred frame and, with `gaps`, of which entries were missing.

    Args:
        output: the emission that says what is read of a frame.
        hidden: units of the network, and entries of what it returns.
        gaps: whether it reads which entries were missing.
        key: a random key for the initial weights.
    """

    network: MLP
    num_features: int = eqx.field(static=True)
    num_flags: int = eqx.field(static=True)

    def __init__(self, output: Emission, hidden: int, *, gaps: bool, key: Key[Array, ""]) -> None:
        self.num_features, self.num_flags = output.num_features, output.dim if gaps else 0
        read = (self.num_features, self.num_flags) if gaps else (self.num_features,)
        self.network = MLP(read, hidden, hidden, key=key)

    def __call__(
        self, output: Emission, x: Shaped[Array, "*time dim"], mask: Bool[Array, "*time dim"] | None
    ) -> Float[Array, "*time hidden"]:
        """φ_x of frames."""
        features = output.features(x, mask)
        if not self.num_flags:
            return self.network(features)
        missing = jnp.zeros(x.shape, features.dtype) if mask is None else (~mask).astype(features.dtype)
        return self.network(features, missing)

    def silence(self) -> Float[Array, " hidden"]:
        """φ_x of the frame before the first, which is zero after centring, and of which nothing is missing."""
        dtype = self.network.output.bias.dtype
        flags = (jnp.zeros(self.num_flags, dtype),) if self.num_flags else ()
        return self.network(jnp.zeros(self.num_features, dtype), *flags)


def check_sizes(hidden: int, num_inputs: int) -> None:
    """Refuse networks without units and inputs of negative width."""
    if not isinstance(hidden, int) or hidden < 1:
        raise InputError(f"hidden must be a positive integer, got {hidden!r}.")
    if not isinstance(num_inputs, int) or num_inputs < 0:
        raise InputError(f"num_inputs must be an integer of at least 0, got {num_inputs!r}.")
