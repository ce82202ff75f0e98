"""What `advise` says, as JSON and for people."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cli import can_run_report, can_run_text, output
from cli.errors import CommandError
from cli.suggestions import instead
from core.quantity import milli

if TYPE_CHECKING:
    from cli.applied import Outcome
    from core.answers.beyond import Beyond
    from core.answers.fitting import Fit, Need
    from core.objects import Pod
    from core.objects.taints import Tolerations
    from core.plan.decision import Hold
    from core.queues.ledger import Ledger
    from core.settings import Settings

_MOST: Final = 5


def advised(outcome: "Outcome", settings: "Settings", name: str, *, of_manifests: bool) -> dict[str, Any]:
    """The whole answer. Raises CommandError for a queue that is not there and that nobody waits for."""
    from cli import books
    from core.answers.fitting import fit
    from core.answers.would_run import verdicts

    ledger = books.of(outcome.state, settings)
    if of_manifests:
        wanted = [pod for pods in outcome.made.values() for pod in pods]
    else:
        wanted = [entry.pod for entry in ledger.waiting(name)]
    if not wanted and name not in ledger.queues and not of_manifests:
        raise CommandError(
            f"there is no queue {output.printable(name)}, and no pod waits for it{instead(name, ledger.queues)}",
            "`cardquota queues -o name` lists the queues; --fits FILE asks what a new one would need",
        )
    tolerations = books.tolerations(outcome.state)
    never = _never(ledger, wanted, tolerations)
    wanted = [pod for pod in wanted if pod.key not in never]
    found = fit(ledger, name, [pod.uid for pod in wanted])
    seats = verdicts(ledger, wanted, tolerations, found.change)
    return {
        "queue": name,
        "exists": name in ledger.queues,
        "pods": len(wanted) + len(never),
        "quota": {need.key: _need(need) for need in found.needs if need.queue == name},
        **_above(found, name),
        "least": found.least,
        "commands": _commands(found, ledger),
        **_manifest(found, ledger, name),
        "stock": _beyond_stock(found, ledger),
        "refused": can_run_report.refusals(outcome),
        "never": [
            {"pod": key, "message": one.why, "remedy": one.remedy_before} for key, one in never.items()
        ],
        "waits": [
            _waiting(ledger, found.holds.get(verdict.pod.uid, verdict.hold))
            for verdict in seats
            if verdict.hold is not None
        ],
        "noNode": [
            {"pod": verdict.pod.key, "message": verdict.seat.problem}
            for verdict in seats
            if verdict.hold is None and verdict.seat.problem
        ],
    }


def _never(
    ledger: "Ledger", wanted: Sequence["Pod"], tolerations: Mapping[str, "Tolerations"]
) -> dict[str, "Beyond"]:
    """The pods that no node could ever run, and why: no quota is asked for them."""
    from core.answers.beyond import EmptyCluster

    cluster = EmptyCluster(ledger, tolerations)
    entries = [entry for pod in wanted if (entry := ledger.entry(pod.uid)) is not None]
    found = {entry.pod.key: cluster.beyond(entry) for entry in entries}
    return {key: beyond for key, beyond in found.items() if beyond is not None}


def _waiting(ledger: "Ledger", hold: "Hold") -> dict[str, str]:
    """Why a pod would wait whatever the quota, and the way out."""
    from core.answers.explain import way_out

    entry = ledger.entry(hold.pod.uid)
    remedy = hold.why.remedy if entry is None else way_out(ledger, entry, hold)
    return {"pod": hold.pod.key, **output.why(hold.why), "remedy": remedy}


def _need(need: "Need") -> dict[str, str]:
    amounts = {"needed": need.needed, "by": need.needed - (need.now or 0)}
    return output.amounts({**amounts, **({} if need.now is None else {"now": need.now})}, zero=True)


def _above(found: "Fit", name: str) -> dict[str, Any]:
    """What the queues above need, whose limits hold for this one as well."""
    above: dict[str, dict[str, dict[str, str]]] = {}
    for need in found.needs:
        if need.queue != name:
            above.setdefault(need.queue, {})[need.key] = _need(need)
    return {"above": above} if above else {}


def _commands(found: "Fit", ledger: "Ledger") -> list[str]:
    commands = [need.command for need in found.needs if need.command and need.queue in ledger.queues]
    return list(dict.fromkeys(commands))


def _manifest(found: "Fit", ledger: "Ledger", name: str) -> dict[str, Any]:
    """A queue that is not there yet, as it would be created."""
    from core import names
    from core.quantity import render_milli

    changed = found.changed.get(name)
    if changed is None or name in ledger.queues:
        return {}
    metadata: dict[str, Any] = {"name": name}
    if changed.card_quota:
        metadata["annotations"] = {names.CARD_QUOTA_ANNOTATION: changed.card_quota}
    spec: dict[str, Any] = {"weight": 1}
    if changed.capability:
        spec["capability"] = {key: render_milli(amount) for key, amount in changed.capability.items()}
    return {
        "manifest": {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": metadata,
            "spec": spec,
        }
    }


def _beyond_stock(found: "Fit", ledger: "Ledger") -> dict[str, str]:
    """The cards of which a queue would have more than the nodes have."""
    needed: dict[str, int] = {}
    for need in found.needs:
        if ledger.inventory.resources_of(need.key):
            needed[need.key] = max(need.needed, needed.get(need.key, 0))
    have = {
        card: sum(ledger.inventory.on_node(node)[card].milli for node in ledger.inventory.nodes_with(card))
        for card in needed
    }
    short = {card: have[card] for card, milli in needed.items() if have[card] < milli}
    return output.amounts(short, zero=True)


def render(report: Mapping[str, Any]) -> str:
    """For people."""
    return "\n".join(output.printable(line) for line in _lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    from core.answers.quota import creation

    yield from can_run_text.refusals(report["refused"])
    if report["refused"] and not report["pods"]:
        return
    name, waits = report["queue"], report["waits"]
    could = report["pods"] - len(report["never"])
    pods = f"{could} pod{'' if could == 1 else 's'}"
    yield from _pods("can never run, whatever the quota", report["never"])
    if not report["pods"]:
        yield f"Queue {name}: no pod waits"
    elif report["quota"] or "above" in report:
        there = "" if report["exists"] else ", which does not exist yet,"
        who = pods if not waits else f"{could - len(waits)} of {pods}"
        least = "" if report["least"] else " at most"
        yield f"Queue {name}{there} needs{least} this quota for {who}, with those before them in line served first:"
        yield from (_row(key, need) for key, need in report["quota"].items())
        for above, quota in report.get("above", {}).items():
            yield from (_row(key, need, f" in queue {above} above") for key, need in quota.items())
        yield from (f"  {command}" for command in report["commands"])
        if "manifest" in report:
            yield f"  {creation(report['manifest'])}"
    elif could and not waits:
        yield f"Queue {name}: its quota is enough for {pods}"
    yield from _rest(report)


def _row(key: str, need: Mapping[str, str], where: str = "") -> str:
    from core.answers.words import amount

    shown = {part: amount(key, milli(text)) for part, text in need.items()}
    return f"  {key}{where}: {shown['needed']}" + (
        f" instead of {shown['now']} ({shown['by']} more)" if "now" in shown else ""
    )


def _rest(report: Mapping[str, Any]) -> Iterator[str]:
    """What quota does not help against."""
    for card, have in report["stock"].items():
        yield f"  The nodes have {have} {card} in all."
    yield from _pods("would wait even so, for no quota helps", report["waits"])
    yield from _pods("would be let in then, and find no node now", report["noNode"])


def _pods(what: str, found: Sequence[Mapping[str, str]]) -> Iterator[str]:
    if found:
        yield f"{len(found)} pod{'' if len(found) == 1 else 's'} {what}:"
    alike: dict[tuple[str, str], list[str]] = {}
    for one in found:
        reason = f"{one['reason']}: " if "reason" in one else ""
        alike.setdefault((reason + one["message"], one.get("remedy", "")), []).append(one["pod"])
    for (text, remedy), pods in list(alike.items())[:_MOST]:
        who = pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} more"
        yield from output.wrapped("  ", f"{who}: {text}", "    ")
        if remedy:
            yield from output.wrapped("    ", f"-> {remedy}", " " * 7)
    if len(alike) > _MOST:
        yield f"  and {sum(map(len, list(alike.values())[_MOST:]))} more"
