"""`cardquota check`: the webhook's verdict on manifests, before any cluster sees them."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from cli import cluster, config, documents, inputs, manifests, output
from cli.errors import InputError

if TYPE_CHECKING:
    from core.admission import Context

_DESCRIPTION = """\
Judges manifests as the webhook would judge their creation: pods, workloads with a pod template, queues, Volcano Jobs
and PodGroups. Objects of other kinds are skipped. Exits with 1 when there is an error; warnings alone are no failure.
"""
_EPILOG = """\
examples:
  cardquota check deploy.yaml queue.yaml
  cardquota check -R manifests/ -o github       annotations in a GitHub workflow
  helm template . | cardquota check -
  cardquota check --state state.json job.yaml   also against these nodes and queues
"""


def add_parser(subcommands: "argparse._SubParsersAction[Any]") -> None:
    """Adds the command."""
    parser = subcommands.add_parser(
        "check",
        help="lint manifests as the webhook would judge them",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="manifest (YAML or JSON), - for standard input; a folder means its *.yaml, *.yml and *.json",
    )
    parser.add_argument("-R", "--recursive", action="store_true", help="also the folders below a folder")
    output.add_argument(parser, "text", "json", "github")
    cluster.add_state(parser, "cluster objects; adds what depends on nodes, queues and namespaces")
    config.add_argument(parser)
    parser.set_defaults(run=run)


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


def run(options: argparse.Namespace) -> int:
    """Prints every finding; 1 when one of them is an error."""
    from cli import views
    from core.admission import Context

    settings = config.load(options.config)
    context = Context(views.offline(options.state, settings), settings)
    findings = [
        finding
        for name in inputs.manifests(options.files, recursive=options.recursive)
        for finding in check(inputs.label(name), inputs.read_bytes(name), context)
    ]
    if options.output == "json":
        _print_json(findings)
    else:
        render = _github if options.output == "github" else _text
        for finding in findings:
            print(render(finding))
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def check(source: str, content: bytes, context: "Context") -> Iterator[Finding]:
    """The findings in one file, in its order; what cannot be read is a finding, too, and ends the file."""
    from core import reasons

    try:
        for document in documents.read(source, inputs.decode(source, content)):
            yield from _in_document(document, context)
    except InputError as error:
        yield Finding(source, error.line or 1, "error", reasons.MANIFEST_MALFORMED, "", error.problem)


def _in_document(document: documents.Document, context: "Context") -> Iterator[Finding]:
    from core import reasons

    code = reasons.MANIFEST_MALFORMED
    for duplicate in document.duplicates:
        problem = "Duplicate value: the key is given twice"
        yield Finding(document.source, duplicate.line, "error", code, duplicate.path, problem)
    for found in manifests.objects(document):
        if found.problem:
            yield Finding(document.source, found.place.line, "error", code, found.path, found.problem)
        else:
            yield from _in_object(document.source, found, context)


def _in_object(source: str, found: manifests.Found, context: "Context") -> Iterator[Finding]:
    from core import admission

    request = admission.creation_of(found.raw)
    if request is None:
        return
    findings = admission.judge(request, context)
    for violation in findings.violations:
        line = documents.line_of(found.place, violation.path)
        message = str(violation).removeprefix(f"{violation.path}: ")
        yield Finding(source, line, "error", violation.code, violation.path, message, request.display)
    for hint in findings.hints:
        line = documents.line_of(found.place, hint.path)
        yield Finding(source, line, "warning", hint.code, hint.path, hint.text, request.display)


def _text(finding: Finding) -> str:
    return output.printable(
        f"{finding.file}:{finding.line}: {finding.severity} {finding.code} {_said(finding)}"
    )


def _said(finding: Finding) -> str:
    return f"{finding.path}: {finding.message}" if finding.path else finding.message


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
            "findings": [asdict(finding) for finding in findings],
        }
    )
