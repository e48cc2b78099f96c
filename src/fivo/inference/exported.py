"""What an export says of itself: shapes for programs, and words for people."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Signature(NamedTuple):
    """A program and the shapes and types of its arguments, by their names, in their order."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


def described(tree: Any) -> Any:
    """Shapes and types of arrays as JSON; sizes that may be anything are texts."""
    if isinstance(tree, dict):
        return {name: described(part) for name, part in tree.items()}
    if isinstance(tree, list | tuple):
        return [described(part) for part in tree]
    shape = [size if isinstance(size, int) else str(size) for size in tree.shape]
    return {"shape": shape, "dtype": str(tree.dtype)}


README = """# A trained model

StableHLO programs of any batch size b and any number of steps t, read with JAX and flatbuffers alone:

```python
import hashlib
import json
import zipfile

import jax
import numpy as np
from jax import export


def read(path):
    programs = {}
    with zipfile.ZipFile(path) as file:
        about = json.loads(file.read("about.json"))
        for name, entry in about["programs"].items():
            content = file.read(entry["file"])
            if hashlib.sha256(content).hexdigest() != entry["sha256"]:
                raise ValueError(f"{name} is damaged; get a fresh copy")
            programs[name] = jax.jit(export.deserialize(bytearray(content)).call)
    if about["dtype"] == "float64":
        jax.config.update("jax_enable_x64", True)
    return about, programs


def keys_of(seed, count):
    return np.asarray(jax.random.key_data(jax.random.split(jax.random.key(seed), count)))
```

`about["programs"][name]` lists the arguments, in order, and what comes back. All numbers are on the model's scale,
(raw - shift) / scale by `about["columns"]`, where categories are their places in `categories`; inputs are in the order
of `about["inputs"]`, categories among them one-hot. Where `mask` is false, an entry is missing, and is never read.

- `begin(keys)`: the state of b streams, from keys [b, 2].
- `step(state, x, mask[, inputs])`: one row of each stream; returns the next state and, of the row, `log_likelihood`,
  `mean` and `quantiles` of what was expected, `surprise` (a p-value before calibration), `state_mean`,
  `state_quantiles` and `ess`.
- `score(keys, x, mask, lengths[, inputs])`: `log_likelihood` of every row given those before it.
- `forecast(keys, x, mask, lengths[, inputs, future_inputs])`: `samples` [b, sample, horizon, column] of what follows.

A log-likelihood in raw units is that on the model's scale less the sum of log(scale) over the observed columns; a value
in raw units is value * scale + shift. A model whose proposal reads future rows has no `begin` and `step`.
"""
