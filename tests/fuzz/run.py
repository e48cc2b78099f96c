"""Fuzz one reader in this process: `python -m tests.fuzz.run npz --cases 10000 --seed 1`.

A case is a damaged file. The reader may read it or refuse it with one sentence, within the budget of memory, within a
few seconds and without executing anything; whatever else happens is a finding.
"""

import argparse
import faulthandler
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from fivo.data import budget
from fivo.errors import InputError
from tests.fuzz.targets import TARGETS, describe

SECONDS = 5.0
SLACK = 48 << 20
WARM_UP = 60
SHOWN = 5
EXECUTING = {
    *(
        "exec",
        "compile",
        "import",
        "code.__new__",
        "ctypes.dlopen",
        "marshal.load",
        "marshal.loads",
        "pickle.find_class",
    ),
    *("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen", "pty.spawn"),
}


def memory(key: str) -> int:
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith(key))


class Watch:
    """Notes what is executed, and what is written outside of the folder that tests may write to; cuts the network."""

    def __init__(self, folder: str) -> None:
        self.folder, self.noted, self.awake = folder, [], False
        sys.addaudithook(self.hear)

    def hear(self, event: str, arguments: tuple) -> None:
        if event in ("socket.getaddrinfo", "socket.connect"):
            host = arguments[0] if event == "socket.getaddrinfo" else arguments[1][0]
            if host != "127.0.0.1":
                raise ConnectionRefusedError(f"tests talk to this machine only, not to {host!r:.80}")
        if not self.awake:
            return
        if event in EXECUTING:
            self.noted.append(f"{event} {arguments!r:.80}")
        elif event == "open" and isinstance(arguments[0], (str, bytes)) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith(self.folder):
                self.noted.append(f"writes {path:.80}")


def problem(name: str, content: bytes, folder: Path, watch: Watch, most: int) -> tuple[str, bool]:
    """What is wrong with how a case was handled, or nothing; and whether it was read."""
    start, read = time.thread_time(), False
    watch.noted, watch.awake = [], True
    found = ""
    try:
        TARGETS[name].read(content, folder)
        read = True
    except InputError as error:
        text = str(error)
        if "\n" in text or not text.endswith((".", "?")) or len(text) > 1_000:
            found = f"not one sentence: {text[:200]!r}"
    except BaseException as error:
        found = f"{type(error).__name__}: {error!s:.200}"
    watch.awake = False
    seconds = time.thread_time() - start
    if watch.noted:
        found = f"executed: {watch.noted[0]}"
    elif seconds > SECONDS:
        found = f"took {seconds:.1f} s"
    elif memory("VmHWM") > most:
        found = f"memory rose to {memory('VmHWM') >> 20} MiB"
    return found, read


def fuzz(name: str, cases: int, seed: int) -> dict:
    target = TARGETS[name]
    os.fsync = lambda descriptor: None  # what is written need not survive a loss of power
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        os.environ.update(XDG_CACHE_HOME=f"{place}/cache", no_proxy="*")
        folder = Path(place, "files")
        folder.mkdir()
        watch = Watch(os.path.realpath(place))
        seeds = target.seeds()
        for content in seeds:
            if name not in ("http", "names", "cache-facts", "cache-frames"):
                target.read(content, folder)  # valid: must be read
        for case in range(WARM_UP):  # imports what is imported late
            problem(name, target.damage(seeds, Random(f"warm {case}")), folder, watch, sys.maxsize)
        most = memory("VmRSS") + budget.MEMORY + SLACK
        worst, accepted, findings = 0.0, 0, []
        for case in range(cases):
            content = target.damage(seeds, Random(f"{seed} {case}"))
            faulthandler.dump_traceback_later(60, exit=True)
            start = time.thread_time()
            found, read = problem(name, content, folder, watch, most)
            worst, accepted = max(worst, time.thread_time() - start), accepted + read
            if found:
                findings.append(f"case {case}: {found}; {describe(content)}")
                if len(findings) == SHOWN:
                    break
        faulthandler.cancel_dump_traceback_later()
        peak = memory("VmHWM") - (most - budget.MEMORY - SLACK)
        os.chdir("/")
    return {"cases": cases, "read": accepted, "worst": worst, "peak": peak, "findings": findings}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory", type=int, default=budget.MEMORY, help="the budget in bytes")
    options = parser.parse_args()
    budget.MEMORY = options.memory
    hard = memory("VmSize") + options.memory + (2 << 30)  # keeps the machine alive should a reader fail
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    print(json.dumps(fuzz(options.target, options.cases, options.seed)))


if __name__ == "__main__":
    main()
