"""What `can-run` says, for people: the verdict first, then each object, then what the first one waits for."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cli import documents, explain_text, output

if TYPE_CHECKING:
    from cli.applied import Outcome


def show(
    form: str, report: Mapping[str, Any], outcome: "Outcome", text: Callable[[Mapping[str, Any]], str]
) -> None:
    """Prints a report in a format; as the text that is made of it with what there is to remark on standard error."""
    if form != "text":
        output.print_document(form, report)
        return
    for line in _remarks(outcome):
        print(output.printable(line), file=sys.stderr)
    print(text(report))


def _remarks(outcome: "Outcome") -> Iterator[str]:
    """What admission warns of, and how the manifests were taken."""
    for one, said in outcome.findings:
        for hint in said.hints:
            line = documents.line_of(one.found.place, hint.path)
            yield f"warning: {one.source}:{line}: {hint.path}: {hint.text}"
    for display in outcome.replaced:
        yield f"note: {display} is there already; judged as if it were deleted and created anew"
    if outcome.skipped:
        yield f"note: not judged, for no pods come of it: {', '.join(outcome.skipped)}"


def render(report: Mapping[str, Any]) -> str:
    """The whole answer."""
    return "\n".join(output.printable(line) for line in _lines(report))


def _lines(report: Mapping[str, Any]) -> Iterator[str]:
    yield from refusals(report["refused"])
    first = report.get("waits", {})
    told = {first.get("message", ""), first.get("beyondNodes", "")}
    for one in report["objects"]:
        yield from _object(one, told)
    if not report["refused"] and not report["objects"]:
        yield "runs: no pods come of these manifests now"
    if not report["ever"] and report["verdict"] == "waits":
        yield ""
        yield from output.wrapped("", "Not all of these would run even if everybody else were gone.")
    if "waits" in report:
        yield ""
        yield from explain_text.of_pod(report["waits"])


def refusals(refused: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What admission says, object by object."""
    named = ""
    for one in refused:
        if one["object"] != named:
            named = one["object"]
            yield f"refused: {named}"
        yield from _refusal(one)


def _refusal(one: Mapping[str, Any]) -> Iterator[str]:
    place = f"{one['file']}:{one['line']}: " if "file" in one else ""
    path = f"{one['path']}: " if one["path"] else ""
    yield from output.wrapped("  ", f"{place}{one['code']} {path}{one['message']}")
    yield from output.wrapped("    ", f"-> {one['remedy']}")


def _object(one: Mapping[str, Any], told: Collection[str]) -> Iterator[str]:
    """`told` is what is said of the first pod that waits, below all objects."""
    runs, waits = one["pods"]["runs"], one["pods"]["waits"]
    queue = f" in queue {', '.join(one['queues'])}" if one["queues"] else ""
    where = ", ".join(f"{name}{f' ({count})' if count > 1 else ''}" for name, count in one["nodes"].items())
    cards = ", ".join(f"{count} {card}" for card, count in one["cards"].items())
    place = f"{f' on {cards}' if cards else ''}{f', room on {where}' if where else ''}"
    if not waits:
        all_of_it = "it is let in now" if runs == 1 else f"all {runs} pods are let in now"
        yield f"runs: {one['object']}{queue}: {all_of_it}{place}"
        return
    part = f"{waits} of {runs + waits} pods wait: " if runs + waits > 1 else ""
    yield f"waits: {one['object']}{queue}: {part}{one['reason']}"
    if runs:
        yield from output.wrapped("  ", f"{runs} would run{place}")
    never = one.get("never", "")
    if never and never != one["message"] and never not in told:
        yield from output.wrapped("  ", f"not even if everybody else were gone: {never}")
    elif one["message"] not in told:
        yield from output.wrapped("  ", one["message"])
