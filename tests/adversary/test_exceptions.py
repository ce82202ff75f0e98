"""What gets past quota by design, each as docs/security.md says it: shown here, so that the page stays true."""

from core import reasons
from core.crossquota.book import guest_book
from core.crossquota.filter import bind_excess
from core.display.notices import queue_notices
from core.settings import Settings
from tests.adversary import ways
from tests.adversary.apiserver import ADMIN
from tests.adversary.attacks import NOBODY, YEAR_S, Trial
from tests.adversary.ways import OTHER, OWN, WAYS
from tests.adversary.world import DRIVER
from tests.builders import a_node, a_pod, a_queue
from tests.builders.claims import a_claim
from tests.unit.core.crossquota.ruling import gpu_node, ruled


def test_warn_lets_cards_pass_that_nobody_names() -> None:
    """`cards.podsWithoutCardName: warn` is the default."""
    trial = Trial("unnamed", Settings())
    trial.create(trial.pod("b"))
    assert trial.outcome() == "b running, charged 0, run 1"


def test_a_short_grace_gives_the_quota_back_before_the_containers_end() -> None:
    """Not longer than `quota.maxFreeGrace`; a second over that keeps it."""
    grace_s = ways.DENYING.quota.max_free_grace_s
    outcomes = {}
    for grace in (grace_s, grace_s + 1):
        trial = Trial("card")
        trial.first()
        trial.world.delete("Pod", "a", grace_s=grace)
        trial.second()
        outcomes[grace - grace_s] = trial.outcome()
    assert outcomes == {0: "b running, charged 1, run 2", 1: "b waits, charged 1, run 1"}


def test_a_forced_deletion_of_a_short_grace_is_that_grace_without_a_trace() -> None:
    """The pod is gone from the API at once; its kubelet may give its containers what `quota.maxFreeGrace` is about. No more."""
    grace_s = ways.DENYING.quota.max_free_grace_s
    outcomes = {}
    for grace in (grace_s, grace_s + 1):
        trial = Trial("card")
        trial.create(trial.pod("a").put("spec", "terminationGracePeriodSeconds", value=grace))
        trial.world.settle()
        trial.attempt(trial.world.delete, "Pod", "a", grace_s=0)
        trial.second()
        outcomes[grace - grace_s] = trial.outcome()
    assert outcomes == {
        0: "b running, charged 1, run 1",
        1: "refused Forbidden, b waits, charged 1, run 1",
    }


def test_without_policies_a_forced_deletion_frees_the_quota_whatever_the_grace() -> None:
    """`policies.enabled: false`: the webhook sees no deletions."""
    outcomes = {}
    for policies in (True, False):
        trial = Trial("card")
        trial.world.policies = policies
        trial.create(trial.pod("a").put("spec", "terminationGracePeriodSeconds", value=YEAR_S))
        trial.world.settle()
        trial.attempt(trial.world.delete, "Pod", "a", grace_s=0)
        trial.second()
        outcomes[policies] = trial.outcome()
    assert outcomes == {
        True: "refused Forbidden, b waits, charged 1, run 1",
        False: "b running, charged 1, run 2",
    }


def test_without_a_controller_what_another_scheduler_binds_is_bound_and_counts_afterwards() -> None:
    """`controller.bindingHook.failurePolicy: Ignore` is the default."""
    trial = Trial("card")
    trial.first()
    trial.world.stop_controller()
    trial.create(trial.pod("b").scheduler(NOBODY))
    trial.world.settle()
    trial.world.start_controller()
    trial.create(trial.pod("c"))
    assert trial.outcome() == "b running, charged 2, run 2"
    assert trial.world.held["c"].why.code == WAYS["card"].short


def test_what_a_device_plugin_offers_for_a_class_costs_no_device() -> None:
    """Of an extended resource that a DeviceClass serves too; no claim is made on such a node."""
    trial = Trial("extended")
    trial.world.put(a_node("d").allocatable(ways.EXTENDED, ways.MANY).build() | {"kind": "Node"})
    trial.first()
    trial.create(trial.pod("b"))
    trial.world.settle()
    assert {view.name for view in trial.world.running()} == {"a", "b"}
    assert trial.world.charged(OWN, WAYS["extended"].key) == 0


def test_a_card_that_a_class_offers_too_is_had_under_both_quotas_and_the_queue_is_told() -> None:
    """One of each, and both run; the queue is told which card and which class may be the same."""
    trial, twin = Trial("card"), "gpu.nvidia.com"
    world = trial.world
    world.create({"kind": "DeviceClass", "metadata": {"name": twin}, "spec": {}}, ADMIN)
    world.put(
        a_node("a").card("A", ways.MANY).label(DRIVER + twin, str(ways.MANY)).build() | {"kind": "Node"}
    )
    world.update(a_queue(OWN).cards({"A": 1}).devices({"capability": {twin: {"count": 1}}}).build(), ADMIN)
    for name in ("c", "d"):
        world.create(a_claim(f"of-{name}").exactly("r", twin).build())
        trial.create(a_pod(name).in_queue(OWN).claim("dev", name=f"of-{name}"))
    trial.first()
    trial.second()
    running = {view.name for view in world.running()}
    assert "a" in running
    assert len(running) == 2
    assert (world.charged(OWN, "A"), world.charged(OWN, f"deviceclass/{twin}")) == (1, 1)
    told = [one for one in queue_notices(world.ledger, OWN) if one.reason == reasons.DEVICES_COUNTED_TWICE]
    assert [f"<A> and DeviceClass {twin} (limit 1)" in one.message for one in told] == [True]


def test_claims_of_a_pod_that_comes_with_its_node_are_charged_without_being_asked() -> None:
    """It keeps the devices of a claim that another pod was let in for, on the books of the queue that it names itself."""
    trial = Trial("claim")
    world, key = trial.world, WAYS["claim"].key
    trial.first()
    kept = WAYS["claim"].named("kept", OTHER).claim("dev", name="of-a")
    world.create(kept.put("spec", "nodeName", value="d").build())
    world.settle()
    world.end("a")
    trial.second()
    assert trial.outcome() == "b running, charged 1, run 2, other 1"
    assert sum(world.used_by(view)[key] for view in world.running()) == 2
    # It is charged as long as it runs, though somebody takes the claim out of sight, finalizers and all.
    world.delete("ResourceClaim", "of-a")
    world.gone(world.get("ResourceClaim", "of-a"))
    world.settle()
    world.restart()
    assert world.charged(OTHER, key) == 1


def test_who_names_a_daemon_set_as_its_controller_gets_past_crossquota() -> None:
    """Whether there is such a DaemonSet is not looked at; one of another API group lets nobody pass."""
    settings = ruled(quota={"cpu": 4}, guardBind=True)
    guests = guest_book((gpu_node("n").view(),), (), settings)
    outcomes = {}
    for version in ("apps/v1", "made.up/v1"):
        pod = a_pod("p").request("cpu", 9).owned_by("DaemonSet", "none", api_version=version)
        outcomes[version] = bind_excess(pod.view(), "n", guests, settings) is None
    assert outcomes == {"apps/v1": True, "made.up/v1": False}


def test_who_may_use_a_queue_may_fill_it_up_to_its_quota() -> None:
    """Of one that names no namespaces that is everybody; others wait until a card comes back."""
    trial = Trial("card")
    trial.create(trial.pod("a", OTHER))
    for number in range(ways.MANY):
        trial.create(trial.pod(f"more{number}", OTHER))
    trial.world.settle()
    assert trial.world.charged(OTHER, "A") == len([*trial.world.running()]) == ways.MANY
    assert len(trial.world.held) == 1


def test_the_first_of_a_fifo_queue_keeps_all_others_waiting_and_its_tenant_says_how_urgent_it_is() -> None:
    """That is what `spec.dequeueStrategy: fifo` says; otherwise the others go past it."""
    outcomes = {}
    for strategy in ("traverse", "fifo"):
        trial = Trial("card")
        queue = ways.limited(OTHER, ways.MANY)
        trial.world.update((queue.fifo() if strategy == "fifo" else queue).build(), ADMIN)
        trial.create(trial.pod("too-much", OTHER).gpu(ways.MANY + 1).priority(2_000_000_000))
        trial.create(trial.pod("b", OTHER))
        outcomes[strategy] = trial.outcome()
    assert outcomes == {
        "traverse": "b running, charged 0, run 1, other 1",
        "fifo": "b waits, charged 0, run 0",
    }
