"""How cost grows with the cluster: each path at three sizes, four times as large each, and the exponent that fits.

Everything grows together: of `n` pods four in ten run, the others wait; there is a node for every 20 of them and a queue for
every 200. An exponent of 1 is cost in proportion, 0 is cost that does not depend on the cluster.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Final, TypeVar

from core.binding.binder import Binder
from core.crossquota.book import guest_book
from core.display.status import published
from core.extender import kube
from core.extender.cluster import Cluster
from core.queues.ledger import Ledger
from core.settings import Settings
from core.steps import finish
from hack.bench import samples
from hack.bench.clock import cpu_ms, settled
from hack.bench.effort import FULL, Effort
from hack.bench.quota import Case, Shape, filled
from hack.bench.report import Row, Target

_FLOOR_IS: Final = (
    "the exponent of a loop over the waiting pods that looks one number up in a dictionary and compares it, at the same sizes: "
    "what memory alone adds to cost in proportion"
)
_WITH_THE_CLUSTER: Final = Target("figure", "<=", 1.3)
"""n log n from the smallest to the largest size, and memory that no cache holds any more."""
_PER_EVENT: Final = Target("figure", "<=", 0.35)
_EVENTS: Final = 40
"""So many of an event are measured together: one is too short for the clock."""
_BEYOND: Final = 200_000


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Path:
    """What is measured: milliseconds at each size, and what the exponent must not exceed."""

    what: str
    target: Target
    times: int = 1
    """How often it was done for the figure."""


_PATHS: Final[Mapping[str, _Path]] = {
    "built": _Path("all objects taken in", _WITH_THE_CLUSTER),
    "held": _Path("a full pass in which all wait for quota", _WITH_THE_CLUSTER),
    "lifted": _Path("a full pass that lifts all", _WITH_THE_CLUSTER),
    "freed": _Path("one freed card", _PER_EVENT),
    "pods": _Path("events of pods", _PER_EVENT, _EVENTS),
    "nodes": _Path("events of nodes", _PER_EVENT, _EVENTS),
    "binds": _Path("binds of lifted pods, judged", _PER_EVENT, _EVENTS),
    "status": _Path("Queue status, worked out", _PER_EVENT, _EVENTS),
    "filter": _Path("a scheduler's question about every node", _WITH_THE_CLUSTER),
}


def run(effort: Effort, progress: Callable[[str], None]) -> list[Row]:
    """A row for each path: the exponent, with the milliseconds at each size and what they are at 200,000 pods."""
    sizes = [effort.pods // 16, effort.pods // 4, effort.pods]
    found: list[Mapping[str, float]] = []
    for size in sizes:
        progress(f"{size:,} pods")
        found.append(_measured(size, effort))
    floor = _exponent(sizes, [each["floor"] for each in found])
    return [_row(path, sizes, [each[key] for each in found], floor) for key, path in _PATHS.items()]


def _row(path: _Path, sizes: Sequence[int], costs: Sequence[float], floor: float) -> Row:
    exponent = _exponent(sizes, costs)
    shown = " / ".join(f"{cost / path.times:.3g}" for cost in costs)
    beyond = costs[-1] / path.times * (_BEYOND / sizes[-1]) ** exponent
    at = " / ".join(f"{size:,}" for size in sizes)
    return Row(
        benchmark="growth",
        what=f"{path.what}: {shown} ms at {at} pods, {beyond:.3g} ms at {_BEYOND:,} by the fit",
        figure=exponent,
        floor=floor,
        ratio=exponent / floor if floor else math.inf,
        unit="exponent",
        floor_is=_FLOOR_IS,
        target=path.target if sizes[-1] >= FULL.pods else None,
    )


def _exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The slope of the line that fits best where both axes are logarithmic; 0 for what falls."""
    x = [math.log(size) for size in sizes]
    y = [math.log(max(cost, 1e-6)) for cost in costs]
    middle_x, middle_y = fmean(x), fmean(y)
    rise = sum((one - middle_x) * (other - middle_y) for one, other in zip(x, y, strict=True))
    return max(0.0, rise / sum((one - middle_x) ** 2 for one in x))


def _measured(size: int, effort: Effort) -> Mapping[str, float]:
    """Milliseconds of each path in a cluster of so many pods."""
    cluster = replace(effort, nodes=max(4, size // 20), queues=max(4, size // 200), waiting=size * 6 // 10)
    held, lifted = Shape("", 0), Shape("", cluster.waiting, waits=False)
    books: list[Ledger] = []
    costs = {"built": cpu_ms(lambda: books.append(filled(held, cluster)))}
    case = Case(books[0])
    rounds = min(3, effort.rounds)
    with settled():
        costs["floor"] = _middle(case.bare_loop, rounds)
        costs["held"] = _middle(case.full_pass, rounds)
        costs["freed"] = _middle(case.freed_card, rounds)
        costs |= _events(books[0])
        costs["lifted"] = _middle(Case(filled(lifted, cluster)).full_pass, rounds)
    return costs


def _middle(figure: Callable[[], float], rounds: int) -> float:
    return median(figure() for _ in range(rounds))


def _events(ledger: Ledger) -> dict[str, float]:
    """What happens all the time, each to pods, nodes and queues far apart."""
    settings, nodes = Settings(), tuple(ledger.nodes.values())
    pods = _far_apart([entry.pod for entry in ledger.entries()])
    guests = guest_book(nodes, (), settings)
    binder = Binder(ledger, guests, settings, lambda: None)
    changed = [replace(pod, priority=pod.priority + 1) for pod in pods]
    moved = [replace(node, labels={**node.labels, "bench": "1"}) for node in _far_apart(nodes)]
    bound = [samples.card_pod(f"new-{number}", 0, samples.product(number)) for number in range(_EVENTS)]
    asking = [
        pod.charged("q0").assigned({samples.product(number): 1}).view() for number, pod in enumerate(bound)
    ]
    queues = _far_apart(tuple(ledger.accounts))
    names = [node.name for node in nodes]
    asked = kube.request_of({"Pod": samples.web_pod("p").build(), "Nodes": None, "NodeNames": names})
    whole = Cluster(ledger, guests)
    return {
        "pods": cpu_ms(lambda: _each(ledger.put_pod, changed)),
        "nodes": cpu_ms(lambda: _each(ledger.put_node, moved)),
        "binds": cpu_ms(lambda: [binder.certain(pod, f"n{number}") for number, pod in enumerate(asking)]),
        "status": cpu_ms(lambda: [published(ledger.accounts[queue].allocated) for queue in queues]),
        "filter": cpu_ms(lambda: finish(kube.filter_answer(asked, finish(kube.verdicts(asked, whole))))),
    }


def _each(verb: Callable[[T], None], items: Sequence[T]) -> None:
    for item in items:
        verb(item)


def _far_apart(items: Sequence[T]) -> list[T]:
    """As many as are measured together, evenly spread."""
    step = max(1, len(items) // _EVENTS)
    return [items[(number * step) % len(items)] for number in range(_EVENTS)]
