"""The multiple importance sampling objective (Appendix of the paper; Veach and Guibas 1995)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PyTree

from fivo.batch import Batch, Sequence, as_batch, over_sequences
from fivo.bounds._proposals import Gate, Proposal
from fivo.bounds._result import BoundInfo, BoundResult
from fivo.errors import InputError
from fivo.models import SequenceModel, densities, draw, read, shown
from fivo.smc import check_particles, sequence_keys
from fivo.weights import effective_sample_size, log_sum_exp, normalize


class MIS(eqx.Module):
    """E[log Σ_i w_i(x) p(x, z_i) / Σ_j w_j(x) q_j(z_i | x)] with z_i ~ q_i: the mixture, or balance, estimator.

    Args:
        proposals: the q_i, each a proposal of whole trajectories.
        gate: the weights w_i(x), such as `ConstantGate(jnp.zeros(2))`.
        num_samples: draws of each proposal, which are averaged.

    It is sharp where the mixture Σ_i w_i(x) q_i is the posterior. Proposals and gate hold parameters: differentiate the
    objective too. The `info` has one step: the ESS of the terms, and log (Σ_j w_j q_j) - log p averaged over them as
    `kl`.
    """

    proposals: tuple[Proposal, ...]
    gate: Gate
    num_samples: int = eqx.field(static=True, default=1)

    def __check_init__(self) -> None:
        check_particles(self.num_samples, "num_samples")
        if not self.proposals:
            raise InputError("proposals must hold at least one proposal, got none.")

    def __call__(self, model: SequenceModel, batch: Any, *, key: Key[Array, "*batch"]) -> BoundResult:
        """One draw of the estimate for every sequence.

        Args:
            model: the model.
            batch: a `Batch`, an array [time, dim] or [batch, time, dim], or a list of [time, dim] arrays.
            key: one random key, or one for each sequence.

        Returns:
            One draw per sequence, and what happened along time.
        """
        batch = as_batch(batch)
        keys = sequence_keys(key, batch.lengths.shape[0])
        log_evidence, ess, kl = _estimate(self, model, batch, keys)
        never = jnp.zeros((len(keys), 1), bool)
        return BoundResult(log_evidence, BoundInfo(log_evidence[:, None], ess[:, None], never, kl[:, None]))


@eqx.filter_jit
def _estimate(bound: MIS, model: SequenceModel, batch: Batch, keys: Key[Array, " batch"]) -> tuple[Array, Array, Array]:
    return over_sequences(lambda sequence, key: _one(bound, model, sequence, key), batch, keys)


def _one(bound: MIS, model: SequenceModel, sequence: Sequence, key: Key[Array, ""]) -> tuple[Array, Array, Array]:
    """log p̂, ESS and KL of one sequence."""
    proposals = bound.proposals
    sequence = shown(model, sequence)
    reading = read(model, sequence)
    log_weights = jax.nn.log_softmax(bound.gate(sequence))
    if log_weights.shape[0] != len(proposals):
        raise InputError(f"the gate weights {log_weights.shape[0]} proposals where there are {len(proposals)}.")
    evidence = [q.encode(model, sequence) for q in proposals]

    def proposing(i: int):
        return lambda state, seen, prior: proposals[i](model, state, seen, prior)

    drawn = []
    for i in range(len(proposals)):
        sample_keys = jax.random.split(jax.random.fold_in(key, i), bound.num_samples)
        drawn.append(
            jax.vmap(lambda k, i=i: draw(model, reading, key=k, propose=proposing(i), evidence=evidence[i]))(
                sample_keys
            )
        )
    latents: PyTree = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *drawn)
    scored = [
        jax.vmap(lambda z, j=j: densities(model, reading, z, proposing(j), evidence[j]))(latents)
        for j in range(len(proposals))
    ]
    log_prior = scored[0].log_prior
    log_each: Float[Array, "draw proposal"] = jnp.stack([scores.log_proposal for scores in scored], axis=1)
    log_mixture = log_sum_exp(log_weights[None, :] + log_each)
    log_share = jnp.repeat(log_weights, bound.num_samples) - jnp.log(bound.num_samples)
    terms, log_evidence = normalize(log_share + log_prior + scored[0].log_likelihood - log_mixture)
    kl = jnp.sum(jnp.exp(log_share) * (log_mixture - log_prior))
    return log_evidence, effective_sample_size(terms), kl
