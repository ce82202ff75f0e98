"""Kinds that may not be listed are not taken for empty: what rests on them is not known, and all the rest is told as ever."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from cli import live
from core import names
from kube import resources
from kube.errors import Forbidden
from tests.builders import a_group, a_namespace, a_node, a_queue
from tests.fakes.apiserver import FakeApiServer
from tests.unit.cli.conftest import Outcome, Run
from tests.unit.cli.live_cluster import FORBIDDEN, NAMESPACED, ask, forbid_everywhere
from tests.unit.cli.test_cluster import pod as live_pod
from tests.unit.cli.test_worked_numbers import WHOLE, a_claim, a_claimant, a_device_queue, some

Raw = dict[str, Any]

H200: Final = "NVIDIA-H200"
CLAIMS: Final = "ResourceClaim,ResourceClaimTemplate"
GATE: Final = [{"name": names.GATE}]


def stored(raw: Raw) -> Raw:
    metadata = raw["metadata"]
    metadata |= {"uid": metadata["name"], "creationTimestamp": "2026-01-01T00:00:00Z"}
    return raw


NODE: Final = stored(a_node("n1").card(H200, 8).build())
USED: Final = stored(a_queue("team").cards({H200: 8}).allocated({H200: "2"}).build())
"""A queue whose status shows that two cards are in use."""


def asking(name: str, **annotations: str) -> Raw:
    """A pod for two cards; where it names no queue its namespace does, or nobody."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "ml",
            "annotations": {"volcano.sh/card.name": H200, **annotations},
        },
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]},
    }


def waiting(name: str = "w", **annotations: str) -> Raw:
    raw = asking(name, **annotations)
    raw["spec"]["schedulingGates"] = GATE
    return stored(raw)


def running(name: str = "r", **annotations: str) -> Raw:
    raw = asking(name, **annotations)
    raw["spec"]["nodeName"] = "n1"
    return stored({**raw, "status": {"phase": "Running"}})


IN_TEAM: Final = {names.QUEUE_NAME_ANNOTATION: "team"}
IN_GROUP: Final = {**IN_TEAM, names.GROUP_NAME_ANNOTATION: "g"}


def devices(*claims: Raw) -> list[Raw]:
    """A queue in which a pod uses two devices of a claim, and another pod waits for a claim's."""
    queue = stored(a_device_queue("team", "root", {WHOLE: {"count": 8}}))
    queue["status"] = {"state": "Open", "allocated": {f"deviceclass/{WHOLE}": "2"}}
    waits = stored(a_claimant("w", "other", "team"))
    waits["spec"]["schedulingGates"] = GATE
    return [NODE, queue, a_claimant("r", "c", "team", "n1"), waits, *map(stored, claims)]


class Dump:
    """A dump by somebody who may not list these kinds, and commands on it."""

    def __init__(self, run: Run, folder: Path) -> None:
        self._run = run
        self._file = folder / "dump.json"
        self._manifest = folder / "m.json"

    def of(self, items: list[Raw], unseen: str = "") -> "Dump":
        annotations = {names.UNSEEN_ANNOTATION: unseen} if unseen else {}
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {"annotations": annotations}, "items": items}
        self._file.write_text(json.dumps(whole), "utf-8")
        return self

    def __call__(self, *command: object) -> Outcome:
        return self._run(*command, "--state", self._file, "-o", "json")

    def planned(self, key: str) -> Raw:
        found: Raw = json.loads(self("plan").out)["pods"][key]
        return found

    def allocated(self) -> Raw:
        found: Raw = json.loads(self("queues").out)["team"]["allocated"]
        return found

    def results(self) -> dict[str, str]:
        return {one["check"]: one["result"] for one in json.loads(self("verify").out)["checks"]}

    def manifest(self, *objects: Raw) -> Path:
        self._manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
        return self._manifest


@pytest.fixture
def dump(run: Run, tmp_path: Path) -> Dump:
    return Dump(run, tmp_path)


# -- what queues use -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unseen", ["Pod", "Node,Pod"])
def test_without_any_pods_the_usage_is_what_the_queues_show(dump: Dump, unseen: str) -> None:
    assert dump.of([NODE, USED], unseen).allocated() == {H200: "2"}


def test_in_a_live_cluster_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a kubeconfig whose namespace is not one's own."""
    reading = live.Reading(objects=[NODE, USED], forbidden={"Pod": Forbidden(403, "Forbidden", "pods")})
    monkeypatch.setattr(live, "read", lambda *_: reading)
    assert json.loads(run("queues", "-o", "json").out)["team"]["allocated"] == {H200: "2"}


def test_without_claims_the_devices_in_use_are_those_that_the_queues_show(dump: Dump) -> None:
    assert dump.of(devices(), CLAIMS).allocated() == {f"deviceclass/{WHOLE}": "2"}


@pytest.mark.parametrize("unseen", ["Pod", "Queue", "Node"])
def test_verify_finds_no_fault_in_what_it_may_not_see(dump: Dump, unseen: str) -> None:
    items = [one for one in (NODE, USED, running(**IN_TEAM)) if one["kind"] != unseen]
    outcome = dump.of(items, unseen)("verify")
    assert outcome.status == 0
    assert dump.results() == {"queue status": "unknown", "records": "unknown"}


def test_verify_compares_no_devices_without_their_claims(dump: Dump) -> None:
    assert dump.of(devices(), CLAIMS).results() == {"queue status": "unknown", "records": "ok"}
    whole = dump.of(devices(a_claim("c", some(2))))
    assert whole.results() == {"queue status": "ok", "records": "ok"}


def test_what_is_on_record_is_known_whatever_may_not_be_listed(dump: Dump) -> None:
    let_in = {names.CHARGED_QUEUE_ANNOTATION: "team", names.ASSIGNED_ANNOTATION: f'{{"{H200}": 2}}'}
    dump.of([NODE, USED, running(**let_in), waiting(**IN_TEAM)], f"{CLAIMS},Namespace,PodGroup,Job")
    assert dump.results() == {"queue status": "ok", "records": "ok"}
    assert dump.planned("ml/w")["decision"] == "lift"


# -- what becomes of a pod -----------------------------------------------------------------------------------------

SITUATIONS: Final = {
    "its claim": (devices(), CLAIMS, "default/w", "team"),
    "its group": ([NODE, USED, waiting(**IN_GROUP)], "PodGroup", "ml/w", ""),
    "its namespace": ([NODE, USED, waiting()], "Namespace", "ml/w", ""),
}


@pytest.mark.parametrize(("items", "unseen", "key", "queue"), SITUATIONS.values(), ids=SITUATIONS)
def test_nobody_is_told_to_create_what_may_only_not_be_listed(
    dump: Dump, items: list[Raw], unseen: str, key: str, queue: str
) -> None:
    kind = unseen.partition(",")[0]
    assert dump.of(items, unseen).planned(key) == {
        "queue": queue,
        "decision": "hold",
        "reason": "",
        "message": f"whether it is let in rests on objects of kind {kind} that you may not list; cardquota explain asks the leader",
    }
    for command in (("explain", key), ("place", key), ("advise", "team")):
        outcome = dump(*command)
        if command == ("advise", "team") and not queue:
            # Also of those who are known to wait there nobody knows whether they come first.
            outcome = dump.of([*items, waiting("x", **IN_TEAM)], unseen)(*command)
        assert (outcome.status, outcome.out) == (1, ""), command
        told = f"what pods refer to decides, and without the right to list {kind} it is not known"
        assert told in outcome.err, command


def test_the_queue_of_a_closed_selector_takes_the_labels_of_the_namespace(dump: Dump) -> None:
    queue = stored(a_queue("team").cards({H200: 8}).used_by(selector="group=nlp").build())
    items = [NODE, queue, waiting(**IN_TEAM)]
    assert dump.of(items).planned("ml/w")["reason"] == "QueueNotAllowed"
    assert "kind Namespace" in dump.of(items, "Namespace").planned("ml/w")["message"]


def test_whoever_may_be_before_it_in_line_leaves_a_pod_without_an_answer(dump: Dump) -> None:
    """The one without a queue may wait in that of the other, for its last cards."""
    full = stored(a_queue("team").cards({H200: 2}).build())
    namespace = stored(a_namespace("ml").in_queue("team").build())
    items = [NODE, full, waiting("first"), waiting("second", **IN_TEAM)]
    assert dump.of([*items, namespace]).planned("ml/second")["reason"] == "InsufficientScalarQuota"
    second = dump.of(items, "Namespace").planned("ml/second")
    assert (second["queue"], second["decision"], second["reason"]) == ("team", "hold", "")
    manifest = dump.manifest(asking("new", **IN_TEAM))
    assert dump("can-run", manifest).status == 1


def test_can_run_answers_for_manifests_with_all_that_they_refer_to(dump: Dump) -> None:
    dump.of([NODE, USED], "PodGroup,Namespace")
    member = asking("new", **IN_GROUP)
    assert dump("can-run", dump.manifest(member)).status == 1
    group = a_group("g", namespace="ml").min_member(1).in_queue("team").build()
    outcome = dump("can-run", dump.manifest(group, member))
    assert (outcome.status, json.loads(outcome.out)["verdict"]) == (0, "runs"), outcome.err


# -- what is said of it --------------------------------------------------------------------------------------------


def test_a_dump_says_of_every_kind_that_it_lacks_it(dump: Dump) -> None:
    told = dump.of([NODE, USED], "Pod,PodGroup,ResourceClaim")("queues").err
    assert "without the right to list Pod: nothing is known of what others hold or wait for" in told
    assert "without the right to list PodGroup, ResourceClaim: what depends on them is left out" in told


def test_claims_of_one_namespace_are_not_those_of_the_pods_of_all() -> None:
    reading = live.Reading(namespace="ml", narrowed=[resources.RESOURCE_CLAIMS])
    assert (reading.unseen, reading.pods_of) == (frozenset({"ResourceClaim"}), "")
    with_pods = live.Reading(namespace="ml", narrowed=[resources.RESOURCE_CLAIMS, resources.PODS])
    assert (with_pods.unseen, with_pods.pods_of) == (frozenset(), "ml")


async def test_to_a_tenant_explain_names_no_queue_that_only_the_namespace_would_tell(
    run: Run, tmp_path: Path
) -> None:
    own = live_pod("p")
    del own["metadata"]["annotations"][names.QUEUE_NAME_ANNOTATION]
    own["metadata"] |= {"namespace": "default", "uid": "u"}
    own["spec"]["schedulingGates"] = GATE
    async with FakeApiServer() as server:
        server.put(resources.QUEUES, {"metadata": {"name": "team"}})
        server.put(resources.PODS, own)
        forbid_everywhere(server, resources.NAMESPACES, *NAMESPACED, resources.CONFIG_MAPS)
        server.fail("get", FORBIDDEN, path="configmaps", times=1)
        outcome = await ask(run, server, tmp_path, "explain", "p")
    found = json.loads(outcome.out)
    assert "queue" not in found
    assert found["leftOut"] == "Pod in all namespaces, Namespace"
