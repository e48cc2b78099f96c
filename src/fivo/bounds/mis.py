"""The multiple importance sampling objective (Appendix of the paper; Veach and Guibas 1995)."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Batch
from fivo.bounds.proposals import Gate, Proposal
from fivo.bounds.result import BoundInfo, BoundResult
from fivo.errors import InputError
from fivo.models.contract import SequenceModel
from fivo.smc.filter import sequence_keys
from fivo.smc.step import check_particles
from fivo.smc.whole import Reading, densities, draw, read_batch
from fivo.weights import effective_sample_size, log_sum_exp, normalize


class MIS(eqx.Module):
    """E[log Σ_i w_i(x) p(x, z_i) / Σ_j w_j(x) q_j(z_i | x)] with z_i ~ q_i: the mixture, or balance, estimator.

    Every q_i is a proposal of whole trajectories; `num_samples` draws of each are averaged. It is sharp where the
    mixture Σ_i w_i(x) q_i is the posterior. Proposals and gate hold parameters: differentiate the objective too.
    The `info` has one step: the ESS of the terms, and log (Σ_j w_j q_j) - log p averaged over them as `kl`.
    """

    proposals: tuple[Proposal, ...]
    gate: Gate
    num_samples: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_particles(self.num_samples)
        if not self.proposals:
            raise InputError("got no proposals where at least one was expected.")

    def __call__(self, model: SequenceModel, batch: Batch, *, key: Key[Array, "*batch"]) -> BoundResult:
        keys = sequence_keys(key, batch.lengths.shape[0])
        log_evidence, ess, kl = _estimate(self, model, batch, keys)
        never = jnp.zeros((len(keys), 1), bool)
        return BoundResult(log_evidence, BoundInfo(log_evidence[:, None], ess[:, None], never, kl[:, None]))


@eqx.filter_jit
def _estimate(bound: MIS, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"]) -> tuple[Array, Array, Array]:
    return jax.vmap(lambda reading, key: _one(bound, model, reading, key))(read_batch(model, batch), keys)


def _one(bound: MIS, model: SequenceModel, reading: Reading, key: Key[Array, ""]) -> tuple[Array, Array, Array]:
    """log p̂, ESS and KL of one sequence."""
    proposals = bound.proposals
    log_weights = jax.nn.log_softmax(bound.gate(reading.x, reading.mask, reading.length))
    if log_weights.shape[0] != len(proposals):
        raise InputError(f"the gate weights {log_weights.shape[0]} proposals where there are {len(proposals)}.")
    fulls = [q.encode(model, reading.x, reading.mask, reading.length) for q in proposals]

    def proposing(i: int):
        return lambda state, full, prior: proposals[i](model, state, full, prior)

    drawn = []
    for i in range(len(proposals)):
        sample_keys = jax.random.split(jax.random.fold_in(key, i), bound.num_samples)
        drawn.append(jax.vmap(lambda k, i=i: draw(model, reading, k, proposing(i), fulls[i]))(sample_keys))
    latents: PyTree = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)
    scored = [
        jax.vmap(lambda z, j=j: densities(model, reading, z, proposing(j), fulls[j]))(latents)
        for j in range(len(proposals))
    ]
    log_prior = scored[0].log_prior
    log_each: Float[Array, "draw proposal"] = jnp.stack([scores.log_proposal for scores in scored], axis=1)
    log_mixture = log_sum_exp(log_weights[None, :] + log_each)
    log_share = jnp.repeat(log_weights, bound.num_samples) - jnp.log(bound.num_samples)
    terms, log_evidence = normalize(log_share + log_prior + scored[0].log_likelihood - log_mixture)
    kl = jnp.sum(jnp.exp(log_share) * (log_mixture - log_prior))
    return log_evidence, effective_sample_size(terms), kl
