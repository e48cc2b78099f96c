"""Further losses beside the bound: each trains its own parameters, and only those, in the same checkpoints."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import optax
import pytest
from jaxtyping import Array, Float

import fivo
from fivo.bounds import FIVO
from fivo.data import Dataset
from fivo.models import simulate
from fivo.settings import Adam
from fivo.training import RunDirectory, Trainer, Update, adam
from tests.fitting.own import Pendulum
from tests.training.runs import assert_same_run

SETTINGS = {"steps": 30, "batch_size": 2, "validate_every": 10, "log_every": 5, "progress": False}


class Shifted(Pendulum):
    """A pendulum whose angle is read off a scale that is shifted: both losses depend on the shift."""

    shift: Float[Array, ""]

    def __init__(self) -> None:
        super().__init__()
        self.shift = jnp.asarray(0.5)

    def emission(self, state, latent, context):
        return dist.Normal(latent[:1] + self.shift, jnp.exp(self.log_noise))


def distance(model: Shifted, data: Any, *, key: Any) -> Float[Array, ""]:
    """Of the shift from the data's mean; the frequency would like to grow, too."""
    return (model.shift - jnp.mean(data.observations)) ** 2 - 100 * model.frequency


def shift_update(**changes: Any) -> Update:
    made = {"name": "scale", "where": lambda model: model.shift, "loss": distance, "optimizer": optax.sgd(0.25)}
    return Update(**{**made, **changes})


def batch_of(waves: Dataset) -> fivo.Batch:
    return fivo.Batch.from_sequences(waves.splits["train"][:2])


def one_step(waves: Dataset, *updates: Update) -> tuple[Shifted, dict[str, Array]]:
    trainer = Trainer(Shifted(), FIVO(2), adam(Adam(learning_rate=0.1), 1), updates=updates)
    state, metrics = trainer(trainer.start(), [batch_of(waves)], jax.random.key(0), 0)
    return trainer.model(state), metrics


def test_a_loss_moves_its_own_parameters_and_the_bound_all_others(waves):
    plain, _ = one_step(waves)
    updated, metrics = one_step(waves, shift_update())
    still, _ = one_step(waves, shift_update(optimizer=optax.sgd(0.0)))
    mean = float(jnp.mean(batch_of(waves).observations))
    assert float(plain.shift) != 0.5, "the bound would move it"
    assert float(still.shift) == 0.5
    assert float(updated.shift) == pytest.approx(0.5 - 0.25 * 2 * (0.5 - mean), abs=1e-6)
    assert set(metrics) == {"bound", "kl", "ess", "resampling_rate", "gradient_norm", "scale_loss"}
    for name in ("frequency", "damping", "log_noise"):
        assert float(getattr(updated, name)) == float(getattr(plain, name)) == float(getattr(still, name))
        assert float(getattr(plain, name)) != float(getattr(Shifted(), name))
    # The loss is computed after the bound's step, with the parameters of both.
    expected = (0.5 - mean) ** 2 - 100 * float(updated.frequency)
    assert float(metrics["scale_loss"]) == pytest.approx(expected, rel=1e-5)


def test_repeats_are_steps_of_the_same_loss(waves):
    mean = float(jnp.mean(batch_of(waves).observations))
    thrice, _ = one_step(waves, shift_update(repeats=3))
    assert float(thrice.shift) == pytest.approx(mean + (0.5 - mean) / 8, abs=1e-6)


def test_two_updates_have_a_part_each(waves):
    decay = Update("friction", lambda m: m.damping, lambda m, data, *, key: m.damping**2, optax.sgd(0.5))
    model, metrics = one_step(waves, shift_update(), decay)
    assert float(model.damping) == pytest.approx(0.0, abs=1e-7)
    assert float(model.shift) == float(one_step(waves, shift_update())[0].shift)
    assert {"scale_loss", "friction_loss"} <= set(metrics)


def test_data_of_an_update_are_drawn_anew_without_a_derivative(waves):
    """Its loss would have the gradient 1 through the data, and has none but that of the shift itself."""
    seen = []

    def drawn(model: Shifted, batch: fivo.Batch, *, key: Any) -> Array:
        seen.append(key)
        return model.shift + jax.random.normal(key)

    update = shift_update(data=drawn, loss=lambda model, data, *, key: data - model.shift, repeats=2)
    model, _ = one_step(waves, update)
    assert float(model.shift) == pytest.approx(0.5 + 2 * 0.25)
    assert len(seen) == 2


def simulated(model: Shifted, batch: fivo.Batch, *, key: Any) -> Float[Array, "time dim"]:
    return simulate(model, 4, key=key).observations


def noisy(model: Shifted, data: Float[Array, "time dim"], *, key: Any) -> Float[Array, ""]:
    return (model.shift - jnp.mean(data) + 0.1 * jax.random.normal(key)) ** 2


def fit_shifted(out: Any, waves: Dataset, **changes: Any) -> fivo.Run:
    update = shift_update(loss=noisy, data=simulated, optimizer=optax.adam(0.05), repeats=2)
    options = {"bound": FIVO(2), "updates": [update], "learning_rate": 0.02, **SETTINGS, **changes}
    return fivo.fit(Shifted(), waves, out=out, **options)


def test_it_resumes_to_the_bit(waves, tmp_path):
    whole = fit_shifted(tmp_path / "whole", waves)
    for stop in (5, 15, 25):

        def interrupt(event, stop=stop):
            if event.step == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit_shifted(tmp_path / "broken", waves, callbacks=[interrupt])
    fit_shifted(tmp_path / "broken", waves)
    assert_same_run(RunDirectory(tmp_path / "broken"), RunDirectory(tmp_path / "whole"))
    assert np.isfinite(whole.history["scale_loss"]).all()
    arrays = whole.directory.read_latest().arrays
    assert {name.partition("]")[0] + "]" for name in arrays if "scale" in name} == {
        ".parameters['scale']", ".optimizers['scale']"
    }  # fmt: skip


def test_the_best_model_has_the_parameters_of_all_groups(waves, tmp_path):
    seen = {}
    run = fit_shifted(tmp_path / "run", waves, callbacks=[lambda event: seen.update({event.step: event.model})])
    best = seen[run.step]
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.all(a == b)), best, run.model))
    assert float(run.model.shift) != 0.5
