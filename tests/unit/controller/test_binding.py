"""The binding hook: cards for pods that ask for mGPU, nothing else touched, nothing booked for binds that fail."""

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controller.binding import BindingHook
from controller.grants import HOOK_TIMEOUT_S, settled_after
from controller.metrics import Metrics
from core import names, reasons
from core.admission.request import AdmissionRequest, Decision
from core.settings import Settings
from kube import errors
from tests.builders import a_node, a_pod
from tests.builders.objects import PodBuilder
from tests.fakes.apiserver import background
from tests.unit.controller.cluster import Pods, caches, show
from tests.unit.controller.fakes import term

SETTLED_S = settled_after(HOOK_TIMEOUT_S)
NODE = a_node("m1").mgpu(2, memory=16384)
INDEX = names.GPU_INDEX_PREFIX + "main"
FORGED = {INDEX: "1", names.ASSUMED_ANNOTATION: "true", names.ASSIGNED_ANNOTATION: '{"A":1}'}


def share(name: str = "p", core: int = 60) -> PodBuilder:
    return a_pod(name).mgpu(core=core, memory=2048 if core < 100 else None)


class World:
    """A leading hook over one mGPU node and the pods given."""

    def __init__(self, *pods: PodBuilder, settings: Settings | None = None) -> None:
        self.caches = caches([NODE.view()], [pod.view() for pod in pods], settings)
        self.reader = Pods(*(pod.build() for pod in pods))
        metrics = Metrics(CollectorRegistry())
        self.hook = BindingHook(self.reader, self.caches, settings or Settings(), metrics)
        self.hook.start(term())

    def show(self, pod: PodBuilder) -> None:
        self.reader.stored[pod.view().key] = pod.build()
        show(self.caches.pods, pod.view().key, pod.view())

    async def bind(self, name: str = "p", **changes: Any) -> Decision:
        return await self.hook.review(binding(name, **changes))


def binding(
    name: str = "p",
    *,
    node: str = "m1",
    uid: str | None = None,
    annotations: dict[str, str] | None = None,
    inner: str | None = None,
    legacy: bool = False,
    dry_run: bool = False,
) -> AdmissionRequest:
    metadata: dict[str, Any] = {"name": inner or name, "uid": f"uid-ml-{name}" if uid is None else uid}
    if annotations is not None:
        metadata["annotations"] = annotations
    return AdmissionRequest(
        uid="review",
        group="",
        resource="bindings" if legacy else "pods",
        subresource="" if legacy else "binding",
        kind="Binding",
        operation="CREATE",
        namespace="ml",
        name="" if legacy else name,
        dry_run=dry_run,
        object={"metadata": metadata, "target": {"kind": "Node", "name": node}},
    )


def records(decision: Decision) -> dict[str, str]:
    """The annotations that the Binding is stored with."""
    assert decision.allowed, decision.denial
    (operation,) = decision.patch
    assert operation.path == ("metadata", "annotations")
    return dict(operation.value)


def stored(pod: PodBuilder, decision: Decision, node: str = "m1") -> PodBuilder:
    """The pod as it is once its bind has gone through."""
    for key, value in records(decision).items():
        pod = pod.annotation(key, value)
    return pod.bound_to(node, phase="Pending")


def code(decision: Decision) -> str:
    assert decision.denial is not None
    return decision.denial.violations[0].code


async def test_an_mgpu_pod_gets_its_cards_and_the_next_one_the_other_card() -> None:
    world = World(share("a"), share("b"), share("c"))
    assert records(await world.bind("a")) == {
        names.CHARGED_QUEUE_ANNOTATION: "default",
        INDEX: "0",
        names.ASSUMED_ANNOTATION: "true",
    }
    assert records(await world.bind("b"))[INDEX] == "1"
    denied = await world.bind("c")
    assert code(denied) == reasons.MGPU_NO_ROOM
    assert denied.denial is not None
    assert (denied.denial.status, denied.denial.reason) == (409, "Conflict")


async def test_asked_again_for_the_same_node_it_answers_the_same() -> None:
    world = World(share("a"))
    first = await world.bind("a")
    assert await world.bind("a") == first
    assert await world.bind("a", uid="") == first
    assert len(world.caches.ledger.pods_on("m1")) == 1


@pytest.mark.looptime
async def test_a_pod_goes_to_another_node_only_when_its_first_bind_cannot_be_stored_any_more() -> None:
    """The API server may still store the first one; were its card given out meanwhile, two pods would have it."""
    world = World(share("a", 100), share("b", 100), share("c", 100))
    show(world.caches.nodes, "m2", a_node("m2").mgpu(1, memory=16384).view())
    await world.bind("a")
    denied = await world.bind("a", node="m2")
    assert code(denied) == reasons.POD_ALREADY_BOUND
    assert denied.denial is not None
    assert "node m1" in denied.denial.message
    assert code(await world.bind("a", node="m2", dry_run=True)) == reasons.POD_ALREADY_BOUND
    await world.bind("b")
    assert code(await world.bind("c")) == reasons.MGPU_NO_ROOM
    async with background(world.hook.run()):
        await asyncio.sleep(SETTLED_S + 1)
    assert records(await world.bind("a", node="m2"))[INDEX] == "0"


async def test_a_pod_that_the_watch_shows_bound_meanwhile_stays_booked_where_it_is() -> None:
    """The read that makes good for a lagging cache may itself be overtaken by the watch."""
    world = World(share("a", 100).gated(), share("b", 100))
    show(world.caches.nodes, "m2", a_node("m2").mgpu(1, memory=16384).view())
    world.reader.stored["ml/a"] = share("a", 100).build()
    bound = share("a", 100).bound_to("m1").annotation(INDEX, "0").view()
    world.reader.meanwhile = lambda: show(world.caches.pods, "ml/a", bound)
    assert code(await world.bind("a", node="m2")) == reasons.POD_ALREADY_BOUND
    assert records(await world.bind("b"))[INDEX] == "1"


async def test_a_pod_that_asks_for_nothing_of_ours_passes_untouched() -> None:
    world = World(a_pod("cpu"), a_pod("gpu").gpu(1))
    assert await world.bind("cpu") == Decision()
    assert await world.bind("gpu", annotations={"scheduling.k8s.io/group-name": "g"}) == Decision()
    assert world.reader.reads == 0


async def test_forged_records_are_dropped_or_overwritten_and_other_annotations_kept() -> None:
    world = World(a_pod("cpu"), share("p"))
    brought = {**FORGED, "scheduling.k8s.io/group-name": "g"}
    assert records(await world.bind("cpu", annotations=brought)) == {"scheduling.k8s.io/group-name": "g"}
    assert records(await world.bind("p", annotations=brought)) == {
        "scheduling.k8s.io/group-name": "g",
        names.CHARGED_QUEUE_ANNOTATION: "default",
        INDEX: "0",
        names.ASSUMED_ANNOTATION: "true",
    }


@pytest.mark.parametrize(
    ("pod", "changes", "reason"),
    [
        (None, {}, reasons.POD_NOT_FOUND),
        (share().gated(), {}, reasons.POD_GATED),
        (share().put("spec", "schedulingGates", value=[{"name": "other.io/gate"}]), {}, reasons.POD_GATED),
        (share().bound_to("m2"), {}, reasons.POD_ALREADY_BOUND),
        (share().terminating(), {}, reasons.POD_TERMINATING),
        (share().phase("Failed"), {}, reasons.POD_TERMINATING),
        (share(), {"uid": "another"}, reasons.POD_REPLACED),
        (share(), {"inner": "other"}, reasons.POD_REPLACED),
        (share(), {"node": "nowhere"}, reasons.NODE_NOT_FOUND),
        (
            share().mgpu("init-free", core=1, memory=1).mgpu("x" * 44, core=1, memory=1),
            {},
            reasons.MGPU_CONTAINER_NAME,
        ),
        (share().mgpu_policy("native-burst-share"), {}, reasons.MGPU_POLICY_MISMATCH),
    ],
)
async def test_a_bind_that_cannot_go_through_is_refused_and_books_nothing(
    pod: PodBuilder | None, changes: dict[str, Any], reason: str
) -> None:
    world = World(*([pod] if pod is not None else []), share("full", 200).only("main").put("x", value=1))
    denied = await world.bind("p", **changes)
    assert code(denied) == reason
    assert denied.denial is not None
    assert denied.denial.message
    assert world.caches.ledger.pods_on("m1") == []


async def test_the_cache_lagging_behind_the_scheduler_is_made_good_by_a_read() -> None:
    world = World(share("p").gated())
    world.reader.stored["ml/p"] = share("p").build()
    assert records(await world.bind("p"))[INDEX] == "0"
    world.reader.stored["ml/new"] = share("new").build()
    assert records(await world.bind("new"))[INDEX] == "1"
    world.reader.stored["ml/cpu"] = a_pod("cpu").build()
    assert await world.bind("cpu") == Decision()


async def test_a_read_that_fails_makes_the_scheduler_try_again() -> None:
    world = World()
    world.reader.fails = errors.ConnectionFailed("away")
    assert code(await world.bind("p")) == reasons.API_UNAVAILABLE


async def test_the_older_way_to_bind_is_answered_alike() -> None:
    assert records(await World(share("p")).bind("p", legacy=True))[INDEX] == "0"


async def test_a_dry_run_answers_and_books_nothing() -> None:
    world = World(share("p"))
    assert records(await world.bind("p", dry_run=True))[INDEX] == "0"
    assert world.caches.ledger.pods_on("m1") == []


async def test_a_replica_that_does_not_lead_lets_others_pass_and_refuses_ours_for_now() -> None:
    world = World(share("p"), a_pod("cpu"))
    world.hook.stop()
    assert code(await world.bind("p")) == reasons.NO_LEADER
    assert await world.bind("cpu") == Decision()
    world.reader.stored["ml/unseen"] = a_pod("unseen").build()
    assert await world.bind("unseen") == Decision()


async def test_with_the_feature_off_nothing_is_ours() -> None:
    settings = Settings.model_validate({"features": {"mgpu": False}})
    assert await World(share("p"), settings=settings).bind("p") == Decision()


async def test_a_pod_deleted_after_its_grant_gives_the_cards_back_at_once() -> None:
    world = World(share("a", 200), share("b", 200))
    await world.bind("a")
    assert code(await world.bind("b")) == reasons.MGPU_NO_ROOM
    show(world.caches.pods, "ml/a", None)
    assert records(await world.bind("b"))[INDEX] == "0,1"


async def test_fifty_binds_at_once_never_overbook_a_card() -> None:
    world = World(*(share(f"p{i}", 30) for i in range(50)))
    answers = await asyncio.gather(*(world.bind(f"p{i}") for i in range(50)))
    granted = [records(answer)[INDEX] for answer in answers if answer.allowed]
    assert sorted(granted) == ["0"] * 3 + ["1"] * 3
