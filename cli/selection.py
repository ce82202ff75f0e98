"""Which rows of a long table are shown: by namespace, queue and labels, and how many."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.errors import CommandError
from cli.output import printable
from cli.suggestions import instead

if TYPE_CHECKING:
    from cli.kinds import ObjectKind
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
    add_labelled(parser, "pods")


def add_labelled(parser: argparse.ArgumentParser, what: str) -> None:
    """`-l` and `--limit`, for a table of these."""
    parser.add_argument(
        "-l", "--selector", metavar="SELECTOR", help=f"only {what} with these labels, as for kubectl"
    )
    parser.add_argument("--limit", metavar="N", type=_count, help=f"no more than so many {what}")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:10]) <= 10**9:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text[:40]!r}")
    return int(text)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is shown, by key, and how many more there would be."""

    shown: dict[str, Any]
    left_out: int
    what: str
    """In the plural."""

    def tell(self) -> None:
        """Says on standard error that there is more."""
        if self.left_out:
            rows = f"{self.what} are" if self.left_out > 1 else f"{self.what.removesuffix('s')} is"
            print(f"note: {self.left_out:,} more {rows} not shown (--limit)", file=sys.stderr)


def of_pods(options: argparse.Namespace, state: "State", pods: Mapping[str, Mapping[str, Any]]) -> Chosen:
    """Those of the pods of a report that the options ask for. Raises CommandError for a selector that is none."""
    labels = {pod.key: pod.labels for pod in state.pods} if options.selector is not None else {}
    found = {
        key: pod
        for key, pod in pods.items()
        if (options.namespace is None or key.partition("/")[0] == options.namespace)
        and (options.queue is None or pod["queue"] in options.queue)
    }
    return _labelled(options, found, labels, "pods")


def of_nodes(options: argparse.Namespace, state: "State", nodes: Mapping[str, Any]) -> Chosen:
    """Those of the nodes of a report that `-l` and `--limit` ask for. Raises CommandError."""
    from cli.kinds import NODE

    return _labelled(options, nodes, _labels(state, NODE), "nodes")


def of_labelled_queues(options: argparse.Namespace, state: "State", queues: Mapping[str, Any]) -> Chosen:
    """Those of the queues that `--queue`, `-l` and `--limit` ask for. Raises CommandError."""
    from cli.kinds import QUEUE

    return _labelled(options, of_queues(options, queues), _labels(state, QUEUE), "queues")


def matcher(options: argparse.Namespace) -> Callable[[Mapping[str, str]], bool]:
    """Whether `-l` asks for something with these labels. Raises CommandError for a selector that is none."""
    from core.label_selector import SelectorError, parse

    if options.selector is None:
        return lambda _labels: True
    try:
        return parse(options.selector).selects
    except SelectorError as error:
        raise CommandError(
            f"-l {options.selector[:80]!r}: {error}",
            "write it as for kubectl: key=value, key!=value, key in (a, b), key, !key",
        ) from error


def _labels(state: "State", kind: "ObjectKind") -> dict[str, Mapping[str, str]]:
    from core.objects import raw as read

    return {name: read.texts(raw, "metadata", "labels") for name, raw in state.raw.get(kind, {}).items()}


def _labelled(
    options: argparse.Namespace, items: Mapping[str, Any], labels: Mapping[str, Mapping[str, str]], what: str
) -> Chosen:
    matches = matcher(options)
    found = {key: item for key, item in items.items() if matches(labels.get(key, {}))}
    shown = dict(list(found.items())[: options.limit])
    return Chosen(shown, len(found) - len(shown), what)


def of_queues(options: argparse.Namespace, queues: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the queues that the options ask for. Raises CommandError for one that nobody knows."""
    if options.queue is None:
        return dict(queues)
    missing: Iterable[str] = [name for name in options.queue if name not in queues]
    for name in missing:
        raise CommandError(
            f"there is no queue {printable(name)}, and no pod names it{instead(name, queues)}",
            "`cardquota queues -o name` lists the queues",
        )
    return {name: queue for name, queue in queues.items() if name in options.queue}
