"""Who wrote the records of pods, and which pods are bound without."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.chaos.checker import books, terms
from tests.chaos.checker.history import Change
from tests.chaos.checker.log import Entry, Object
from tests.chaos.checker.terms import Terms, Violation
from tests.chaos.checker.times import Calm, Term


@dataclass(frozen=True, slots=True)
class _Opened:
    """A pod that was bound while nobody could be asked."""

    change: Change
    at: float


class Records:
    """Feed every change in order; then ask for those that nobody repaired."""

    def __init__(self, entries: Sequence[Entry], calm: Calm, given: Terms) -> None:
        self._calm = calm
        self._terms = given
        self._binds: dict[str, list[Entry]] = defaultdict(list)
        self._unsure: dict[str, list[Entry]] = defaultdict(list)
        self._told: dict[str, list[float]] = defaultdict(list)
        self._opened: dict[str, _Opened] = {}
        self._over: dict[str, float] = {}
        self.failed_open = 0
        self.judged = 0
        """Of how many that were bound without record a leader had to take care, with nobody to disturb it."""
        for entry in entries:
            self._sort(entry)

    def _sort(self, entry: Entry) -> None:
        about = f"{entry.namespace}/{entry.name}"
        if entry.resource == "pods/binding":
            self._binds[about].append(entry)
            self.failed_open += entry.accepted and bool(entry.failed_open)
        elif (
            entry.resource.partition("/")[0] == "pods"
            and entry.uncertain
            and entry.user == self._terms.controller
        ):
            self._unsure[about].append(entry)
        elif entry.resource == "events" and entry.user == self._terms.controller and entry.accepted:
            regarding = entry.response.get("regarding") or entry.response.get("involvedObject") or {}
            self._told[regarding.get("uid", "")].append(entry.ended)

    def at(self, change: Change) -> Iterator[Violation]:
        """What is wrong with this change."""
        if change.kind != "pods":
            return
        if change.after is None:
            self._over[change.uid] = change.entry.ended
            return
        if books.ended(change.after) or books.terminating(change.after):
            self._over.setdefault(change.uid, change.entry.ended)
        yield from self._written(change, change.after)
        if not books.node_of(change.after) or not books.is_ours(change.after):
            return
        if change.before is None or not books.node_of(change.before):
            yield from self._bound(change, change.after)
        elif change.uid in self._opened and not _lacking(change.after):
            self._over.setdefault(change.uid, change.entry.ended)

    def _written(self, change: Change, pod: Object) -> Iterator[Violation]:
        was, now = _records(change.before), _records(pod)
        differ = sorted(key for key in was.keys() | now.keys() if was.get(key) != now.get(key))
        if not differ or change.entry.user == self._terms.controller or self._explained(change, now, differ):
            return
        if _asks_for(change.entry, differ):
            text = f"{', '.join(differ)} written by {change.entry.user}"
        else:
            text = f"{', '.join(differ)} changed, and the log does not show by whom"
        yield Violation("record", change.entry.ended, change.about, text, change.proof)

    def _explained(self, change: Change, now: Mapping[str, str], differ: Sequence[str]) -> bool:
        """Whether the controller wrote that with a bind, or by a write of which the log has no answer."""
        if _asks_for(change.entry, differ):
            return False
        granted: dict[str, str] = {}
        for bind in self._binds[change.about]:
            if bind.began <= change.entry.ended and (bind.accepted or bind.uncertain):
                granted |= _granted(bind)
        if all(key in granted and granted[key] == now.get(key) for key in differ):
            return True
        since = change.known_by.ended if change.known_by else 0.0
        unsure = any(
            since <= each.ended and each.began <= change.entry.ended for each in self._unsure[change.about]
        )
        return unsure or self._calm.blind(since, change.entry.ended)

    def _bound(self, change: Change, pod: Object) -> Iterator[Violation]:
        """A pod is seen bound for the first time."""
        entry = change.entry
        if books.gated(pod):
            yield Violation(
                "bind", entry.ended, change.about, "bound while it waits at the gate", change.proof
            )
        lacking = _lacking(pod)
        if not lacking:
            return
        uid = change.uid
        binds = [
            bind for bind in self._binds[change.about] if bind.began <= entry.ended and _is_of(bind, uid)
        ]
        open_ = [bind for bind in binds if bind.accepted and bind.failed_open]
        since = change.known_by.ended if change.known_by else 0.0
        if open_ or (not any(bind.accepted for bind in binds) and self._calm.blind(since, entry.ended)):
            self._opened[uid] = _Opened(change, min((bind.ended for bind in open_), default=entry.ended))
            return
        proof = (*change.proof, *(bind.number for bind in binds))
        text = f"bound without {', '.join(lacking)}, and no webhook was passed over"
        yield Violation("bind", entry.ended, change.about, text, proof)

    def unrepaired(self, reigns: Sequence[Term]) -> Iterator[Violation]:
        """Those that were bound while nobody could be asked, and of which a leader took no care in time."""
        for uid, opened in self._opened.items():
            due, holder = self._due(uid, opened, reigns)
            if not holder:
                continue
            self.judged += 1
            if self._over.get(uid, due + 1) > due and not any(
                opened.at <= at <= due for at in self._told[uid]
            ):
                text = f"bound without its record, and not repaired or told by {due:.3f} under {holder}"
                yield Violation("repair", due, opened.change.about, text, opened.change.proof)

    def _due(self, uid: str, opened: _Opened, reigns: Sequence[Term]) -> tuple[float, str]:
        """By when the first leader that nobody disturbed had to take care, and who that was; "" for none."""
        for reign in reigns:
            since = self._calm.calm_from(max(opened.at, reign.began), self._terms.prompt_s)
            due = since + self._terms.prompt_s
            if due <= reign.ended:
                return due, reign.holder
        return 0.0, ""

    @property
    def opened(self) -> int:
        """How many pods were bound without record while nobody could be asked."""
        return len(self._opened)


def _records(pod: Object | None) -> dict[str, str]:
    return {key: value for key, value in books.annotations(pod or {}).items() if terms.is_record(key)}


def _lacking(pod: Object) -> list[str]:
    """The records that a bound pod should have and has not."""
    wanted = [terms.CHARGED] + [terms.INDEX_OF + share.container for share in books.shares(pod)]
    if books.alternatives(pod):
        wanted.append(terms.ASSIGNED)
    if books.claiming(pod):
        wanted.append(terms.CLAIMS)
    return [key for key in wanted if key not in books.annotations(pod)]


def _asks_for(entry: Entry, keys: Sequence[str]) -> bool:
    """Whether the request itself carries one of these annotations; a whole object does if it has another value than before."""
    if entry.verb == "list" or entry.request is None or entry.resource == "pods/binding":
        return False
    text = json.dumps(entry.request)
    return any(key in text or key.replace("/", "~1") in text for key in keys)


def _is_of(bind: Entry, uid: str) -> bool:
    named = ((bind.request or {}).get("metadata") or {}).get("uid")
    return not named or named == uid


def _granted(bind: Entry) -> dict[str, str]:
    """The annotations that admission put into a Binding."""
    found: dict[str, str] = {}
    for key, text in bind.notes.items():
        if not key.startswith("patch.webhook."):
            continue
        for operation in json.loads(text).get("patch") or ():
            found |= _annotated(operation)
    return found


def _annotated(operation: Mapping[str, Any]) -> dict[str, str]:
    parent, under = "/metadata/annotations", operation["path"]
    if operation["op"] == "remove":
        return {}
    if under == parent:
        return dict(operation["value"])
    if under.startswith(parent + "/"):
        key = under.removeprefix(parent + "/").replace("~1", "/").replace("~0", "~")
        return {key: operation["value"]}
    return {}
