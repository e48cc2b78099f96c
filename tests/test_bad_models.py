"""Models, schemes and criteria of a user's own that break the contract: one sentence that says which rule and how."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import numpyro.distributions as dist
import pytest

from fivo import InputError, ParticleFilter
from fivo.bounds import AIS, FIVO, HMC, IWAE, sandwich, temperatures
from fivo.gradients import Score
from fivo.models import MixedEmission, PoissonEmission, SequenceModel, check_model, simulate
from fivo.resampling import Always, ESSBelow, Every, Schedule, Soft
from fivo.smc import conditional_filter, particle_gibbs
from tests.sentences import assert_one_sentence

X = np.zeros((2, 3, 1))
KEY = jax.random.key(0)
PF = ParticleFilter(2)


class Good(SequenceModel):
    """What all others here are but for one mistake."""

    scale: jax.Array

    def initial_state(self, context):
        return jnp.zeros(())

    def prior(self, state, context):
        return dist.Normal(state, self.scale)

    def emission(self, state, latent, context):
        return dist.Normal(latent[None], 1.0)


class NoPrior(SequenceModel):
    scale: jax.Array

    def initial_state(self, context):
        return jnp.zeros(())

    def emission(self, state, latent, context):
        return dist.Normal(latent[None], 1.0)


class NoEmission(SequenceModel):
    scale: jax.Array

    def initial_state(self, context):
        return jnp.zeros(())

    def prior(self, state, context):
        return dist.Normal(state, self.scale)


class NoStart(SequenceModel):
    scale: jax.Array

    def prior(self, state, context):
        return dist.Normal(state, self.scale)

    def emission(self, state, latent, context):
        return dist.Normal(latent[None], 1.0)


class NoLaterPrior(NoPrior):
    """With an initial prior alone: the first step goes well."""

    def initial_prior(self, state, context):
        return dist.Normal(state, self.scale)


class TwoValues(Good):
    def encode(self, sequence):
        return None, sequence.observations


class OneValue(Good):
    def encode(self, sequence):
        return sequence.observations


class TooManyEntries(Good):
    def encode(self, sequence):
        x = sequence.observations
        return jnp.concatenate([x[:1], x]), x, x


class NoTimeAxis(Good):
    def encode(self, sequence):
        return None, {"mean": jnp.mean(sequence.observations)}, None


class Growing(Good):
    def advance(self, state, latent, history):
        return jnp.stack([latent, latent])


class Counting(Good):
    def advance(self, state, latent, history):
        return jnp.zeros((), jnp.int32)


class Restructured(Good):
    def advance(self, state, latent, history):
        return {"level": latent}


class OwnEncode(Good):
    def encode(self, sequence):
        return None, sequence.observations, None


class Wide(Good):
    def emission(self, state, latent, context):
        return dist.Normal(jnp.stack([latent, latent]), 1.0)


class NoDistribution(Good):
    def prior(self, state, context):
        return state


class NoEmittedDistribution(Good):
    def emission(self, state, latent, context):
        return latent[None]


class Smoothing(Good):
    @property
    def causal(self):
        return False


def of(kind: type[SequenceModel]) -> SequenceModel:
    return kind(jnp.ones(()))


def run(model, **setting):
    return ParticleFilter(**{"num_particles": 2} | setting)(model, X, key=KEY)


def stream(model):
    return PF.step(model, PF.init(model, key=KEY), jnp.zeros(1))


REFUSED = {
    "no prior": (lambda: run(of(NoPrior)), "NoPrior must define prior(state, context)", "distribution of z_t"),
    "no prior in a stream": (lambda: stream(of(NoPrior)), "NoPrior must define prior(state, context)"),
    "no prior in a simulation": (lambda: simulate(of(NoPrior), 3, key=KEY), "NoPrior must define prior"),
    "no prior behind an initial one": (lambda: run(of(NoLaterPrior)), "NoLaterPrior must define prior"),
    "no emission": (lambda: run(of(NoEmission)), "NoEmission must define emission(state, latent, context)"),
    "no emission in a bound": (lambda: FIVO(2)(of(NoEmission), X, key=KEY), "NoEmission must define emission"),
    "no beginning": (lambda: run(of(NoStart)), "NoStart must define initial_state(context)", "initial_prior"),
    "no beginning in a stream": (lambda: stream(of(NoStart)), "NoStart must define initial_state(context)"),
    "no beginning in a simulation": (lambda: simulate(of(NoStart), 3, key=KEY), "NoStart must define initial_state"),
    "no beginning of a given path": (
        lambda: of(NoStart).log_joint(jnp.zeros(3), jnp.zeros((3, 1))),
        "NoStart must define initial_state",
    ),
    "encode of two values": (
        lambda: run(of(TwoValues)),
        "TwoValues.encode must return (context, evidence, history), got 2 values",
    ),
    "encode of one value": (lambda: run(of(OneValue)), "OneValue.encode must return (context, evidence, history)"),
    "encode of an entry too many": (
        lambda: run(of(TooManyEntries)),
        "TooManyEntries.encode must return context with 3 entries, one per step, got an array of shape (4, 1)",
    ),
    "encode without a time axis": (lambda: run(of(NoTimeAxis)), "evidence with 3 entries", "shape ()"),
    "a state that grows": (
        lambda: run(of(Growing)),
        "Growing.advance must return a state like the one before the first step, which is float32[], got float32[2]",
    ),
    "a state that becomes a whole number": (lambda: run(of(Counting)), "float32[], got int32[]"),
    "a state of another structure": (lambda: run(of(Restructured)), "Restructured.advance must return a state like"),
    "a state that grows in a stream": (lambda: stream(of(Growing)), "Growing.advance must return a state like"),
    "a state that grows in a simulation": (lambda: simulate(of(Growing), 3, key=KEY), "Growing.advance must return"),
    "a state that grows beside a reference": (
        lambda: conditional_filter(PF, of(Growing), X, jnp.zeros((2, 3)), key=KEY),
        "Growing.advance must return",
    ),
    "own encode in a stream": (
        lambda: PF.init(of(OwnEncode), key=KEY),
        "OwnEncode must define begin(), context_next(memory, inputs) and encode_next",
        "to be streamed or simulated",
    ),
    "own encode in a simulation": (lambda: simulate(of(OwnEncode), 3, key=KEY), "OwnEncode must define begin()"),
    "a smoothing proposal in a stream": (lambda: PF.init(of(Smoothing), key=KEY), "must not read future frames"),
    "an emission of another size": (lambda: run(of(Wide)), "(1,)", "(2,)"),
    "a prior that is no distribution": (
        lambda: run(of(NoDistribution)),
        "NoDistribution.prior must return a distribution",
    ),
    "an emission that is no distribution": (
        lambda: run(of(NoEmittedDistribution)),
        "NoEmittedDistribution.emission must return a distribution",
    ),
    "a class for a model": (lambda: run(Good), "got the class Good"),
    "a class for a model in a bound": (lambda: IWAE(2)(Good, X, key=KEY), "got the class Good"),
    "a class for a model in a stream": (lambda: PF.init(Good, key=KEY), "got the class Good"),
    "a class for a model in a simulation": (lambda: simulate(Good, 3, key=KEY), "got the class Good"),
    "a class for a model beside a reference": (
        lambda: conditional_filter(PF, Good, X, jnp.zeros((2, 3)), key=KEY),
        "got the class Good",
    ),
    "a class for a model in Gibbs": (
        lambda: particle_gibbs(PF, Good, X, num_sweeps=2, key=KEY),
        "got the class Good",
    ),
    "a class for a model in annealing": (
        lambda: AIS(2, temperatures.linear(2), HMC(0.1, 1))(Good, X, key=KEY),
        "got the class Good",
    ),
    "a class for a model to check": (lambda: check_model(Good, X), "instance of a"),
    "no model at all": (lambda: run(None), "got NoneType"),
    "a model in place of the filter": (
        lambda: conditional_filter(of(Good), of(Good), X, jnp.zeros((2, 3)), key=KEY),
        "must be a ParticleFilter, got Good",
    ),
    "a model in place of the filter of a sandwich": (
        lambda: sandwich(of(Good), of(Good), X, jnp.zeros((2, 3)), key=KEY),
        "must be a ParticleFilter, got Good",
    ),
    "a model in place of the filter of Gibbs": (
        lambda: particle_gibbs(of(Good), of(Good), X, num_sweeps=2, key=KEY),
        "must be a ParticleFilter, got Good",
    ),
    "a class for a scheme": (lambda: ParticleFilter(2, Soft), "such as Soft()", "got the class itself"),
    "a class for a scheme of FIVO": (lambda: FIVO(2, Soft), "such as Soft()"),
    "a class for a criterion": (lambda: ParticleFilter(2, criterion=ESSBelow), "such as ESSBelow()"),
    "a class for a criterion of FIVO": (lambda: FIVO(2, criterion=Always), "such as Always()"),
    "a class for a gradient": (lambda: FIVO(2, gradient=Score), "such as Score()"),
    "a class for a kernel": (
        lambda: AIS(2, temperatures.linear(2), HMC)(of(Good), X, key=KEY),
        "kernel must be a fivo.smc.Kernel",
    ),
    "a class for an emission": (lambda: MixedEmission((PoissonEmission, (0, 1))), "must be an Emission"),
    "a number for a scheme": (lambda: ParticleFilter(2, 3), "resampling must be one of", "got 3"),
    "a number for a criterion": (lambda: ParticleFilter(2, criterion=0.5), "criterion must be a function", "ESSBelow"),
    "a name for a criterion": (lambda: ParticleFilter(2, criterion="always"), "criterion must be a function"),
    "a criterion of one argument": (lambda: ParticleFilter(2, criterion=lambda w: True), "(log_weights, step)"),
    "a criterion that decides for every particle": (
        lambda: ParticleFilter(2, criterion=lambda w, t: w > 0),
        "criterion must return one boolean",
    ),
    "a criterion that returns a number": (
        lambda: ParticleFilter(2, criterion=lambda w, t: jnp.sum(w)),
        "criterion must return one boolean",
    ),
    "a scheme of two arguments": (
        lambda: ParticleFilter(2, lambda key, w: jnp.zeros(2, jnp.int32)),
        "(key, log_weights, num_draws)",
    ),
    "a scheme that draws too many": (
        lambda: ParticleFilter(2, lambda key, w, n: jnp.zeros(n + 1, jnp.int32)),
        "must return 2 whole numbers",
    ),
    "a scheme that draws weights": (lambda: ParticleFilter(2, lambda key, w, n: w), "must return 2 whole numbers"),
    "a fraction that is a word": (lambda: ESSBelow("half"), "fraction of N from 0 to 1", "'half'"),
    "a number of steps that is a word": (lambda: Every("ten"), "positive number of steps", "'ten'"),
    "half a step": (lambda: Every(2.5), "positive number of steps", "2.5"),
    "a schedule that is a number": (lambda: Schedule(3), "Schedule must be given steps", "3"),
    "a schedule of words": (lambda: Schedule(("first",)), "Schedule must be given steps", "first"),
    "neither particles nor a filter": (FIVO, "num_particles, or a ParticleFilter"),
    "particles and a filter": (lambda: FIVO(2, filter=PF), "either filter= or num_particles"),
    "a filter that is none": (lambda: FIVO(filter=2), "filter must be a ParticleFilter, got 2"),
}


@pytest.fixture(autouse=True)
def unannotated():
    """Users run without the type checker of the tests, which would speak first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(name):
    act, *parts = REFUSED[name]
    with pytest.raises(InputError) as refusal:
        act()
    assert_one_sentence(refusal.value, *parts)


def test_the_model_without_a_mistake_is_taken():
    model = of(Good)
    assert np.isfinite(run(model).log_evidence).all()
    assert np.isfinite(stream(model)[0].log_evidence)
    assert simulate(model, 3, key=KEY).observations.shape == (3, 1)
    assert check_model(model, X).ok


class Weak(Good):
    """Its states are Python's numbers, and no types of JAX."""

    def initial_state(self, context):
        return 0.0

    def advance(self, state, latent, history):
        return 0.5


def test_states_may_be_numbers_of_python():
    model = of(Weak)
    whole = run(model)
    assert np.isfinite(whole.log_evidence).all()
    state = PF.init(model, key=jax.random.split(KEY, 2)[0])
    for x in X[0]:
        state, _ = PF.step(model, state, jnp.asarray(x))
    np.testing.assert_allclose(PF.finish(state).log_evidence, whole.log_evidence[0], rtol=1e-6)
    assert simulate(model, 3, key=KEY).observations.shape == (3, 1)


def test_functions_of_a_users_own_are_taken():
    def every_other(log_weights, step):
        return step % 2 == 0

    def last_ones(key, log_weights, num_draws):
        return jnp.full(num_draws, log_weights.shape[0] - 1)

    result = ParticleFilter(3, last_ones, every_other)(of(Good), X, key=KEY, keep=("ancestors",))
    assert result.resampled.tolist() == [[True, False, True]] * 2
    assert result.ancestors[0].tolist() == [[2, 2, 2], [0, 1, 2], [2, 2, 2]]
