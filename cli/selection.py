"""Which rows of a long table are shown: by namespace, queue and labels, and how many."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.errors import CommandError

if TYPE_CHECKING:
    from cli.state import State


def add_queue(parser: argparse.ArgumentParser) -> None:
    """`--queue QUEUE`, as often as one likes."""
    parser.add_argument(
        "--queue", metavar="QUEUE", action="append", help="only this queue; may be given several times"
    )


def add_pods(parser: argparse.ArgumentParser) -> None:
    """`-n`, `--queue`, `-l` and `--limit`."""
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="only pods of this namespace")
    add_queue(parser)
    parser.add_argument(
        "-l", "--selector", metavar="SELECTOR", help="only pods with these labels, as for kubectl"
    )
    parser.add_argument("--limit", metavar="N", type=_count, help="no more than so many pods")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:10]) <= 10**9:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text[:40]!r}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The pods that are shown, by key, and how many more there would be."""

    pods: dict[str, Any]
    left_out: int

    def tell(self) -> None:
        """Says on standard error that there is more."""
        if self.left_out:
            print(f"note: {self.left_out:,} more pods are not shown (--limit)", file=sys.stderr)


def of_pods(options: argparse.Namespace, state: "State", pods: Mapping[str, Mapping[str, Any]]) -> Chosen:
    """Those of the pods of a report that the options ask for. Raises CommandError for a selector that is none."""
    from core.label_selector import SelectorError, parse

    try:
        selector = None if options.selector is None else parse(options.selector)
    except SelectorError as error:
        raise CommandError(f"-l {options.selector[:80]!r}: {error}") from error
    labels = {pod.key: pod.labels for pod in state.pods} if selector is not None else {}
    found = {
        key: pod
        for key, pod in pods.items()
        if (options.namespace is None or key.partition("/")[0] == options.namespace)
        and (options.queue is None or pod["queue"] in options.queue)
        and (selector is None or selector.selects(labels.get(key, {})))
    }
    shown = dict(list(found.items())[: options.limit])
    return Chosen(shown, len(found) - len(shown))


def of_queues(options: argparse.Namespace, queues: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the queues that the options ask for. Raises CommandError for one that nobody knows."""
    if options.queue is None:
        return dict(queues)
    missing: Iterable[str] = [name for name in options.queue if name not in queues]
    for name in missing:
        raise CommandError(f"there is no queue {name}, and no pod names it")
    return {name: queue for name, queue in queues.items() if name in options.queue}
