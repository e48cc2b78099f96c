"""Run an export where neither this package nor what it is made of can be imported: `read_export.py EXPORT IN OUT`."""

import re
import sys
import zipfile

BLOCKED = {"fivo", "equinox", "numpyro", "jaxtyping", "optax", "safetensors", "msgspec"}


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ImportError(f"{name} is blocked")


sys.meta_path.insert(0, Blocked())

import numpy as np  # noqa: E402

source, given, out = sys.argv[1:]
with zipfile.ZipFile(source) as archive:
    code = re.search(r"```python\n(.*?)```", archive.read("README.md").decode(), re.DOTALL)[1]
namespace = {}
exec(code, namespace)  # noqa: S102 - what the export's own words say
about, programs = namespace["read"](source)
arrays = dict(np.load(given))
keys, x, mask, lengths = arrays["keys"], arrays["x"], arrays["mask"], arrays["lengths"]
u = (arrays["inputs"],) if "inputs" in arrays else ()
future = (arrays["future_inputs"],) if "inputs" in arrays else ()
assert (namespace["keys_of"](0, len(keys)) == keys).all()
made = {
    "score": programs["score"](keys, x, mask, lengths, *u)["log_likelihood"],
    "forecast": programs["forecast"](keys, x, mask, lengths, *u, *future)["samples"],
}
state, rows = programs["begin"](keys), []
for t in range(x.shape[1]):
    state, row = programs["step"](state, x[:, t], mask[:, t], *(part[:, t] for part in u))
    rows.append(row)
made |= {f"step_{name}": np.stack([row[name] for row in rows], axis=1) for name in rows[0]}
np.savez(out, **{name: np.asarray(value) for name, value in made.items()})
print(about["model"], sorted(name for name in sys.modules if name.partition(".")[0] in BLOCKED))
