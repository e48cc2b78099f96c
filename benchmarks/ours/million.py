"""Peak memory of the filter in a process that does nothing else: `python -m benchmarks.ours.million N T`."""

import json
import resource
import sys
import time

from benchmarks.ours.filtering import evidence


def main(particles: int, steps: int) -> None:
    task = evidence("linear-Gaussian", particles, steps, "systematic")
    started = time.perf_counter()
    value = float(task.call(0))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"log_evidence": value, "seconds": seconds, "peak_bytes": peak}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
