"""Benchmarks of later papers: data, models and what is measured of them, for the files of `fivo.experiments`.

One module each. Its `data(data_dir)` makes a `Dataset`, its `model(dataset)` the untrained model, and its other public
names score a trained one, as bounds do: (model, batch, *, key) -> a number per sequence. Experiments name them as
`fivo.benchmarks.forex:data`, and so can `fivo fit` and `fivo evaluate`.
"""

from fivo.benchmarks import drift, forex

__all__ = ["drift", "forex"]
