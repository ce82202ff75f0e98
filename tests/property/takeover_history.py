"""Users, schedulers, nodes and administrators at random, over what is stored."""

import asyncio
from itertools import count
from typing import Any, cast

from core import names
from core.mgpu import records
from tests.builders import a_group, a_job, a_namespace, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_device_class, a_template
from tests.builders.objects import PodBuilder
from tests.property.takeover_replica import Replica
from tests.property.takeover_world import Stored
from tests.unit.controller.test_binding import binding

NODES = ("n0", "n1", "n2", "n3")
QUEUES = ("default", "q0", "q1")
PARENTS = ("", "root", "q0", "q1", "gone")
GROUPS = ("g0", "g1")
JOBS = ("j0", "j1")
CLASSES = ("gpu", "nic")
CLAIMS, TEMPLATES = ("c0", "c1"), ("t0", "t1")
SERVED = "example.com/gpu"
QUOTAS = ('{"A": 4}', '{"A": 2, "B": 2}', '{"A": 0, "A|B": 3}', "{", '{"A": "many"}')
CARDS = ("A", "A|B", "B|A", "A|A", "gone", "|")
RECORDS = ("", "0", "1", "0,1", "7", "x", "9" * 400, "-1", "0,", "\0")
CLAIM_RECORDS = (
    "{",
    "[]",
    '{"e": 1}',
    '{"e": {"deviceclass/gpu": "1"}}',
    '{"e": {"uid": "x", "deviceclass/nic": "9e9"}}',
)
COUNTS = ("0", "1", "2", "1,1", "x")
CREATED, SOON = "1970-01-12T13:46:40Z", "1970-01-12T13:47:30Z"


class History:
    """Users, schedulers, nodes and administrators at random; both controllers hear of it when they do."""

    def __init__(self, seed: int) -> None:
        self.stored = Stored(seed, stormy=(0.0, 0.1, 0.3)[seed % 3])
        self.rng = self.stored.rng
        self.numbers = count()
        once = (self.node, self.queue, self.group, self.end, self.namespace, self.job)
        devices = (self.device_class, self.claim, self.claim, self.template)
        self.changes = (*once, *devices, *5 * (self.pod,), *4 * (self.edit,))
        for name in NODES[:3]:
            self.stored.put("nodes", name, a_node(name).mgpu(4, memory=16384).card("A", 8))
        self.namespace()

    def happen(self) -> None:
        for _ in range(self.rng.choice((0, 1, 1, 2, 5))):
            self.rng.choice(self.changes)()

    def node(self) -> None:
        rng = self.rng
        built = a_node(name := rng.choice(NODES)).mgpu(rng.choice((1, 2, 4)), memory=16384)
        built = built.card(rng.choice("AB"), rng.choice((2, 8))).allocatable("cpu", rng.choice((0, 8, "64")))
        built = built.label("zone", rng.choice("ab")) if rng.random() < 0.7 else built
        built = built.tainted("own") if rng.random() < 0.1 else built
        self._put_or_drop("nodes", name, built.not_ready() if rng.random() < 0.1 else built)

    def queue(self) -> None:
        rng = self.rng
        built = a_queue(name := rng.choice((*QUEUES, "root"))).cards(rng.choice(QUOTAS))
        if rng.random() < 0.3:
            built = built.shares(core=rng.choice((100, 400)))
        if rng.random() < 0.5:
            quota = {each: {"count": rng.choice((0, 1, 4, "many"))} for each in CLASSES}
            built = built.devices({"capability": quota})
        if rng.random() < 0.3:
            built = built.child_of(rng.choice(PARENTS))
        if rng.random() < 0.2:
            built = built.used_by(rng.choice(("ml", "other", "m*", "[", "")))
        if rng.random() < 0.1:
            built = built.state("Closed")
        self._put_or_drop("queues", name, built.fifo() if rng.random() < 0.2 else built)

    def group(self) -> None:
        built = a_group(name := self.rng.choice(GROUPS)).in_queue(self.rng.choice(QUEUES))
        if self.rng.random() < 0.3:
            built = built.owned_by("Job", self.rng.choice(JOBS), api_version="batch.volcano.sh/v1alpha1")
        if self.rng.random() < 0.3:
            built = built.min_task("worker", self.rng.choice((0, 1, 2)))
        self._put_or_drop("podgroups", f"ml/{name}", built.min_member(self.rng.choice((0, 1, 2, 3))))

    def job(self) -> None:
        built = a_job(name := self.rng.choice(JOBS)).in_queue(self.rng.choice(QUEUES))
        built = built.cards({"A": 1}) if self.rng.random() < 0.5 else built
        self._put_or_drop("jobs", f"ml/{name}", built.task("worker", a_pod().gpu(1), replicas=2))

    def namespace(self) -> None:
        """It may go before its pods, as one does whose finalizers were taken away."""
        built = a_namespace("ml").label("team", self.rng.choice("ab"))
        if self.rng.random() < 0.5:
            built = built.in_queue(self.rng.choice((*QUEUES, "gone")))
        if self.rng.random() < 0.3:
            built = built.annotation(names.DEFAULT_CARD_ANNOTATION, self.rng.choice(CARDS))
        self._put_or_drop("namespaces", "ml", built)

    def device_class(self) -> None:
        built = a_device_class(name := self.rng.choice(CLASSES))
        built = built.serving(SERVED) if self.rng.random() < 0.5 else built
        self._put_or_drop("deviceclasses", name, built)

    def claim(self) -> None:
        """One that a user writes, or that is made for a pod; perhaps allocated."""
        rng, pods = self.rng, self._pods()
        built = a_claim(name := rng.choice(CLAIMS))
        built = built.exactly("r", rng.choice(CLASSES), count=rng.choice((0, 1, 2, "x")))
        if pods and rng.random() < 0.4:
            owner = rng.choice(pods).raw["metadata"]
            built = built.made_for(owner["name"], uid=owner["uid"])
        self._put_or_drop(
            "resourceclaims", f"ml/{name}", built.allocated("r") if rng.random() < 0.4 else built
        )

    def template(self) -> None:
        built = a_template(name := self.rng.choice(TEMPLATES))
        built = built.exactly("r", self.rng.choice(CLASSES), count=self.rng.choice((1, 3)))
        self._put_or_drop("resourceclaimtemplates", f"ml/{name}", built)

    def _put_or_drop(self, plural: str, key: str, built: Any) -> None:
        if (plural, key) in self.stored.objects and self.rng.random() < 0.4:
            self.stored.drop(plural, key)
        else:
            self.stored.put(plural, key, built)

    def pod(self) -> None:
        rng = self.rng
        pod = a_pod(f"p{next(self.numbers)}").in_queue(rng.choice(("", *QUEUES))).created(CREATED)
        pod = self._asking(pod)
        if rng.random() < 0.2:
            pod = pod.needs_node("zone", *rng.choice((("a",), ("a", "b"), ("c",))))
        if rng.random() < 0.3:
            pod = pod.in_group(rng.choice(GROUPS)).task(rng.choice(("worker", "")))
        elif rng.random() < 0.2:
            pod = pod.in_gang(rng.choice(GROUPS), rng.choice((0, 1, 2, "x")), owner=rng.choice(("", *JOBS)))
        elif rng.random() < 0.5:
            pod = pod.owned_by("ReplicaSet", "set") if rng.random() < 0.5 else pod.of_deployment("web", "1")
        self._put_pod(pod.gated() if rng.random() < 0.9 else pod)

    def _asking(self, pod: PodBuilder) -> PodBuilder:
        """Shares, cards, devices, or CPU alone."""
        rng = self.rng
        kind = rng.choice(("share", "share", "cards", "claim", "claim", "served", "guest"))
        if kind == "share":
            pod = pod.mgpu(core=rng.choice((5, 10, 60, 100, 200)), memory=rng.choice((1024, 4096, None)))
            wide = rng.random() < 0.2
            return pod.mgpu("wide", core=100, memory=4096).cards_per_container(1, 2) if wide else pod
        if kind == "cards":
            return pod.gpu(rng.choice((1, 2))).card(rng.choice(CARDS)).request("cpu", rng.choice((1, 6)))
        if kind == "served":
            return pod.limit(SERVED, rng.choice((1, 2)))
        if kind == "guest":
            return pod.request("cpu", rng.choice((1, 3, 5)))
        if rng.random() < 0.5:
            return pod.claim("e", name=rng.choice(CLAIMS))
        pod = pod.claim("e", template=rng.choice(TEMPLATES))
        return pod.generated_claim("e", rng.choice(CLAIMS)) if rng.random() < 0.5 else pod

    def edit(self) -> None:
        """Bound past the hook, ungated by hand, with other records, started, done, on its way out, of a run that is over."""
        if not self._pods():
            return
        pod, rng = self.rng.choice(self._pods()), self.rng
        edits = (
            lambda: pod.annotation(records.key("main"), rng.choice(RECORDS)),
            lambda: pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, rng.choice(COUNTS)),
            lambda: pod.annotation(names.CLAIMS_ANNOTATION, rng.choice(CLAIM_RECORDS)),
            lambda: pod.annotation(names.CHARGED_QUEUE_ANNOTATION, rng.choice((*QUEUES, "", "gone"))),
            lambda: pod.assigned(rng.choice(('{"A": 1}', '{"A": 2, "B": 1}', "{", '{"A": -1}'))),
            lambda: pod.bound_to(_node(pod) or rng.choice(NODES), phase="Pending"),
            lambda: pod.put("spec", "schedulingGates", value=[]),
            pod.started,
            lambda: pod.terminating(grace_s=rng.choice((0, 30)), deadline=rng.choice((CREATED, SOON))),
            lambda: pod.phase(rng.choice(("Succeeded", "Failed"))),
        )
        self._put_pod(rng.choice(edits)())

    def end(self) -> None:
        """Deletes a pod; now and then all of them, as the end of a job does."""
        keys = self.stored.all("pods")
        for key in keys if self.rng.random() < 0.02 else self.rng.sample(keys, min(1, len(keys))):
            self.stored.drop("pods", key)

    def meddle(self) -> None:
        """Somebody writes another record to every pod that has one."""
        for pod in self._pods():
            if records.key("main") in pod.raw["metadata"].get("annotations", {}):
                self._put_pod(pod.annotation(records.key("main"), self.rng.choice(RECORDS)))

    async def schedule(self, replica: Replica) -> None:
        """A scheduler asks for a bind; what is granted is stored, late, or never."""
        waiting = [
            pod for pod in self._pods() if not pod.raw["spec"].get("schedulingGates") and not _node(pod)
        ]
        if not waiting:
            return
        asked, node = self.rng.choice(waiting).raw["metadata"], self.rng.choice(NODES)
        decision = await replica.review(binding(asked["name"], node=node, uid=asked["uid"]))
        await asyncio.sleep(self.rng.choice((0.001, 0.05)))
        now = self.stored.objects.get(("pods", f"ml/{asked['name']}"))
        if not decision.allowed or now is None or self.rng.random() < 0.1:
            return
        if now.raw["metadata"]["uid"] == asked["uid"] and not _node(now):
            for key, text in (decision.patch[0].value if decision.patch else {}).items():
                now = now.annotation(key, text)
            self._put_pod(cast("PodBuilder", now).bound_to(node, phase="Pending"))

    def _pods(self) -> list[PodBuilder]:
        return [cast("PodBuilder", self.stored.objects["pods", key]) for key in self.stored.all("pods")]

    def _put_pod(self, pod: PodBuilder) -> None:
        metadata = pod.raw["metadata"]
        self.stored.put("pods", f"{metadata['namespace']}/{metadata['name']}", pod)


def _node(pod: Any) -> str:
    return str(pod.raw["spec"].get("nodeName", ""))
