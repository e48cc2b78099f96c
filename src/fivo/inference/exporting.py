"""A trained model as programs that JAX runs without this package: `jax.export` of `step`, `score` and `forecast`.

One file holds everything that a reader needs: a ZIP archive of serialised StableHLO programs, `about.json` (columns,
scales, shapes, checksums) and `README.md` (how to call them). Nothing in it is a pickle.
"""

import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import msgspec

from fivo import __version__
from fivo._scoring import weights_dtype
from fivo.config import fuse
from fivo.data import Column, TableSchema
from fivo.errors import InputError
from fivo.extras import require
from fivo.files import write_atomically
from fivo.inference.exported import README, described
from fivo.inference.programs import Programs
from fivo.models import SequenceModel, check_kind, check_streams

FORMAT = "fivo-export"
VERSION = 1
PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def export_model(
    path: str | os.PathLike,
    model: SequenceModel,
    *,
    columns: Sequence[Column],
    input_columns: Sequence[Column] = (),
    schema: TableSchema | None = None,
    num_particles: int = 100,
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
    horizon: int = 24,
    num_samples: int = 200,
    platforms: Sequence[str] = ("cpu",),
    progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> dict[str, Any]:
    """Write a model as programs of any batch size that are read with JAX and flatbuffers alone.

    Args:
        path: The file, such as model.stablehlo.
        model: The model; of a `LinearGaussian`, `step` and `score` are its exact filter. One whose proposal reads
            future frames has no `begin` and `step`.
        columns: What the entries of a frame are.
        input_columns: What the inputs are.
        schema: How the table was read that the model was trained on, if it was one.
        num_particles: Of the filters.
        quantiles: Which quantiles `step` returns.
        horizon: How many rows `forecast` draws.
        num_samples: Draws of `forecast` for each sequence.
        platforms: What the programs run on, of cpu, cuda, rocm and tpu; the hardware need not be there.
        progress: Called with what is being done, how many programs are done, and their number.

    Returns:
        What `about.json` in the file holds.
    """
    check_kind(model)
    check_streams(model)
    _check(path, num_particles, quantiles, horizon, num_samples, platforms)
    require("flatbuffers", "Exports")
    from jax import export

    programs = Programs(model, len(columns), len(input_columns), num_particles, tuple(quantiles), horizon, num_samples)
    written: dict[str, bytes] = {}
    entries: dict[str, Any] = {}
    # The plain programs: those rewritten for speed have fixed sizes and a special kind of keys.
    with fuse(False):
        signatures = programs.signatures(*export.symbolic_shape("b, t"))
        for done, (name, signature) in enumerate(signatures.items()):
            progress(f"exporting {name}", done, len(signatures))
            made = export.export(jax.jit(signature.function), platforms=tuple(platforms))(*signature.arguments.values())
            content = bytes(made.serialize())
            returned = jax.tree.unflatten(made.out_tree, made.out_avals)
            file = f"{name}.bin"
            written[file] = content
            entries[name] = {
                "file": file,
                "sha256": hashlib.sha256(content).hexdigest(),
                "arguments": {key: described(value) for key, value in signature.arguments.items()},
                "returns": described(returned),
            }
        progress("exporting", len(signatures), len(signatures))
    about = {
        "format": FORMAT,
        "version": VERSION,
        "fivo": __version__,
        "jax": jax.__version__,
        "model": type(model).__name__,
        "dtype": weights_dtype(model).name,
        "platforms": list(platforms),
        "num_particles": num_particles,
        "quantiles": list(quantiles),
        "horizon": horizon,
        "num_samples": num_samples,
        "columns": [_column(column) for column in columns],
        "inputs": [_column(column) for column in input_columns],
        "table": None if schema is None else msgspec.to_builtins(schema),
        "programs": entries,
    }
    text = json.dumps(about, indent=1, allow_nan=False).encode()
    write_atomically(path, _archive({"README.md": README.encode(), "about.json": text, **written}))
    return about


def _archive(files: dict[str, bytes]) -> bytes:
    """A ZIP of the same bytes for the same content, whenever it is made."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return whole.getvalue()


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "kind": column.kind,
        "shift": column.shift,
        "scale": column.scale,
        "categories": list(column.categories),
    }


def _check(
    path: str | os.PathLike,
    num_particles: int,
    quantiles: Sequence[float],
    horizon: int,
    num_samples: int,
    platforms: Sequence[str],
) -> None:
    if Path(path).is_dir():
        raise InputError(f"an export is written to a file, but {str(path)!r:.80} is a folder; name a file in it.")
    for name, number, least in (
        ("num_particles", num_particles, 2),
        ("horizon", horizon, 1),
        ("num_samples", num_samples, 1),
    ):
        if not isinstance(number, int) or isinstance(number, bool) or number < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {number!r:.60}.")
    if not quantiles or not all(0 < level < 1 for level in quantiles):
        raise InputError(f"quantiles must be numbers between 0 and 1, got {list(quantiles)!r:.60}.")
    if not platforms or isinstance(platforms, str) or not set(platforms) <= set(PLATFORMS):
        raise InputError(f"platforms must be some of {', '.join(PLATFORMS)}, got {platforms!r:.60}.")
