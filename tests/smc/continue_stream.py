"""Loads half-way states in a process of its own, filters on and saves the outcome: `continue_stream FOLDER CASE...`."""

import sys
from pathlib import Path

import jax.numpy as jnp

import fivo
from tests.models.cases import CASES
from tests.smc.stream import NUM_FRAMES, start


def main(folder: Path, names: list[str]) -> None:
    for case in CASES:
        if case.name in names:
            model, pf, state = start(case)
            state = fivo.load(folder / f"{case.name}.half", like=state)
            for x in jnp.asarray(case.sequences(NUM_FRAMES)[0])[NUM_FRAMES // 2 :]:
                state, _ = pf.step(model, state, x)
            fivo.save(folder / f"{case.name}.continued", state)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
