"""`fivo export`: a trained run as programs that JAX runs without this package."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from fivo.cli.rows import Quantiles, RunFolder


def export(
    run: RunFolder,
    *,
    out: Annotated[Path, Parameter(help="The file to write, such as model.stablehlo.")],
    platforms: str = "cpu",
    particles: int = 100,
    horizon: int = 24,
    samples: int = 200,
    quantiles: Quantiles = "0.1,0.5,0.9",
) -> None:
    """Write a run's model as StableHLO programs (step, score, forecast) that are read with JAX alone.

    Parameters
    ----------
    platforms
        What the programs run on, of cpu, cuda, rocm and tpu, separated by commas; the hardware need not be there.
    particles
        Number of particles of the filters; exact models need none.
    horizon
        Number of rows that the program `forecast` draws.
    samples
        Draws of the program `forecast` for every series.
    """
    from fivo._run import open_run
    from fivo._terminal.output import say
    from fivo._terminal.progress import Bar
    from fivo.cli.rows import levels_of

    levels = levels_of(quantiles)
    chosen = [name.strip() for name in platforms.split(",")]
    with Bar("exporting") as bar:

        def progress(what: str, done: int, total: int) -> None:
            bar.label = what
            bar.update(done, total=total)

        about = open_run(run).export(
            out,
            num_particles=particles,
            horizon=horizon,
            num_samples=samples,
            quantiles=levels,
            platforms=chosen,
            progress=progress,
        )
    names = ", ".join(about["programs"])
    say(f"wrote {out}: {names} for {', '.join(chosen)}, {out.stat().st_size / 1e6:.1f} MB")
