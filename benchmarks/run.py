"""All benchmarks in one run: `make bench`, or `python benchmarks/run.py --only training_step --quick`.

Writes build/bench.json (a list of rows) and build/bench.md (the same as a table), and prints the table.
"""

import argparse
import importlib
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # run as a script, only its own folder would be found

from benchmarks.harness.environment import NoPeersError, peers_python  # noqa: E402
from benchmarks.harness.rows import Row, markdown, write_rows  # noqa: E402
from benchmarks.harness.session import Session  # noqa: E402

MODULES = ("training_step", "speech", "machine", "filtering", "scaling", "growth", "end_to_end")


def main() -> int:
    """0 when everything of ours ran."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=MODULES, nargs="+", default=MODULES, help="run these alone")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and few repetitions: to see that it works")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench.json", help="where the rows go")
    options = parser.parse_args()
    session = start_session(options.quick)
    rows: list[Row] = []
    try:
        for name in options.only:
            started = time.monotonic()
            print(f"{name} ...", file=sys.stderr, flush=True)
            try:
                rows += importlib.import_module(f"benchmarks.{name}").run(session)
            except Exception as error:  # what was measured so far is kept, and the other benchmarks still run
                traceback.print_exc()
                session.failed.append(f"{name}: {type(error).__name__}: {error}")
            write_rows(options.output, rows)
            print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    finally:
        session.close()
    table = markdown(rows)
    options.output.with_suffix(".md").write_text(table + "\n")
    print(table)
    for note in session.skipped:
        print(f"skipped: {note}")
    for note in session.failed:
        print(f"FAILED: {note}")
    missed = [f"{row.work}, {row.size}, {row.peer}" for row in rows if row.reached is False]
    print(f"{len(rows)} rows, {sum(row.reached is True for row in rows)} goals reached, {len(missed)} missed")
    for name in missed:
        print(f"missed: {name}")
    return 1 if session.failed else 0


def start_session(quick: bool) -> Session:
    """With the peers' environment, or with the reason why there is none."""
    try:
        return Session(quick, peers_python())
    except NoPeersError as error:
        print(f"without peers: {error}", file=sys.stderr, flush=True)
        return Session(quick, None, why_no_peers=str(error))


if __name__ == "__main__":
    sys.exit(main())
