"""Three levels of queues on a real control plane: the controller does what `plan` says, and no queue gets above its quota.

Queues, quotas and pods are random. All pods wait first, because the queue at the top has nothing; then one quota after the other
is changed, and what `plan` makes of the cluster's objects with that change is compared with what the process does.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cli.main import main
from core import names
from hack.controlplane import ControlPlane, wait_for
from hack.install import Installation
from tests.apiserver.cluster import Cluster, unique
from tests.apiserver.devices import queue_path
from tests.apiserver.manifests import card_pod, in_group, podgroup, queue

Quota = dict[str, int]
Lifted = dict[str, Quota]

BRANCHES = {"left": ("l1", "l2"), "right": ("r1", "r2")}
WISHES = 14
"""Pods and gangs."""
CHANGES = 5


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    with Installation(control_plane, values={"cards": {"hierarchy": True}}) as installed:
        yield installed


class Tree:
    """A queue, two below it and two below each of these; cards of its own, and pods that want them."""

    def __init__(self, cluster: Cluster, random: Random) -> None:
        self.cluster = cluster
        self.random = random
        self.cards = [cluster.add_card(12) for _ in range(2)]
        self.parents: dict[str, str] = {}
        self.quotas: dict[str, Quota] = {}
        self.queue_of: dict[str, str] = {}
        """Of each pod."""
        self.org = self.queue("org", dict.fromkeys(self.cards, 0), "")
        for branch, leaves in BRANCHES.items():
            parent = self.queue(branch, self.quota(5), self.org)
            for leaf in leaves:
                self.queue(leaf, self.quota(4), parent)

    def quota(self, most: int) -> Quota:
        """Of each card some, or no word."""
        counts = {card: self.random.randint(0, most) for card in self.cards}
        return {card: count for card, count in counts.items() if self.random.random() < 0.9}

    def queue(self, prefix: str, quota: Quota, parent: str) -> str:
        name = unique(prefix)
        capability = {"capability": {"cpu": str(self.random.randint(3, 9))}} if prefix == "left" else {}
        made = queue(name, json.dumps(quota))
        made["spec"] |= {**capability, **({"parent": parent} if parent else {})}
        self.cluster.create_queue(made)
        self.parents[name], self.quotas[name] = parent, quota
        return name

    def fill(self) -> None:
        """Pods and gangs in queues of every level."""
        for number in range(WISHES):
            name = self.random.choice([*self.parents, *list(self.parents)[2:]])
            card = self.random.choice((*self.cards, "|".join(self.cards)))
            count, members = self.random.randint(1, 2), self.random.choice((1, 1, 1, 2, 3))
            pods = [
                _with_cpu(card_pod(f"p{number:02}-{member}", card, name, count)) for member in range(members)
            ]
            if members > 1:
                group = f"g{number}"
                self.cluster.create(podgroup(group, name, members))
                pods = in_group(group, *pods)
            self.cluster.create(*pods)
            self.queue_of |= {pod["metadata"]["name"]: name for pod in pods}

    def change(self, name: str, quota: Quota) -> None:
        self.quotas[name] = quota
        self.cluster.set_quota(queue_path(name), json.dumps(quota))

    def lifted(self) -> Lifted:
        """The pods that are past the gate, and the cards on their record."""
        found: Lifted = {}
        pods = {name: pod for name, pod in self.cluster.pods().items() if name in self.queue_of}
        for name, pod in pods.items():
            record = pod["metadata"]["annotations"].get(names.ASSIGNED_ANNOTATION)
            if record is not None:
                found[name] = json.loads(record)
        return found

    def wait_lifted(self, lifted: Lifted) -> None:
        wait_for(f"the controller lifts as planned: {lifted}", lambda: self.lifted() == lifted)

    def wait_for_another(self, name: str) -> None:
        """Let in one more, of another queue: by then the controller has looked at everybody who was there before."""
        own = unique(name)
        self.cluster.create_queue(queue(own, json.dumps({self.cards[0]: 1})))
        self.cluster.create(card_pod(name, self.cards[0], own))
        wait_for(f"{name} is let in", lambda: name not in self.cluster.gated())

    def used(self, level: str) -> Quota:
        """What is taken by a queue and all below it, counted from the pods alone."""
        total = dict.fromkeys(self.cards, 0)
        for name, cards in self.lifted().items():
            if level in self.chain(self.queue_of[name]):
                for card, count in cards.items():
                    total[card] += count
        return total

    def chain(self, name: str) -> Iterator[str]:
        while name:
            yield name
            name = self.parents[name]


def _with_cpu(pod: dict[str, Any]) -> dict[str, Any]:
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    return pod


def planned(tree: Tree, plane: ControlPlane, folder: Path, capsys: pytest.CaptureFixture[str]) -> Lifted:
    """Whom `plan` lifts in the cluster as it is, were a quota already the one that the tree is to have."""
    state = folder / "state.json"
    assert main(["dump", "-o", str(state), "--kubeconfig", str(plane.admin_kubeconfig)]) == 0
    dumped = json.loads(state.read_text("utf-8"))
    for thing in dumped["items"]:
        if thing["kind"] == "Queue" and thing["metadata"]["name"] in tree.quotas:
            quota = tree.quotas[thing["metadata"]["name"]]
            thing["metadata"]["annotations"][names.CARD_QUOTA_ANNOTATION] = json.dumps(quota)
    state.write_text(json.dumps(dumped), "utf-8")
    capsys.readouterr()
    assert main(["plan", "-o", "json", "-n", tree.cluster.namespace, "--state", str(state)]) == 0
    pods = json.loads(capsys.readouterr().out)["pods"]
    return {key.partition("/")[2]: pod["assigned"] for key, pod in pods.items() if pod["decision"] == "lift"}


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("seed", [3, 11, 27])
def test_the_controller_does_what_plan_says(
    cluster: Cluster,
    control_plane: ControlPlane,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    seed: int,
) -> None:
    random = Random(seed)
    tree = Tree(cluster, random)
    tree.fill()
    assert tree.lifted() == {}
    done, lifts = Lifted(), list[int]()
    for number in range(CHANGES):
        name = tree.org if number == 0 else random.choice([*tree.parents])
        before = {level: tree.used(level) for level in tree.parents}
        quota = {card: random.randint(3, 9) for card in tree.cards}
        tree.quotas[name] = quota
        said = planned(tree, control_plane, tmp_path, capsys)
        tree.change(name, quota)
        done |= said
        tree.wait_lifted(done)
        tree.wait_for_another(f"last-{number}")
        assert tree.lifted() == done
        for level in tree.parents:
            for card, used in tree.used(level).items():
                limit = tree.quotas[level].get(card)
                assert limit is None or used <= max(limit, before[level][card]), (level, card, used, limit)
        lifts.append(len(said))
    assert sum(lifts) >= 3, lifts
    assert cluster.gated(), "something is left that does not fit"
