"""What a model is built from of a table: kept with a run, so that it can be used where the table is not."""

import dataclasses
from typing import Any

import msgspec
import numpy as np
from jaxtyping import Float64

from fivo.data.columns import Column
from fivo.data.dataset import Dataset
from fivo.data.tables.schema import TableSchema


@dataclasses.dataclass(frozen=True, eq=False)
class TableFacts:
    """Columns and statistics of the training data of a table, with the names that `Dataset` has for them.

    Args:
        table: How the table was read.
        train_mean: Of every column, on the model's scale.
        train_deviation: Of every column.
        rates: Shares of the categories of every category column, by its place.
        sound: Always None: tables are not sound.
    """

    table: TableSchema
    train_mean: Float64[np.ndarray, " dimension"]
    train_deviation: Float64[np.ndarray, " dimension"]
    rates: dict[int, Float64[np.ndarray, " category"]]
    sound: None = None

    @classmethod
    def of(cls, dataset: Dataset) -> "TableFacts":
        """The facts of a dataset that was read from a table.

        Args:
            dataset: The dataset.

        Returns:
            The facts.
        """
        if dataset.table is None:
            raise ValueError("the dataset is not of a table")
        places = [place for place, column in enumerate(dataset.columns) if column.kind == "category"]
        rates = {place: np.asarray(dataset.train_rates(place), np.float64) for place in places}
        return cls(dataset.table, dataset.train_mean, dataset.train_deviation, rates)

    @property
    def columns(self) -> tuple[Column, ...]:
        """What the entries of a frame are."""
        return self.table.columns

    @property
    def input_columns(self) -> tuple[Column, ...]:
        """What the inputs are."""
        return self.table.input_columns

    @property
    def dimension(self) -> int:
        """The number of entries of a frame."""
        return len(self.columns)

    def train_rates(self, place: int) -> Float64[np.ndarray, " category"]:
        """Shares of the categories of a column in train.

        Args:
            place: The column's position.

        Returns:
            Shares that sum to one [category].
        """
        return self.rates[place]

    def to_plain(self) -> dict[str, Any]:
        """Take the facts apart.

        Returns:
            Plain values, as JSON can hold them.
        """
        return {
            "table": msgspec.to_builtins(self.table),
            "train_mean": self.train_mean.tolist(),
            "train_deviation": self.train_deviation.tolist(),
            "rates": {str(place): shares.tolist() for place, shares in self.rates.items()},
        }

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "TableFacts":
        """Put together what `to_plain` took apart.

        Args:
            plain: The plain values.

        Returns:
            The facts.
        """
        return cls(
            msgspec.convert(plain["table"], TableSchema),
            np.asarray(plain["train_mean"], np.float64),
            np.asarray(plain["train_deviation"], np.float64),
            {int(place): np.asarray(shares, np.float64) for place, shares in plain["rates"].items()},
        )
