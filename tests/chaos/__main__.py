"""`python -m tests.chaos --seed 1 --minutes 3`: random load under random faults, judged by the API server's audit log."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.chaos.checker import Verdict
from tests.chaos.plan import FAULTS, draw
from tests.chaos.run import Bed, carry_out, judged


def main() -> int:
    """Exit status: 0 when it came to rest, was judged there, and nothing is broken."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of which everything is drawn that is done")
    parser.add_argument(
        "--minutes", type=float, default=3.0, help="how long; rest afterwards takes a minute or two more"
    )
    parser.add_argument(
        "--only", nargs="*", choices=sorted(FAULTS), help="these faults alone; none: no faults"
    )
    parser.add_argument("--logs", type=Path, help="an empty folder for the logs of all processes")
    parser.add_argument(
        "--judge", type=Path, help="judge the logs of an earlier run in this folder, and do nothing else"
    )
    given = parser.parse_args()
    if given.judge:
        return report(judged(given.judge), {})
    kinds = FAULTS if given.only is None else {kind: FAULTS[kind] for kind in given.only}
    plan = draw(given.seed, given.minutes * 60, kinds)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    with Bed.made(say, given.logs) as bed:
        outcome = carry_out(bed, plan, say)
    print(f"seed {given.seed}, {given.minutes:g} minutes, at rest after {outcome.rest_s:.0f} s")
    if outcome.unrest:
        print("it did not come to rest:", *outcome.unrest, sep="\n")
    faults = dict.fromkeys((f"fault: {kind}" for kind in kinds), 0)
    return max(report(outcome.verdict, {**faults, **outcome.done}), int(bool(outcome.unrest)))


def report(verdict: Verdict, done: Mapping[str, int]) -> int:
    """Prints what was done, covered and found, and returns the exit status. A log that was never judged at rest proves half."""
    # What was not covered is told as well: nothing was proved of it.
    for what, count in sorted({**done, **verdict.covered}.items()):
        print(f"{count:8} {what}")
    print(*verdict.violations or ["no violation"], sep="\n")
    if verdict.unrest:
        print(f"nothing was judged at rest: {verdict.unrest}")
        return 1
    return int(bool(verdict.violations))


if __name__ == "__main__":
    sys.exit(main())
