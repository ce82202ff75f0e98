"""`cardquota dump`: all that the other commands read, in one file, without what is nobody else's business."""

import argparse
import contextlib
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from cli import cluster, leader_books, output
from cli.errors import CommandError
from core import names

HELP = "all that the other commands read, in one file"
DESCRIPTION = """\
Writes every object that decisions look at as one JSON List: nodes, namespaces, queues, pods, PodGroups, Volcano Jobs, and
DeviceClasses, claims and their templates, as far as the cluster has them, the settings of the installation, and what the
leader itself says of its books (`verify --state` compares them with the pods). Images, commands, arguments, environment, volumes
and output of containers are left out, and so are the manifests that kubectl keeps in annotations. For --state, and for a bug report.
"""
EPILOG = """\
examples:
  cardquota dump -o state.json
  cardquota dump | cardquota plan --state -
"""

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_OF_A_CONTAINER: Final = ("name", "resources", "restartPolicy")
_CONTAINERS: Final = ("containers", "initContainers", "ephemeralContainers")
_LEFT_OUT: Final = ("volumes", "imagePullSecrets", "hostAliases")
_OF_A_POD_STATUS: Final = (
    "phase",
    "startTime",
    "nominatedNodeName",
    "conditions",
    "resourceClaimStatuses",
    "extendedResourceClaimStatus",
)
_CONTAINER_STATUSES: Final = ("containerStatuses", "initContainerStatuses")
_OF_A_CONTAINER_STATUS: Final = ("name", "started", "resources", "allocatedResources")
_OF_A_CONTAINER_STATE: Final = ("startedAt", "finishedAt")
"""Reasons and messages are what a container has written, or name its image."""
_FIELDS_WRITTEN: Final = "fieldsV1"
"""In `managedFields`; of lists it has the names of the entries, as of environment and volumes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="where to write it; default: standard output"
    )
    cluster.add_live(parser)


def run(options: argparse.Namespace) -> int:
    """Writes the file; it is there whole or not at all."""
    import orjson

    # Asked before and after the pods are read: where the figures differ nobody knows which of them the pods are held against.
    books, missing = leader_books.asked(options)
    reading = cluster.reading(options)
    objects = reading.objects
    if books:
        before = books
        books, missing = leader_books.asked(options)
        objects = [*objects, leader_books.marked(books, before)] if books else objects
    content = orjson.dumps(
        listed([shareable(raw) for raw in objects], time.time(), reading.unseen, reading.pods_of),
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )
    if missing:
        print(f"warning: without the leader's own view: {output.printable(missing)}", file=sys.stderr)
    if options.output is None:
        sys.stdout.buffer.write(content)
        return 0
    _write(options.output, content)
    from core.answers.words import counted

    told = (
        counted(len(objects) - 1, "object") + " and the leader's books"
        if books
        else counted(len(objects), "object")
    )
    print(f"{options.output}: {told}", file=sys.stderr)
    return 0


def _write(path: Path, content: bytes) -> None:
    """The whole file, or nothing, whatever fails. Raises CommandError."""
    beside = Path(f"{path}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise CommandError(
            f"{path}: {error.strerror or error}", "name a file that can be written, or leave out -o"
        ) from error


def listed(
    objects: Sequence[Mapping[str, Any]], now: float, unseen: Iterable[str] = (), pods_of: str = ""
) -> dict[str, Any]:
    """The List of objects that were read `now`, in seconds since 1970, without the `unseen` kinds and the pods of all but one namespace.

    A file by itself knows neither when it was written nor what is missing.
    """
    said = {
        names.READ_AT_ANNOTATION: output.moment(int(now)),
        names.UNSEEN_ANNOTATION: ",".join(sorted(unseen)),
        names.PODS_OF_ANNOTATION: pods_of,
    }
    metadata = {"annotations": {key: text for key, text in said.items() if text}}
    return {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(objects)}


def shareable(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The object without what only its owner should know."""
    result = dict(raw)
    metadata = raw.get("metadata")
    if isinstance(metadata, dict):
        result["metadata"] = _metadata(metadata, kind=str(raw.get("kind")))
    if isinstance(raw.get("spec"), dict):
        result["spec"] = _spec(raw["spec"], kind=str(raw.get("kind")))
    if isinstance(raw.get("status"), dict):
        result["status"] = _status(raw["status"], kind=str(raw.get("kind")))
    return result


def _metadata(metadata: Mapping[str, Any], *, kind: str) -> dict[str, Any]:
    """Of a queue all stays: the manifest shows a device quota that the API server has dropped, and the fields who writes its status."""
    kept = dict(metadata)
    if kind == "Queue":
        return kept
    if isinstance(metadata.get("annotations"), dict):
        kept["annotations"] = _without(metadata["annotations"], _LAST_APPLIED)
    if isinstance(metadata.get("managedFields"), list):
        # Who wrote when stays: it tells since when a pod waits for a node.
        kept["managedFields"] = [_without(entry, _FIELDS_WRITTEN) for entry in metadata["managedFields"]]
    return kept


def _spec(spec: Mapping[str, Any], *, kind: str) -> dict[str, Any]:
    if kind == "Pod":
        return _pod_spec(spec)
    if kind == "Job":
        kept: dict[str, Any] = _without(spec, *_LEFT_OUT)
        if isinstance(kept.get("tasks"), list):
            kept["tasks"] = [_task(task) for task in kept["tasks"]]
        return kept
    return dict(spec)


def _status(status: Mapping[str, Any], *, kind: str) -> dict[str, Any]:
    if kind == "Pod":
        return _pod_status(status)
    kept: dict[str, Any] = _without(status, "images") if kind == "Node" else dict(status)
    return kept


def _pod_status(status: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = _only(status, *_OF_A_POD_STATUS)
    for key in _CONTAINER_STATUSES:
        if isinstance(status.get(key), list):
            kept[key] = [_container_status(entry) for entry in status[key]]
    return kept


def _container_status(entry: Any) -> Any:
    kept = _only(entry, *_OF_A_CONTAINER_STATUS)
    if isinstance(entry, dict) and isinstance(entry.get("state"), dict):
        kept["state"] = {name: _only(value, *_OF_A_CONTAINER_STATE) for name, value in entry["state"].items()}
    return kept


def _task(task: Any) -> Any:
    template = task.get("template") if isinstance(task, dict) else None
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        return task
    return {**task, "template": {**template, "spec": _pod_spec(template["spec"])}}


def _pod_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = _without(spec, *_LEFT_OUT)
    for key in _CONTAINERS:
        if isinstance(kept.get(key), list):
            kept[key] = [_only(container, *_OF_A_CONTAINER) for container in kept[key]]
    return kept


def _only(entry: Any, *keys: str) -> Any:
    """Nothing of what is no object: no API server has stored that, and nobody reads it."""
    return {key: entry[key] for key in keys if key in entry} if isinstance(entry, dict) else None


def _without(entry: Any, *keys: str) -> Any:
    return (
        {key: value for key, value in entry.items() if key not in keys} if isinstance(entry, dict) else None
    )
