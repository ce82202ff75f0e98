"""`cardquota check`: the webhook's verdict on manifests, before any cluster sees them."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from cli import cluster, config, documents, inputs, output
from cli.errors import InputError

if TYPE_CHECKING:
    from cli.kinds import ObjectKind
    from core.admission.request import Context
    from core.settings import Settings
    from core.violations import Findings, Hint

    Stored = Mapping[ObjectKind, Mapping[str, Mapping[str, Any]]]

_QUEUE = ("scheduling.volcano.sh", "Queue")
_NAMESPACE = ("", "Namespace")
HELP = "lint manifests as the webhook would judge them"
DESCRIPTION = """\
Judges manifests as the webhook would judge their creation: pods, workloads with a pod template, queues, Volcano Jobs
and PodGroups. Queues and namespaces among the manifests count as applied. Objects of other kinds are skipped. Exits with 1 when there is an error; warnings alone are no failure.
"""
EPILOG = """\
examples:
  cardquota check deploy.yaml queue.yaml
  cardquota check -R manifests/ -o github       annotations in a GitHub workflow
  helm template . | cardquota check -
  cardquota check --state state.json job.yaml   also against these nodes and queues
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    inputs.add_files(parser)
    inputs.add_recursive(parser)
    output.add_argument(parser, "text", "json", "github")
    cluster.add_state(parser, "cluster objects; adds what depends on nodes, queues and namespaces")
    config.add_argument(parser, config.OFFLINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to say about a manifest, and where."""

    file: str
    line: int
    severity: Literal["error", "warning"]
    code: str
    path: str
    message: str
    object: str = ""
    """The object, as `Kind namespace/name`; empty where there is none."""

    @property
    def remedy(self) -> str:
        """The way out, as the catalogue of reasons has it."""
        from core.catalogue import remedy

        return remedy(self.code)


def run(options: argparse.Namespace) -> int:
    """Prints every finding; 1 when one of them is an error."""
    from cli import books
    from core.admission.request import Context

    settings, state = cluster.offline(options)
    context = Context(books.offline_view(state, settings), settings)
    names = inputs.manifests(options.files, recursive=options.recursive)
    files = ((inputs.label(name), inputs.read_bytes(name)) for name in names)
    findings, objects = check(files, context, {} if state is None else state.raw)
    if options.output == "json":
        _print_json(findings)
    else:
        render = _github if options.output == "github" else _text
        for finding in findings:
            print(render(finding))
    # Of nothing as well: what made the manifests may have failed without a word.
    print(_summary(objects, settings, known=options.state is not None), file=sys.stderr)
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def check(
    files: Iterable[tuple[str, bytes]], context: "Context", stored: "Stored"
) -> tuple[list[Finding], list[documents.Found]]:
    """The findings in files, given with what to call them, in their order, and the objects in them; `stored` are those of the cluster."""
    read = [each for source, content in files for each in _read(source, content)]
    objects = [each[1] for each in read if not isinstance(each, Finding)]
    bundle = Bundle(context, objects, stored)
    findings: list[Finding] = []
    for each in read:
        findings += (each,) if isinstance(each, Finding) else _in_object(*each, bundle)
    return findings, objects


class Bundle:
    """What is known of the cluster, and of the queues and namespaces that are to be applied together with what uses them."""

    def __init__(self, context: "Context", objects: Iterable[documents.Found], stored: "Stored") -> None:
        from cli.applying import applied_over
        from cli.kinds import ObjectKind
        from core.admission.dispatch import rules_of
        from core.objects import Queue, namespace, queue
        from core.objects import raw as read

        known = context.view.queues
        self.cluster = context
        self.offline = known is None
        self.rules = rules_of(context.settings)
        found, spaces = list[Queue](), dict(context.view.namespaces or {})
        for one in objects:
            if (one.group, one.kind) not in (_QUEUE, _NAMESPACE):
                continue
            name = read.text(read.mapping(one.raw, "metadata"), "name")
            live = stored.get(ObjectKind(one.group, one.kind), {}).get(name)
            raw = one.raw if live is None else applied_over(one.raw, live)
            if one.kind == "Queue":
                found.append(queue.project(raw))
            else:
                spaces[name] = namespace.project(raw)
        queues = {**(known or {}), **{one.name: one for one in found if one.name}}
        self._spaces = spaces
        self._context = replace(context, view=replace(context.view, queues=queues)) if queues else context

    def judge(self, found: documents.Found) -> "Findings":
        """Everything that is said of one object."""
        from core.admission import dispatch, near_misses, outlook
        from core.violations import Findings

        settings = self.cluster.settings
        guesses = near_misses.hints(found.group, found.kind, found.raw, settings)
        request = dispatch.creation_of(found.raw, self.rules)
        if request is None:
            return Findings(hints=guesses)
        context = self._context_of(found)
        findings = dispatch.judge(request, context)
        more = (*guesses, *outlook.workload_hints(found.group, found.kind, found.raw, context))
        said = {(hint.code, hint.path) for hint in findings.hints} | {
            (violation.code, violation.path) for violation in findings.violations
        }
        hints = [hint for hint in findings.hints if not self._is_guess(hint)]
        hints += [hint for hint in more if (hint.code, hint.path) not in said]
        return Findings(findings.violations, hints)

    def _context_of(self, found: documents.Found) -> "Context":
        """What is known for one object: of namespaces that nobody has shown nothing is said."""
        from core.objects import raw as read

        view = self._context.view
        home = read.text(read.mapping(found.raw, "metadata"), "namespace") or "default"
        if view.namespaces is None and home not in self._spaces:
            return self._context
        return replace(self._context, view=replace(view, namespaces=self._spaces))

    def _is_guess(self, hint: "Hint") -> bool:
        """A queue that is not in the manifests may well be in the cluster, where nobody has shown us that."""
        from core import reasons

        return self.offline and hint.code == reasons.QUEUE_NOT_FOUND


def _read(source: str, content: bytes) -> Iterator[Finding | tuple[str, documents.Found]]:
    """The objects in one file, in its order; what cannot be read is a finding, and ends the file."""
    from core import reasons

    try:
        for document in documents.read(source, inputs.decode(source, content)):
            yield from _in_document(document)
    except InputError as error:
        yield Finding(source, error.line or 1, "error", reasons.MANIFEST_MALFORMED, "", error.problem)


def _in_document(document: documents.Document) -> Iterator[Finding | tuple[str, documents.Found]]:
    from core import reasons

    code = reasons.MANIFEST_MALFORMED
    for duplicate in document.duplicates:
        problem = "Duplicate value: the key is given twice"
        yield Finding(document.source, duplicate.line, "error", code, duplicate.path, problem)
    for found in documents.objects(document):
        if found.problem:
            yield Finding(document.source, found.place.line, "error", code, found.path, found.problem)
        else:
            yield document.source, found


def _summary(objects: Sequence[documents.Found], settings: "Settings", *, known: bool) -> str:
    """What was looked at, what was not, and how to have it judged too."""
    from core.admission import dispatch

    rules = dispatch.rules_of(settings)
    kinds = Counter(
        found.kind
        for found in objects
        if (found.group, found.kind) != _NAMESPACE and dispatch.creation_of(found.raw, rules) is None
    )
    skipped = ", ".join(f"{count} {output.printable(kind)}" for kind, count in sorted(kinds.items()))
    judged = len(objects) - sum(kinds.values())
    told = f"judged: {judged}" + (f"; of other kinds, skipped: {skipped}" if skipped else "")
    if known:
        return told
    return (
        f"{told}; nodes, queues and namespaces of the cluster are not known: --state FILE has them judged too"
    )


def _in_object(source: str, found: documents.Found, bundle: Bundle) -> Iterator[Finding]:
    from core.admission import dispatch

    request = dispatch.creation_of(found.raw, bundle.rules)
    display = "" if request is None else request.display
    findings = bundle.judge(found)
    for violation in findings.violations:
        line = documents.line_of(found.place, violation.path)
        message = str(violation).removeprefix(f"{violation.path}: ")
        yield Finding(source, line, "error", violation.code, violation.path, message, display)
    for hint in findings.hints:
        line = documents.line_of(found.place, hint.path)
        yield Finding(source, line, "warning", hint.code, hint.path, hint.text, display)


def _text(finding: Finding) -> str:
    return output.printable(
        f"{finding.file}:{finding.line}: {finding.severity} {finding.code} {_said(finding)}"
    )


def _said(finding: Finding) -> str:
    told = f"{finding.path}: {finding.message}" if finding.path else finding.message
    return f"{told} -- {finding.remedy}"


def _github(finding: Finding) -> str:
    """A workflow command, which GitHub shows beside the line."""
    properties = {"file": finding.file, "line": str(finding.line), "title": finding.code}
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{finding.severity} {written}::{_data(_said(finding))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _print_json(findings: Sequence[Finding]) -> None:
    errors = sum(finding.severity == "error" for finding in findings)
    output.print_json(
        {
            "errors": errors,
            "warnings": len(findings) - errors,
            "findings": [{**asdict(finding), "remedy": finding.remedy} for finding in findings],
        }
    )
