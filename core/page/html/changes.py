"""What has changed in the last hour."""

from typing import Final

from core.page.html.marks import (
    Markup,
    body,
    built,
    cell,
    counted,
    head,
    moment,
    named,
    row,
    section,
    table,
    tag,
)
from core.page.view import Change, Changes, QuotaChange
from core.steps import Steps

_WORDS: Final = {"came": "came", "started": "got its node", "ended": "ended", "gone": "was deleted"}


def changes(found: Changes) -> Steps[Markup]:
    """The part about the last hour."""
    where = f" of namespace {found.namespace}" if found.namespace else ""
    parts = list[Markup]()
    if found.latest:
        told = (
            f"{counted(found.came, 'pod')}{where} came, {found.started:,} got a node, {found.ended:,} ended"
        )
        told += f", {found.gone:,} {'was' if found.gone == 1 else 'were'} deleted." if found.known else "."
        rows = yield from built(_row(one) for one in found.latest)
        parts.append(tag("p", told, class_="note"))
        parts.append(table("The latest changes", ("Pod", "What", "Queue", "When"), [body(rows)]))
    if found.quotas:
        rows = yield from built(_quota(one) for one in found.quotas)
        parts.append(tag("p", "Changed quotas, the latest first.", class_="note"))
        parts.append(table("The latest quotas", ("Queue", "Quota", "When"), [body(rows)]))
    if not parts:
        parts.append(tag("p", f"Nothing has changed{where}."))
    if not found.known:
        parts.append(tag("p", "Deleted pods and changed quotas are not known here.", class_="note"))
    elif found.known > found.since:
        known = "Deleted pods and changed quotas are known since "
        parts.append(tag("p", known, moment(found.known), ".", class_="note"))
    return section("changes", "The last hour", *parts)


def _quota(one: QuotaChange) -> Markup:
    return row(
        head(one.queue), cell(one.what, label="Quota"), cell(moment(one.at), label="When", class_="number")
    )


def _row(one: Change) -> Markup:
    return row(
        head(one.pod),
        cell(_WORDS.get(one.what, one.what), label="What"),
        cell(named(one.queue), label="Queue"),
        cell(moment(one.at), label="When", class_="number"),
    )
