"""Whether an installation is whole: webhooks, authorities, policies, leader, versions."""

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from cli import installation, leader_books, output, usage
from cli.errors import UnavailableError
from cli.inspection import Inspection
from cli.state import State
from cli.verdicts import Verdict, verdicts
from core import names
from core.answers.words import counted
from core.objects import raw as read
from core.settings import Settings
from kube import pki

Raw = Mapping[str, Any]

SETTINGS: Final = "settings"
LEADER: Final = "leader"
WEBHOOKS: Final = "webhooks"
BUNDLES: Final = "certificates"
POLICIES: Final = "policies"
ADMISSION: Final = "admission"
VERSIONS: Final = "versions"
BOOKS: Final = leader_books.CHECK
USAGE: Final = "usage over time"

_ENTRIES: Final[Mapping[str, tuple[str, ...]]] = {
    "mutating": ("pods.cardquota.io", "queue-status.cardquota.io", "bindings.cardquota.io"),
    "validating": ("pods.cardquota.io", "queues.cardquota.io"),
}
"""What every installation has, whatever its values."""

_POLICIES: Final = (
    "cardquota-create",
    "cardquota-deletion",
    "cardquota-eviction",
    "cardquota-gate",
    "cardquota-records",
)
_PROTECTION: Final = "protection.pods.cardquota.io"
_VERSION_LABEL: Final = "app.kubernetes.io/version"
_NO_LEASE: Final = "the Lease may not be read"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def of_state(state: State) -> list[Verdict]:
    """What can be said by the objects that every command reads."""
    found = installation.found(state)
    if not found:
        if not state.settings_hidden:
            return [Verdict(SETTINGS, "wrong", "there is no ConfigMap cardquota")]
        return [
            Verdict(SETTINGS, "unknown", "may not be read"),
            Verdict(LEADER, "unknown", _NO_LEASE),
            _usage(state),
        ]
    several = [f"there are several installations: {', '.join(one.source for one in found)}"]
    told = verdicts(SETTINGS, several if len(found) > 1 else (), found[0].source)
    lease = installation.lease_of(state)
    if state.unled:
        leads = Verdict(LEADER, "wrong", state.unled)
    elif lease is None:
        leads = Verdict(LEADER, "unknown", _NO_LEASE)
    else:
        leads = Verdict(LEADER, "ok", f"{installation.holder_of(lease)} leads")
    return [*told, leads, _usage(state)]


def _usage(state: State) -> Verdict:
    """Nothing is decided by what was written down; only one that cannot be read is a loss."""
    try:
        found = usage.of_state(state)
    except usage.EmptyError as error:
        return Verdict(USAGE, "unknown", str(error))
    except UnavailableError as error:
        return Verdict(USAGE, "wrong", str(error))
    if found is None:
        return Verdict(
            USAGE, "unknown", f"there is no ConfigMap {installation.USAGE_NAME}, or it may not be read"
        )
    written, source = found
    return Verdict(USAGE, "ok", f"{source}, until {output.moment(written.through)}")


def of(found: Inspection, settings: Settings) -> list[Verdict]:
    """What is said of a live installation, but for the leader's books."""
    return [
        *_webhooks(found),
        *_policies(found),
        *_admission(found, settings),
        *_versions(found),
    ]


# -- webhooks and policies -----------------------------------------------------------------------------------------


def _webhooks(found: Inspection) -> list[Verdict]:
    if found.configurations is None:
        why = found.withheld["webhook configurations"]
        return [Verdict(WEBHOOKS, "unknown", why), Verdict(BUNDLES, "unknown", why)]
    entries = [
        (kind, entry) for kind, raw in found.configurations.items() for entry in _each(raw, "webhooks")
    ]
    return [
        *verdicts(
            WEBHOOKS,
            _missing(found.configurations),
            f"{len(entries)} {'entry' if len(entries) == 1 else 'entries'}",
        ),
        *_bundles(entries),
    ]


def _bundles(entries: list[tuple[str, Raw]]) -> list[Verdict]:
    if not entries:
        return [Verdict(BUNDLES, "unknown", "there is no entry that could have one")]
    return verdicts(BUNDLES, _untrusted(entries), "every entry has the authority of its certificate")


def _missing(configurations: Mapping[str, Raw | None]) -> Iterator[str]:
    for kind, wanted in _ENTRIES.items():
        raw = configurations[kind]
        if raw is None:
            yield f"cardquota-{kind} does not exist"
            continue
        present = {read.text(entry, "name"): entry for entry in _each(raw, "webhooks")}
        yield from (f"cardquota-{kind} has no entry {name}" for name in wanted if name not in present)
        hook = present.get("bindings.cardquota.io")
        if hook is not None and not _address(hook):
            yield "bindings.cardquota.io has no path yet: the leader writes it"


def _address(entry: Raw) -> str:
    client = read.mapping(entry, "clientConfig")
    return read.text(client, "url") or read.text(read.mapping(client, "service"), "path")


def _untrusted(entries: list[tuple[str, Raw]]) -> Iterator[str]:
    for kind, entry in entries:
        name = f"{kind} {read.text(entry, 'name')}"
        text = read.text(read.mapping(entry, "clientConfig"), "caBundle")
        if not text:
            yield f"{name} has no caBundle: the API server trusts nobody there"
            continue
        try:
            pem = base64.b64decode(text, validate=True)
        except binascii.Error:
            pem = b""
        if not pki.still_valid(pem, datetime.now(UTC)):
            yield f"{name}: the caBundle holds no certificate that is valid now"


def _policies(found: Inspection) -> list[Verdict]:
    if found.policies is None or found.bindings is None:
        return [Verdict(POLICIES, "unknown", found.withheld["policies"])]
    present = {_name(raw) for raw in found.policies} & set(_POLICIES)
    if not present:
        served = any(
            read.text(entry, "name") == _PROTECTION
            for raw in (found.configurations or {}).values()
            for entry in _each(raw, "webhooks")
        )
        return verdicts(
            POLICIES,
            () if served else ["there are none, and no webhook protects gates and records in their place"],
            "none; the webhook protects gates and records",
        )
    denying = {
        read.text(spec, "policyName")
        for raw in found.bindings
        if "Deny" in (read.mapping(raw, "spec").get("validationActions") or ())
        and (spec := read.mapping(raw, "spec"))
    }
    wrong = [
        f"{name} does not exist" if name not in present else f"{name} is not bound, so it denies nothing"
        for name in _POLICIES
        if name not in present or name not in denying
    ]
    return verdicts(POLICIES, wrong, f"{len(present)} in force")


def _each(raw: object, key: str) -> list[Raw]:
    return [read.mapping(item) for item in read.sequence(raw, key)]


def _name(raw: Raw) -> str:
    return read.text(read.mapping(raw, "metadata"), "name")


# -- what happens ----------------------------------------------------------------------------------------------------


def _admission(found: Inspection, settings: Settings) -> list[Verdict]:
    """A pod that asks for a card has to come back with the gate."""
    where = f"in namespace {found.namespace}"
    failure = found.probe_failure
    if "webhook" in failure and "cardquota.io" in failure:
        return [Verdict(ADMISSION, "wrong", f"a pod with a card cannot be created {where}: {failure}")]
    if found.probe is None:
        return [Verdict(ADMISSION, "unknown", f"no pod could be tried {where}: {failure}")]
    if not (settings.features.cards and settings.features.gates):
        return [Verdict(ADMISSION, "unknown", "gates or cards are switched off")]
    spec = read.mapping(found.probe, "spec")
    gates = [read.text(gate, "name") for gate in _each(spec, "schedulingGates")]
    if names.GATE in gates:
        return [
            Verdict(ADMISSION, "ok", f"a pod with a card would wait at the gate {where}; none was created")
        ]
    return [Verdict(ADMISSION, "wrong", f"a pod with a card would get no gate {where}; is it exempt?")]


def _versions(found: Inspection) -> list[Verdict]:
    if found.pods is None or found.deployments is None:
        return [Verdict(VERSIONS, "unknown", found.withheld["versions"])]
    running = [raw for raw in found.pods if read.text(read.mapping(raw, "status"), "phase") not in _ENDED]
    at_work = sorted({_version(raw) for raw in running})
    wrong = [f"several at work: {', '.join(at_work)}"] if len(at_work) > 1 else []
    for raw in found.deployments:
        wanted = read.integer(read.mapping(raw, "spec"), "replicas", 1)
        available = read.integer(read.mapping(raw, "status"), "availableReplicas", 0)
        if wanted and not available:
            wrong.append(f"none of the {wanted} replicas of {_name(raw)} is available")
    if not wrong and not running:
        return [Verdict(VERSIONS, "unknown", "no pod of the installation is to be seen")]
    return verdicts(VERSIONS, wrong, f"{counted(len(running), 'pod')} of {', '.join(at_work)}")


def _version(pod: Raw) -> str:
    """The chart's version, and the image: either may be changed by itself."""
    labels = read.texts(pod, "metadata", "labels")
    containers = _each(read.mapping(pod, "spec"), "containers")
    image = next((read.text(container, "image") for container in containers), "")
    return f"{labels.get(_VERSION_LABEL, '(no version)')} ({image or 'no image'})"


def books(found: Inspection, own: Mapping[tuple[str, str], int] | None) -> list[Verdict]:
    """The leader's own figures, as it tells them or as its metrics show them, against `own`, see leader_books.compared."""
    if not found.books and found.page is None:
        return [Verdict(BOOKS, "unknown", f"the leader cannot be asked: {leader_books.not_asked(found)}")]
    try:
        theirs = (
            leader_books.of_answer(found.books) if found.books else leader_books.of_metrics(found.page or "")
        )
    except leader_books.BooksError as error:
        return [Verdict(BOOKS, "unknown", str(error))]
    return leader_books.compared(theirs, own)
