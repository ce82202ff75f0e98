"""What `explain` says, for people: what it waits for first, the rest below it."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cli import output
from core import reasons
from core.answers.words import listed
from core.quantity import milli
from core.queues.attribution import Source

_MOST: Final = 5
_WIDTH: Final = 14
_FROM: Final = {
    Source.RECORD: "on record since it was let in",
    Source.GROUP: "named by its PodGroup",
    Source.JOB: "named by its Volcano Job",
    Source.JOB_ANNOTATION: "named by its Volcano Job, in the pod's annotation volcano.sh/queue-name",
    Source.ANNOTATION: "named by the pod's annotation scheduling.volcano.sh/queue-name",
    Source.NAMESPACE: "named by the annotation of its namespace",
    Source.DEFAULT: "the default, as nothing names a queue",
}
_STANDS: Final = {
    "lift": "is let in by the next pass of the controller",
    "reserved": "has its quota and no node yet: it waits for its scheduler",
    "allocated": "has its quota and a node",
    "ignored": "holds nothing and waits for nothing of cardquota's",
}

_LET_IN: Final = {**_STANDS, "reserved": "has its quota"}
"""The same of one that no node could ever hold."""


def render(report: Mapping[str, Any]) -> str:
    """The whole answer."""
    return "\n".join(output.printable(line) for line in _lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    counts = report["pods"]
    if not report["object"].startswith("Pod "):
        yield f"{report['object']}: {stands(counts)}"
    yield from refusals(report.get("refused", {}))
    if "pod" in report:
        yield from of_pod(report)


def stands(counts: Mapping[str, int]) -> str:
    """How many pods of a target stand how."""
    return ", ".join(f"{count} {_TOLD[decision]}" for decision, count in counts.items()) or "no pods"


def refusals(refused: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """What admission says of new pods, by key; of several of which it says the same once."""
    alike: dict[str, list[str]] = {}
    for key, why in refused.items():
        message = why["message"].removeprefix(f"Pod {key} is refused: ")
        alike.setdefault(f"{why['reason']}: {message}", []).append(key)
    for told, keys in alike.items():
        more = len(keys) - 1
        others = f" and {more} more pod{'' if more == 1 else 's'}" if more else ""
        yield f"Pod {keys[0]}{others} would be refused: {told}"


def of_pod(report: Mapping[str, Any]) -> Iterator[str]:
    """Everything on one pod."""
    decision = report["decision"]
    if decision == "hold" and "reason" not in report:
        yield f"Pod {report['pod']} waits in queue {report['queue']}: its turn has not come yet"
    elif "beyondNodes" in report:
        how = f"waits in queue {report['queue']}" if decision == "hold" else _LET_IN[decision]
        told = f"Pod {report['pod']} {how} and can never run: {report['beyondNodes']}"
        yield from output.wrapped("", told, "  ")
        if decision == "hold":
            yield from output.wrapped("  ", f"{report['reason']}: {report['message']}")
    elif decision == "hold":
        yield f"Pod {report['pod']} waits in queue {report['queue']}: {report['reason']}"
        yield from output.wrapped("  ", report["message"])
    elif "gates" in report:
        gates = ", ".join(report["gates"])
        yield f"Pod {report['pod']} has its quota and no node yet: no scheduler looks at it before its gates are gone: {gates}"
    else:
        yield f"Pod {report['pod']} {_STANDS[decision]}"
    facts = list(_facts(report))
    if facts:
        yield ""
        yield from facts
    if "remedy" in report:
        yield ""
        yield from _help(report)


_TOLD: Final = {
    "hold": "waiting",
    "lift": "about to be let in",
    "reserved": "let in, without a node",
    "allocated": "with a node",
    "ignored": "that hold nothing",
}


def noticed(report: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the card's name, in the words of admission."""
    for one in report.get("noticed", ()):
        yield from _wrapped("Noticed", f"{one['code']}: {one['path']}: {one['message']} -- {one['remedy']}")


def _facts(report: Mapping[str, Any]) -> Iterator[str]:
    yield from noticed(report)
    if "otherGates" in report:
        text = (
            f"held by {listed(report['otherGates'])}, and by none of cardquota's; once that is gone it is counted in its queue, "
            "and its bind is refused where the quota is short"
        )
        yield from _wrapped("Gates", text)
    if "queue" in report:
        yield queue_row(report)
    if report.get("counted"):
        yield row("Counted", _counted(report))
    if report.get("node"):
        yield row("Node", report["node"])
    if "since" in report:
        yield since_row(report)
    if "position" in report:
        yield from _position(report["position"])
    yield from _quota(report)
    for resource, one in report.get("capability", {}).items():
        text = (
            f"{resource}: pods of the queue hold {one['used']}, and its spec.capability allows {one['limit']}; "
            "both quotas hold, so Volcano's own keeps the pod until pods end"
        )
        yield from _wrapped("Capability", text)
    yield from _held(report)
    for card, stock in report.get("stock", {}).items():
        if not stock["nodes"]:
            yield row("Cards", f"{card}: no node carries any")
            continue
        closed = milli(stock["onClosedNodes"])
        best = (
            f", at most {stock['mostOnOneNode']} of a node's {stock['largestNode']} ({stock['bestNode']})"
            if stock["bestNode"]
            else ""
        )
        shut = (
            f"; {_amount(card, stock['onClosedNodes'])} more on nodes that take no pods now" if closed else ""
        )
        reserved = (
            f"; {_amount(card, stock['reserved'])} for pods without a node yet"
            if milli(stock["reserved"])
            else ""
        )
        yield row("Cards", f"{card}: {stock['free']} of {stock['total']} are free{best}{reserved}{shut}")
    for one in report.get("illLabelled", ()):
        more = one["nodes"] - 1
        others = f" and {more} more node{'' if more == 1 else 's'}" if more else ""
        yield from _wrapped("Passed over", f"node {one['node']}{others}: {one['message']}")
    if "start" in report:
        yield from _wrapped("May start", _start(report["start"]))
    if report.get("startUnknown"):
        yield from _wrapped("May start", f"nobody can say: {report['startUnknown']}")
    if "noRoom" in report:
        yield from _wrapped("Nodes", f"none has room now: {report['noRoom']}")
    for name, fit in report.get("nodes", {}).items():
        why = "; ".join(reason["message"] for reason in fit["reasons"])
        yield from _wrapped("Node", f"{name}: {'fits' if fit['fits'] else why}")
    if "scheduler" in report:
        yield from _wrapped("Scheduler", f"{report['scheduler']['reason']}: {report['scheduler']['message']}")


def _counted(report: Mapping[str, Any]) -> str:
    """What is counted; behind the card, which comes first, the resource that stands for it."""
    card, *rest = (_amounts({key: value}) for key, value in report["counted"].items())
    resource = f" ({report['resource']})" if "resource" in report else ""
    return ", ".join((f"{card}{resource}", *rest))


def _position(position: Mapping[str, Any]) -> Iterator[str]:
    before = position["before"]
    rule = "first in, first out" if position["fifo"] else "whoever fits goes"
    yield row("In line", f"{position['number']} of {position['of']} ({rule})")
    for one in before[:_MOST]:
        pods = f", {one['pods']} pods" if one["pods"] > 1 else ""
        reason = f": {one['reason']}" if one["reason"] else ""
        who = one["object"] or "pods of others"
        yield row("", f"behind {who}{pods} ({_amounts(one['asks']) or 'nothing counted'}){reason}")
    more = position["number"] - 1 - len(before[:_MOST])
    if more:
        yield row("", f"and {more} more")


def _quota(report: Mapping[str, Any]) -> Iterator[str]:
    together = report.get("together", 1)
    who = f"{together} members at once ask" if together > 1 else "asks"
    if report.get("reason") == reasons.GANG_INCOMPLETE:
        who = f"{together} of its gang are there and ask" if together > 1 else "the only one of its gang asks"
    for key, one in report.get("quota", {}).items():
        asked = _amount(key, one["asked"])
        if "limit" not in one:
            yield row("Quota", f"{key}: {who} for {asked}; not limited")
            continue
        missing = milli(one["missing"])
        above = f" in queue {one['queue']} above" if "queue" in one else ""
        state = f"{_amount(key, one['used'])} of {_amount(key, one['limit'])} in use{above}"
        yield row(
            "Quota",
            f"{key}: {who} for {asked}, {state}"
            + (f", {_amount(key, one['missing'])} missing" if missing else ""),
        )


def _held(report: Mapping[str, Any]) -> Iterator[str]:
    holders = report.get("heldBy", [])
    for number, one in enumerate(holders[:_MOST]):
        where = f"on {one['node']}" if one["node"] else "without a node yet"
        other = f", queue {one['queue']}" if one["queue"] != report["queue"] else ""
        since = f", for {one['for']}" if "for" in one else ""
        yield row(
            "" if number else "Held by", f"{one['pod']}: {_amounts(one['amounts'])}, {where}{since}{other}"
        )
    if len(holders) > _MOST:
        yield row("", f"and {len(holders) - _MOST} more pod{'' if len(holders) == _MOST + 1 else 's'}")
    others = report.get("heldByOthers")
    if others:
        first = "" if holders else "Held by"
        yield row(first, f"{others['pods']} more, of others: {_amounts(others['amounts'])}")


def _start(start: Mapping[str, Any]) -> str:
    """The range, and on what it rests."""
    basis, earliest = start["basis"], _span(start["earliestSeconds"])
    if "latestSeconds" in start:
        range_of = f"in {earliest} to {_span(start['latestSeconds'])}"
    else:
        range_of = f"in {earliest} at the earliest; pods that ask for less may go first for any time"
    has = "has" if start["needed"] == "1" else "have"
    ends = "end" if basis["ends"] == 1 else "ends"
    return (
        f"{range_of} ({start['needed']} {start['card']} {has} to come free; lately {basis['ends']} {ends} gave back "
        f"{basis['freed']} in {_span(basis['seconds'])})"
    )


def _span(seconds: int) -> str:
    """A time as people say it: `40 s`, `12 min`, `3 h`, `5 days`."""
    for unit, length in (("days", 172_800), ("h", 7200), ("min", 120)):
        if seconds >= length:
            return f"{round(seconds / {'days': 86_400, 'h': 3600, 'min': 60}[unit])} {unit}"
    return f"{seconds} s"


_VAIN: Final = "that is told for the reason; nothing that was tried lifts the pod by itself"
_UNTRIED: Final = "that is told for the reason; whether it lifts the pod was not tried"


def _help(report: Mapping[str, Any]) -> Iterator[str]:
    found = report.get("help")
    if not found:
        yield from output.wrapped("What would help: ", report["remedy"])
        if "beyondNodes" not in report:
            yield f"  ({_VAIN if report.get('allTried') else _UNTRIED})"
        yield from _besides(report)
        return
    yield "What would help (each was tried, and lifts the pod; the smallest first):"
    for number, remedy in enumerate(found, 1):
        for place, step in enumerate(remedy["steps"]):
            begin = f"  {f'{number}.' if not place else '  '} {'and ' if place else ''}"
            yield from textwrap.wrap(
                step["text"],
                output.LINE,
                initial_indent=begin,
                subsequent_indent=" " * 5,
                break_long_words=False,
                break_on_hyphens=False,
            )
            if "command" in step:
                yield f"       {step['command']}"
    if not report["allTried"]:
        yield "  There may be more: the search was given up."
    yield from _besides(report)


def _besides(report: Mapping[str, Any]) -> Iterator[str]:
    if "besides" in report:
        yield from output.wrapped("  Or: ", report["besides"])


def row(name: str, text: str) -> str:
    """One line of the facts."""
    return f"{name.ljust(_WIDTH)}{text}"


def queue_row(report: Mapping[str, Any]) -> str:
    """The queue, and what named it."""
    return row("Queue", f"{report['queue']}, {_FROM[Source(report['queueFrom'])]}")


def since_row(report: Mapping[str, Any]) -> str:
    """Since when the pod waits, and how long that is where the present is known."""
    waited = f" ({_span(report['waitedSeconds'])})" if "waitedSeconds" in report else ""
    return row("Waits since", f"{report['since']}{waited}")


def _wrapped(name: str, text: str) -> list[str]:
    return output.wrapped(name.ljust(_WIDTH), text)


def _amounts(of: Mapping[str, str]) -> str:
    return ", ".join(f"{_amount(key, value)} {key}" for key, value in of.items())


def _amount(key: str, quantity: str) -> str:
    from core.answers.words import amount

    return amount(key, milli(quantity))
