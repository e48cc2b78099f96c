"""How a dataset introduces itself."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fivo.data.columns import Column
from fivo.data.splits import Split

if TYPE_CHECKING:
    from fivo.data.dataset import Dataset

SHOWN_COLUMNS = 6


def describe(dataset: "Dataset") -> str:
    """Its name, its columns, and how much is in every split.

    Args:
        dataset: The dataset.

    Returns:
        A few lines.
    """
    if dataset.sound is not None:
        what = f"{dataset.kind}, frames of {dataset.dimension}, {dataset.sound.step_seconds:g} s a frame"
    else:
        what = f"{dataset.dimension} {'column' if dataset.dimension == 1 else 'columns'}: {_listed(dataset.columns)}"
    lines = [f"Dataset({dataset.name!r:.60}, {what},"]
    if dataset.input_columns:
        lines.append(f"  inputs: {_listed(dataset.input_columns)},")
    for split, (sequences, frames) in dataset.counts.items():
        missing = _missing(dataset.splits[split])
        lines.append(
            f"  {split}: {sequences:,} {'sequence' if sequences == 1 else 'sequences'}, {frames:,} frames"
            + (f", {missing:.1%} missing," if missing else ",")
        )
    return "\n".join(lines).removesuffix(",") + ")"


def _missing(part: Split) -> float:
    """The share of the entries of a split that were not observed, without the steps that are context."""
    if part.masks is None:
        return 0.0
    scored = [mask[start:] for mask, start in zip(part.masks, part.starts or (0,) * len(part), strict=True)]
    return 1 - sum(int(mask.sum()) for mask in scored) / sum(mask.size for mask in scored)


def _listed(columns: Sequence[Column]) -> str:
    """Names and kinds of the first few columns."""
    names = [f"{column.name!r:.30} {column.kind}" for column in columns[:SHOWN_COLUMNS]]
    more = len(columns) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more else "")
