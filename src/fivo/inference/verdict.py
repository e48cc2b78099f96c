"""What limits a model, in sentences: the targets, its proposal, the number of particles, or the model itself."""

from collections.abc import Sequence

from fivo.runs import DiagnosisRow, Verdict

TOLERANCE = 0.05
"""Nats per step that count: gaps below it are of the size of differences between runs in the paper's tables."""
NO_INFORMATION = 0.01
"""KL(q‖p) per step, in nats, below which latents carry nothing of the observations."""


def judge(
    rows: Sequence[DiagnosisRow],
    own_particles: int,
    tolerance: float = TOLERANCE,
    *,
    unresampled: DiagnosisRow | None = None,
) -> Verdict:
    """The verdict on rows of a diagnosis, one per number of particles, in ascending order.

    What is left with the most particles is blamed on the proposal; what only more particles than the run's own regain,
    on their number; and if neither amounts to `tolerance` nats per step, the bound is the model's own likelihood.
    `unresampled` is the first row without resampling: where that is better, particles are resampled for targets that
    do not look ahead, and thrown away although later frames want them.
    """
    most = rows[-1]
    own = next(row for row in rows if row.particles == own_particles)
    simulated, left = most.sandwich.gap, most.half_log_variance
    remaining = max(simulated - 2 * most.sandwich.standard_error, left)
    gained = most.bound - own.bound
    evidence = (
        f"with N = {most.particles} upper and lower bound on simulated data are {_nats(simulated)} nats per step "
        f"apart, and half the variance of log p-hat on the data is {_nats(left)}"
    )
    first = rows[0]
    if unresampled is not None:
        lost = unresampled.bound - first.bound
        if lost - 2 * (unresampled.standard_error + first.standard_error) > tolerance:
            sentences = [
                f"The targets limit this model: with N = {first.particles} particles that are not resampled reach "
                f"{lost:.3f} nats per step more, so that resampling throws away what later frames want.",
                "Its proposal sees the future and its targets do not; train it with a twist (--bound sixo), or "
                "resample less.",
            ]
            return Verdict("targets", sentences + _information(most))
    if remaining > tolerance:
        sentences = [
            f"The proposal limits this model: {evidence}, so that particles alone do not close the gap.",
            f"The effective sample size is {100 * most.ess:.0f} % of N on average: particles are proposed where the "
            "data do not want them; give q more capacity or more to see, or train it longer.",
        ]
        return Verdict("proposal", sentences + _information(most))
    if gained > tolerance:
        sentences = [
            f"The number of particles limits this model: N = {most.particles} gains {gained:.3f} nats per step over "
            f"its N = {own_particles}, and no more than that is left to gain ({evidence}).",
            "Train or evaluate it with more particles.",
        ]
        return Verdict("particles", sentences + _information(most))
    sentences = [
        f"The model itself is the limit: {evidence}, and N = {most.particles} gains only {max(gained, 0):.3f} nats "
        f"per step over N = {own_particles}, so that the bound is practically its log-likelihood.",
        "Neither particles nor a better proposal will raise it; another model, longer training or more data may.",
    ]
    return Verdict("model", sentences + _information(most))


def _information(row: DiagnosisRow) -> list[str]:
    if abs(row.kl) >= NO_INFORMATION:
        return []
    return [
        f"KL(q‖p) is {row.kl:.3f} nats per step: q is the prior, so either the proposal is a bootstrap one or the "
        "latents carry nothing of the data."
    ]


def _nats(value: float) -> str:
    """With three decimals, unless it is so large that they say nothing."""
    return f"{value:.3f}" if abs(value) < 1e5 else f"{value:.1e}"
