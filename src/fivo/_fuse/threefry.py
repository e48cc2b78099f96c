"""JAX's default random numbers, bit for bit, computed without a loop, and particle keys that cost nothing.

On a CPU JAX runs the twenty rounds of Threefry-2x32 (Salmon et al. 2011) as a loop over whole arrays in memory;
written out they fuse into one pass. Keys are JAX's own keys under another name, so nothing else changes.

The keys of N particles are one key and N numbers: where `split` would hash once for each key and again for each number
drawn, the particle's number is one half of what is hashed and a counter the other, and both words of a hash are used.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.random import define_prng_impl, threefry_2x32
from jaxtyping import Array, ArrayLike, Int, Key, UInt32

from fivo._fuse.settings import enabled

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def hash_pair(key: UInt32[Array, "2"], high: UInt32[Array, "*n"], low: UInt32[Array, "*n"]) -> tuple[Array, Array]:
    """Threefry-2x32 with twenty rounds of a pair of words, by JAX's own function where programs stay plain."""
    if not enabled():
        words = threefry_2x32(key, jnp.concatenate([jnp.ravel(high), jnp.ravel(low)]))
        return words[: high.size].reshape(high.shape), words[high.size :].reshape(high.shape)
    subkeys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(_PARITY))
    x, y = high + subkeys[0], low + subkeys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x = x + y
            y = x ^ ((y << jnp.uint32(rotation)) | (y >> jnp.uint32(32 - rotation)))
        x = x + subkeys[(group + 1) % 3]
        y = y + subkeys[(group + 2) % 3] + jnp.uint32(group + 1)
    return x, y


def _counters(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The high and low words of 0, 1, 2, …"""
    size = math.prod(shape)
    if size >= 2**32:
        raise NotImplementedError("more than 2³² draws at once")
    return jnp.zeros(shape, jnp.uint32), lax.iota(jnp.uint32, size).reshape(shape)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    # The barrier keeps keys from being computed again for each number drawn from them.
    return lax.optimization_barrier(jnp.stack(hash_pair(key, *_counters(shape)), axis=-1))


def _fold_in(key: Array, data: ArrayLike) -> Array:
    data = jnp.asarray(data)
    return jnp.stack(hash_pair(key, jnp.zeros_like(data), data), axis=-1)


def _random_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    x, y = hash_pair(key, *_counters(shape))
    if bit_width == 64:
        return (x.astype(jnp.uint64) << jnp.uint64(32)) | y.astype(jnp.uint64)
    return (x ^ y).astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[bit_width])


def _seed(seed: Array) -> Array:
    return jax.random.key_data(jax.random.key(seed, impl="threefry2x32"))


STRAIGHT = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="fivo_threefry2x32",
    tag="fivo",
)


def straight(keys: Key[Array, "*n"]) -> Key[Array, "*n"]:
    """The same keys, drawn from in a straight line; keys of another generator stay as they are."""
    if not enabled() or not _is_jax_threefry(keys):
        return keys
    return jax.random.wrap_key_data(jax.random.key_data(keys), impl=STRAIGHT)


def _is_jax_threefry(keys: Key[Array, "*n"]) -> bool:
    return str(jax.random.key_impl(keys)) == "threefry2x32" and jax.config.values["jax_threefry_partitionable"]


def particle_keys(
    key: Key[Array, ""], num_particles: int, first: Int[Array, ""] | None = None, total: int = 0
) -> Key[Array, " {num_particles}"]:
    """A key for each particle; with `first`, for some of a `total` of them that begin with that one."""
    if jax.random.key_impl(key) != STRAIGHT and not _is_jax_threefry(key):
        if first is not None:
            return lax.dynamic_slice(jax.random.split(key, total), (first,), (num_particles,))
        return jax.random.split(key, num_particles)
    words = jnp.broadcast_to(jax.random.key_data(key), (num_particles, 2))
    numbers = lax.iota(jnp.uint32, num_particles)[:, None]
    if first is not None:
        numbers = numbers + first.astype(jnp.uint32)
    return jax.random.wrap_key_data(jnp.concatenate([words, numbers], axis=1), impl=PARTICLE)


def _particle_hash(key: Array, counters: Array) -> tuple[Array, Array]:
    return hash_pair(key[:2], jnp.broadcast_to(key[2], counters.shape), counters)


def _particle_bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    size = math.prod(shape)
    if size >= 2**31:
        raise NotImplementedError("more than 2³¹ draws at once")
    if bit_width == 64:
        x, y = _particle_hash(key, lax.iota(jnp.uint32, size))
        return ((x.astype(jnp.uint64) << jnp.uint64(32)) | y.astype(jnp.uint64)).reshape(shape)
    x, y = _particle_hash(key, lax.iota(jnp.uint32, -(-size // 2)))
    words = jnp.concatenate([x, y])[:size] if size > 1 else x
    return words.reshape(shape).astype({8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}[bit_width])


def _particle_split(key: Array, shape: tuple[int, ...]) -> Array:
    # The upper half of the counters is for keys, so that none shares its hash with a number drawn.
    x, y = _particle_hash(key, jnp.uint32(2**31) + _counters(shape)[1])
    return lax.optimization_barrier(jnp.stack([x, y, jnp.zeros_like(x)], axis=-1))


def _particle_fold_in(key: Array, data: ArrayLike) -> Array:
    own = jnp.stack(_particle_hash(key, jnp.full((), 2**32 - 1, jnp.uint32)), axis=-1)
    return jnp.concatenate([_fold_in(own, data), jnp.zeros((1,), jnp.uint32)])


def _particle_seed(seed: Array) -> Array:
    return jnp.concatenate([_seed(seed), jnp.zeros((1,), jnp.uint32)])


PARTICLE = define_prng_impl(
    key_shape=(3,),
    seed=_particle_seed,
    split=_particle_split,
    random_bits=_particle_bits,
    fold_in=_particle_fold_in,
    name="fivo_particles",
    tag="fivop",
)
