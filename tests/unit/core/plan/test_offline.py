"""A complete plan over a file of objects, and where one pod fits."""

from core import names, reasons
from core.crossquota.book import guest_book
from core.objects import Pod
from core.plan.offline import patch_as_given, plan
from core.plan.place import place
from core.queues.ledger import Ledger
from core.settings import Settings, parse
from tests.builders import a_node, a_pod, a_queue
from tests.builders.objects import PodBuilder


def books(*pods: PodBuilder, quota: int = 2) -> tuple[Ledger, list[Pod]]:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("h1").card("H200", 8).view())
    ledger.put_queue(a_queue("q").cards({"H200": quota}).view())
    views = [pod.view() for pod in pods]
    for view in views:
        ledger.put_pod(view)
    return ledger, views


def named(name: str) -> PodBuilder:
    return a_pod(name).gpu(1).card("H200").in_queue("q")


def test_every_pod_is_told_about_and_what_was_lifted_stays_lifted() -> None:
    ledger, views = books(
        named("bound").bound_to("h1"),
        named("reserved"),
        named("waits").gated().created("2024-01-01T00:00:09Z"),
        a_pod("cpu"),
        named("done").bound_to("h1", phase="Succeeded"),
        named("lifts").gated(),
        quota=3,
    )
    result = plan(ledger, views)
    assert {key: pod.decision for key, pod in result.pods.items()} == {
        "ml/bound": "allocated",
        "ml/reserved": "reserved",
        "ml/waits": "hold",
        "ml/cpu": "ignored",
        "ml/done": "ignored",
        "ml/lifts": "lift",
    }
    queue = result.queues["q"]
    assert (queue.quota, queue.allocated, queue.reserved, queue.waiting) == (
        {"H200": 3000},
        {"H200": 1000},
        {"H200": 2000},
        {"H200": 1000},
    )
    assert queue.share == 1.0
    assert [(event.object, event.reason) for event in result.events] == [
        ("Pod ml/waits", reasons.INSUFFICIENT_SCALAR_QUOTA)
    ]
    assert plan(ledger, views).pods["ml/waits"].decision == "hold", "planning again lifts nobody else"


def test_a_quota_that_cannot_be_read_is_an_event_on_the_queue() -> None:
    ledger, views = books(named("p").gated())
    ledger.put_queue(a_queue("q").cards("{").view())
    events = plan(ledger, views).events
    assert [(event.object, event.reason) for event in events] == [
        ("Queue q", reasons.CARD_QUOTA_MALFORMED),
        ("Pod ml/p", reasons.CARD_QUOTA_MALFORMED),
    ]


def test_a_queue_that_uses_more_than_its_quota_is_an_event_on_the_queue() -> None:
    ledger, views = books(named("a").bound_to("h1"), named("b").bound_to("h1"), quota=1)
    (event,) = plan(ledger, views).events
    assert (event.object, event.reason, event.type) == ("Queue q", reasons.QUOTA_EXCEEDED, "Warning")
    assert "<H200> used <2000>, but capability is <1000>" in event.message


def test_a_rollout_that_waits_for_its_own_pods_is_an_event_on_those_that_wait() -> None:
    old = named("old").bound_to("h1").of_deployment("web", "aaa")
    new = named("new").gated().of_deployment("web", "bbb")
    ledger, views = books(old, new, named("other").gated(), quota=1)
    assert [(event.object, event.reason) for event in plan(ledger, views).events] == [
        ("Pod ml/new", reasons.INSUFFICIENT_SCALAR_QUOTA),
        ("Pod ml/new", reasons.ROLLOUT_NEEDS_QUOTA),
        ("Pod ml/other", reasons.INSUFFICIENT_SCALAR_QUOTA),
    ]


def test_old_pods_that_this_very_plan_lifts_are_in_the_way_too() -> None:
    old = named("old").gated().of_deployment("web", "aaa")
    new = named("new").gated().of_deployment("web", "bbb").created("2024-01-01T00:00:09Z")
    ledger, views = books(old, new, quota=1)
    assert plan(ledger, views).events[-1].reason == reasons.ROLLOUT_NEEDS_QUOTA


def test_pods_are_late_for_their_nodes_only_where_there_is_a_present() -> None:
    """Objects from a file have none: the same file gives the same plan on any day."""
    pod = named("p").written_by("cardquota", "2024-01-01T00:00:00Z")
    ledger, views = books(pod)
    assert plan(ledger, views).events == ()
    lifted = views[0].released
    assert plan(ledger, views, lifted + 599 * 10**6).events == ()
    (event,) = plan(ledger, views, lifted + 600 * 10**6).events
    assert (event.object, event.reason) == ("Pod ml/p", reasons.RESERVED_TOO_LONG)


def test_an_empty_cluster_has_an_empty_plan() -> None:
    result = plan(Ledger(Settings()), [])
    assert (result.pods, result.queues, result.events) == ({}, {}, ())


def test_the_patch_tests_only_what_the_given_object_has() -> None:
    ledger, views = books(named("p").gated())
    patch = plan(ledger, views).pods["ml/p"].patch
    assert patch is not None
    paths = [operation["path"] for operation in patch_as_given(patch, {"metadata": {"name": "p"}})]
    assert paths[0] == "/spec/schedulingGates/0/name"
    assert patch_as_given(patch, {"metadata": {"uid": "u", "resourceVersion": "1"}}) == patch


def test_an_mgpu_pod_is_placed_as_if_it_were_unbound_and_did_not_count_itself() -> None:
    ledger = Ledger(Settings())
    ledger.put_node(a_node("m1").mgpu(2, memory=16384).view())
    ledger.put_node(a_node("cpu").view())
    pod = a_pod("p").mgpu("c1", core=100).only("c1").bound_to("m1")
    pod = pod.annotation(names.GPU_INDEX_PREFIX + "c1", "0")
    ledger.put_pod(pod.view())
    ledger.put_pod(
        a_pod("other")
        .mgpu("c1", core=100)
        .only("c1")
        .bound_to("m1")
        .annotation(names.GPU_INDEX_PREFIX + "c1", "1")
        .view()
    )
    places = place(ledger, guest_book((), (), Settings()), pod.view())
    share = places["m1"].share
    assert places["m1"].unfits == ()
    assert share is not None
    assert share.annotations == {names.GPU_INDEX_PREFIX + "c1": "0", names.ASSUMED_ANNOTATION: "true"}
    assert (share.score, share.optimal) == (100.0, True)
    (unfit,) = places["cpu"].unfits
    assert (unfit.code, unfit.unresolvable) == (reasons.MGPU_NODE_TYPE, True)


def test_a_choice_prefers_the_node_of_its_leftmost_card() -> None:
    ledger = Ledger(Settings())
    for name, card in (("n1", "A"), ("n2", "B"), ("n3", "C")):
        ledger.put_node(a_node(name).card(card, 1).view())
    places = place(ledger, guest_book((), (), Settings()), a_pod("p").gpu(1).card("A|B").view())
    assert {
        name: (found.card.card, found.card.score) if found.card else None for name, found in places.items()
    } == {
        "n1": ("A", 100.0),
        "n2": ("B", 50.0),
        "n3": None,
    }


def test_each_part_of_a_place_stands_for_itself() -> None:
    """CPU is beyond the limit, yet the cards of the share are shown; a DaemonSet's pod has no such limit."""
    settings = parse({"gpu-resource-names": "nvidia.com/gpu", "quota.cpu": "1"})[0]
    node = a_node("n").allocatable("nvidia.com/gpu", 8).mgpu(1, memory=1024).view()
    ledger = Ledger(settings)
    ledger.put_node(node)
    pod = a_pod("p").mgpu("c", core=30, memory=512).only("c").request("cpu", 2, container="c")
    guests = guest_book((node,), (), settings)
    found = place(ledger, guests, pod.view())["n"]
    assert [unfit.code for unfit in found.unfits] == [reasons.CROSS_QUOTA_EXCEEDED]
    assert found.share is not None
    assert found.guest_score == 0.0
    assert place(ledger, guests, pod.owned_by("DaemonSet", "d").view())["n"].unfits == ()


def test_the_patch_of_an_mgpu_pod_says_where_it_is_led() -> None:
    """Nothing is assigned by it; who was lifted before has its room, for `place` too."""
    node = a_node("m1").mgpu(1, memory=16384).label(names.HOSTNAME_LABEL, "host-1")
    pod = a_pod("p").mgpu(core=60, memory=2048).gated()
    ledger, pods = books(pod)
    ledger.put_queue(a_queue("default").view())
    ledger.put_node(node.view())
    planned = plan(ledger, pods).pods["ml/p"]
    assert (planned.decision, planned.assigned) == ("lift", None)
    values = [operation.get("value") for operation in planned.patch or ()]
    assert "host-1" in str(values)
    assert {"cardquota.io/queue": "default", "cardquota.io/node": "m1"} in values
    other = place(ledger, guest_book((), (), ledger.settings), a_pod("q").mgpu(core=60, memory=2048).view())[
        "m1"
    ]
    assert [unfit.code for unfit in other.unfits] == [reasons.MGPU_NO_ROOM]
