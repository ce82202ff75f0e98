"""Queue status beside a scheduler that knows nothing of us: our keys stay while they are true, its own are its own."""

import json
import os
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from core import names
from hack.controlplane import ControlPlane, audit, wait_for
from hack.controlplane.nodes import gpu_node
from hack.install import Installation
from tests.apiserver.cluster import Cluster, Object, samples, unique
from tests.apiserver.manifests import card_pod, queue
from tests.apiserver.volcano import StatusWriter
from tests.own_plane import own_plane

STOCK = "VOLCANO_CRDS"
"""The environment variable that names a folder with the CustomResourceDefinitions of a Volcano release."""

REPEAT_S = 2.0
"""How long the controller waits at least before it writes the same status once more."""


@pytest.fixture(scope="module", params=["chart", "stock"])
def definition(request: pytest.FixtureRequest) -> str:
    """Whose definition of Queue is in place: the chart's, or that of a Volcano release."""
    if request.param == "stock" and STOCK not in os.environ:
        pytest.skip(f"{STOCK} names no folder with Volcano's definitions")
    return str(request.param)


@pytest.fixture(scope="module")
def control_plane(
    request: pytest.FixtureRequest, control_plane: ControlPlane, definition: str
) -> Iterator[ControlPlane]:
    """The usual one for the chart's definition, which stays in it; another one for Volcano's."""
    if definition == "chart":
        yield control_plane
        return
    with own_plane(request) as plane:
        for file in sorted(Path(os.environ[STOCK]).glob("*.yaml")):
            plane.apply(file.read_text("utf-8"))
        yield plane


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane, definition: str) -> Iterator[Installation]:
    with Installation(control_plane, values={"crds": {"install": definition == "chart"}}) as installed:
        yield installed


class Used:
    """A queue with quota for two cards, of which the pod `a` has one."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.card = unique("CARD")
        self.name = unique("q")
        node = gpu_node(unique("node"), product=self.card, cards=8, memory_mib=143771)
        cluster.add_nodes(node)
        self.path = cluster.create_queue(queue(self.name, json.dumps({self.card: 2})))
        self.run("a")

    def run(self, pod: str) -> None:
        """One more pod with one more card; returns once the queue shows it."""
        self.cluster.create(card_pod(pod, self.card, self.name))
        self.wait_for_ours(str(len(self.cluster.pods())))

    def wait_for_ours(self, count: str | None) -> None:
        """Return once our key shows that many cards, or is not there."""
        what = f"{self.path} shows {count} of {self.card}"
        wait_for(what, lambda: self.allocated().get(self.card) == count)

    def stored(self) -> Object:
        found: Object = self.cluster.api.get(self.path).expect()
        return found

    def allocated(self) -> dict[str, str]:
        """What the queue shows."""
        return dict(self.stored().get("status", {}).get("allocated") or {})

    def version(self) -> str:
        """Grows with each write that stores something."""
        version: str = self.stored()["metadata"]["resourceVersion"]
        return version


@pytest.fixture
def used(cluster: Cluster) -> Used:
    return Used(cluster)


@pytest.fixture
def volcano(control_plane: ControlPlane, used: Used) -> Iterator[StatusWriter]:
    """The other writer of the status, at work."""
    with StatusWriter(control_plane, used.path) as writer:
        writer.use({"cpu": "1", "pods": "1"})
        yield writer


def test_nothing_is_stored_while_nothing_changes(used: Used, volcano: StatusWriter) -> None:
    """Two writers, each with its keys, and the object stands still: etcd and every watch are spared."""
    assert used.allocated() == {"cpu": "1", "pods": "1", used.card: "1"}
    before = used.version()
    volcano.wait_for_writes(10)
    assert used.version() == before
    assert used.allocated() == {"cpu": "1", "pods": "1", used.card: "1"}


def test_keys_of_the_scheduler_come_and_go(used: Used, volcano: StatusWriter) -> None:
    """Whatever their names: it is by their owner that they are told apart, and who owns a key may drop it."""
    ours = {used.card: "1"}
    for theirs in (
        {"pods": "3", "nvidia.com/gpu": "1", names.MGPU_CORE: "30"},
        {"pods": "3", "NVIDIA-OTHER": "4"},
        {"cpu": "0", "memory": "0"},
        {},
    ):
        volcano.use(theirs)
        assert used.allocated() == {**theirs, **ours}


def test_our_key_follows_the_usage_and_goes_for_good_with_it(used: Used, volcano: StatusWriter) -> None:
    """After a put-back nobody owns the key any more; it is removed all the same, and once."""
    theirs = {"cpu": "1", "pods": "1"}
    used.run("b")
    volcano.wait_for_writes(3)
    assert used.allocated() == {**theirs, used.card: "2"}
    for pod in ("a", "b"):
        used.cluster.api.delete(used.cluster.path(pod)).expect()
    used.wait_for_ours(None)
    before = used.version()
    volcano.wait_for_writes(5)
    assert (used.allocated(), used.version()) == (theirs, before)
    used.run("c")
    volcano.wait_for_writes(3)
    assert used.allocated() == {**theirs, used.card: "1"}


def written(used: Used, installation: Installation, offset: int) -> list[datetime]:
    """When our writes of the queue's status came in at the API server: what is shown of them may be late."""
    account = f"system:serviceaccount:{installation.namespace}:cardquota-controller"
    return [
        datetime.fromisoformat(each.received)
        for each in audit.read(used.cluster.plane.audit_log, offset, of=account)
        if (each.verb, each.resource, each.name) == ("patch", "queues/status", used.name)
    ]


def test_without_the_webhook_keys_are_written_again_with_patience(
    used: Used, volcano: StatusWriter, installation: Installation
) -> None:
    """The scheduler's writes go through, ours are lost at each; we repeat them ever more slowly, and stop when it is back."""
    (webhook,) = installation.webhook_processes
    offset = used.cluster.plane.audit_log.stat().st_size
    webhook.stop()
    try:
        wait_for("our key is written again twice", lambda: len(written(used, installation, offset)) >= 2)
        volcano.wait_for_writes(1)
    finally:
        webhook.start()
    wait_for("our key is there and stays", lambda: used.card in used.allocated())
    volcano.wait_for_writes(5)
    came = written(used, installation, offset)
    assert len(came) >= 3  # more where the webhook is slow to be back
    assert used.allocated() == {"cpu": "1", "pods": "1", used.card: "1"}
    pauses = [(after - before).total_seconds() for before, after in pairwise(came)]
    # Twice as long from the beginning where it was lost soon after it had been written for the first time.
    first = 2 * REPEAT_S if pauses[0] > 1.8 * REPEAT_S else REPEAT_S
    # One that comes later than it is due makes the pause before it longer, and none after it.
    assert all(pause > 0.9 * first * 2**number for number, pause in enumerate(pauses)), pauses


def test_writes_are_counted(used: Used, installation: Installation) -> None:
    """Those that failed as well: there are none."""
    text = installation.metrics("controller")
    assert samples(text, "cardquota_queue_status_writes_total", outcome="done") >= 1
    assert samples(text, "cardquota_queue_status_writes_total", outcome="failed") == 0
