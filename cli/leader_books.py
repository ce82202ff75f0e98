"""What the leader says that queues use: asked for, kept in a dump, and held against what their pods use."""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cli.errors import UnavailableError
from cli.verdicts import Verdict, verdicts
from core.objects import raw as read
from core.quantity import QuantityError, milli, render_milli

if TYPE_CHECKING:
    from cli.inspection import Inspection
    from cli.state import State

Raw = Mapping[str, Any]

CHECK: Final = "leader's books"
API_VERSION: Final = "cardquota.io/v1"
KIND: Final = "LeaderBooks"
"""Of the object in a dump. No API server knows it, and no decision looks at it."""

_ALLOCATED: Final = "volcano_queue_card_allocated"
_DRIFT: Final = "cardquota_ledger_drift"
_ANSWER, _METRICS = "answer", "metrics"


class BooksError(Exception):
    """What the leader has shown are no books; `str()` says why."""


@dataclass(frozen=True, slots=True)
class LeaderBooks:
    """What is in use by queue and key, in thousandths."""

    figures: Mapping[tuple[str, str], int]
    drift: int
    """Places that its own audit has found wrong."""
    cards_alone: bool = False
    """Whether nothing is said of shares and devices."""
    changing: Collection[str] = ()
    """Queues whose figures changed while the pods were read."""


def of_answer(answer: Raw) -> LeaderBooks:
    """The books as the leader answers: cards, shares and devices. Raises BooksError."""
    figures = {}
    for queue, parts in read.entries(answer, "queues"):
        for key, amount in read.entries(parts, "allocated"):
            try:
                figures[queue, key] = milli(amount)
            except QuantityError as error:
                raise BooksError(f"queue {queue}: {key} is {amount!r}, which is no amount") from error
    drift = answer.get("drift")
    return LeaderBooks(figures, drift if isinstance(drift, int) else 0)


def of_metrics(page: str) -> LeaderBooks:
    """The books as the leader's page of metrics shows them. Raises BooksError."""
    from prometheus_client.parser import text_string_to_metric_families

    figures = {}
    drift = 0.0
    try:
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                if sample.name == _ALLOCATED:
                    figures[sample.labels["queue_name"], sample.labels["card"]] = round(sample.value * 1000)
                elif sample.name == _DRIFT:
                    drift += sample.value
    except (ValueError, KeyError) as error:
        raise BooksError(f"the leader's metrics cannot be read: {error}") from error
    return LeaderBooks(figures, round(drift), cards_alone=True)


def compared(books: LeaderBooks, own: Mapping[tuple[str, str], int] | None) -> list[Verdict]:
    """The books against `own`, what is in use as counted here; None where that cannot be counted."""
    wrong = [f"its own audit has found {books.drift} places that are wrong"] if books.drift else []
    unsteady = set()
    for queue, key in sorted(books.figures.keys() | own.keys()) if own is not None else ():
        if books.cards_alone and (queue, key) not in books.figures:
            continue
        has, counted = books.figures.get((queue, key), 0), (own or {}).get((queue, key), 0)
        if has == counted:
            continue
        if queue in books.changing:
            unsteady.add(queue)
            continue
        wrong.append(f"queue {queue}: {render_milli(has)} of {key}, and its pods use {render_milli(counted)}")
    if unsteady and not wrong:
        queues = ", ".join(sorted(unsteady))
        return [Verdict(CHECK, "unknown", f"they changed while the pods were read: queue {queues}")]
    # Who may not list all pods has the leader's own comparison with them.
    by = (
        "the pods"
        if own is not None
        else "its own audit; the pods cannot be counted by what may be listed here"
    )
    return verdicts(CHECK, wrong, f"{len(books.figures)} figures agree with {by}")


# -- in a dump -------------------------------------------------------------------------------------------------------


def asked(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """The books of the live cluster as an object, and why there are none where it is empty."""
    from cli import cluster, inspection, installation

    state = cluster.installed(options)
    if not installation.found(state) and not state.settings_hidden:
        return {}, "nothing is installed"
    if state.unled:
        return {}, f"nobody leads: {state.unled}"
    home, leader = installation.home_of(state), installation.leader_of(state)
    try:
        found = inspection.books(options.kubeconfig, options.context, home, leader)
        status = _status(found, leader)
    except (UnavailableError, BooksError) as error:
        return {}, str(error)
    if not status:
        return {}, not_asked(found)
    metadata = {"name": installation.NAME, "namespace": home}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "status": status}, ""


def not_asked(found: "Inspection") -> str:
    """Why the leader has shown nothing."""
    return f"{found.books_failure}; its metrics: {found.page_failure}"


def _status(found: "Inspection", leader: str) -> dict[str, Any]:
    if found.books:
        return {"source": _ANSWER, **found.books}
    if found.page is None:
        return {}
    books = of_metrics(found.page)
    queues: dict[str, dict[str, Any]] = {}
    for (queue, key), amount in sorted(books.figures.items()):
        queues.setdefault(queue, {"allocated": {}})["allocated"][key] = render_milli(amount)
    return {"source": _METRICS, "leader": leader, "queues": queues, "drift": books.drift}


def marked(books: dict[str, Any], before: Raw) -> dict[str, Any]:
    """The object with the queues named whose figures are not those of `before`."""
    old, new = (read.mapping(read.mapping(one, "status"), "queues") for one in (before, books))
    changing = sorted(
        name
        for name in old.keys() | new.keys()
        if read.mapping(old, name, "allocated") != read.mapping(new, name, "allocated")
    )
    return {**books, "status": {**books["status"], "changing": changing}}


def of_state(state: "State", own: Mapping[tuple[str, str], int] | None) -> list[Verdict]:
    """What is said of the books that a dump holds; nothing where it holds none."""
    from cli.kinds import BOOKS

    told = []
    for raw in state.raw.get(BOOKS, {}).values():
        status = read.mapping(raw, "status")
        changing = [name for name in read.sequence(status, "changing") if isinstance(name, str)]
        try:
            books = of_answer(status)
        except BooksError as error:
            told.append(Verdict(CHECK, "unknown", str(error)))
            continue
        cards_alone = read.text(status, "source") == _METRICS
        told += compared(LeaderBooks(books.figures, books.drift, cards_alone, changing), own)
    return told
