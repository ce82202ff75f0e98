"""Device quota in the ledger: who is charged, what is shown, and which queues are looked at again."""

import json
from typing import Any

import pytest

from core import names, reasons
from core.display.figures import figures_of
from core.display.notices import queue_notices
from core.queues.ledger import Ledger
from core.queues.share import share_of
from core.settings import Settings
from tests.builders import a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder

APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def devices(count: int, **capacity: int | str) -> dict[str, Any]:
    """A quota of the class `gpu`."""
    return {"capability": {"gpu": {"count": count, "capacity": capacity}}}


TEAM = a_queue("team").devices(devices(4, memory="64Gi")).child_of("org")
ORG = a_queue("org").devices(devices(6))


def books(*queues: QueueBuilder, **settings: Any) -> Ledger:
    """With the claim `c` of two devices with 16Gi each, and a template `t` of one device."""
    ledger = Ledger(Settings.model_validate(settings))
    for queue in queues or (TEAM, ORG):
        ledger.put_queue(queue.view())
    ledger.devices.put_claim(a_claim("c").exactly("r", "gpu", count=2, capacity={"memory": "16Gi"}).view())
    ledger.devices.put_template(a_template("t").exactly("r", "gpu").view())
    return ledger


def user(name: str, *, claim: str = "c", queue: str = "team") -> PodBuilder:
    return a_pod(name).claim("dev", name=claim).in_queue(queue)


def shown(ledger: Ledger, queue: str) -> tuple[dict[str, int], ...]:
    """Devices and memory in units: allocated, reserved, waiting."""
    found = figures_of(ledger, queue)
    return tuple(
        {key: amount // 1000 for key, amount in part.items()}
        for part in (found.allocated, found.reserved, found.waiting)
    )


TWO = {"deviceclass/gpu": 2, "memory.deviceclass/gpu": 32 * 2**30}


@pytest.mark.parametrize(
    ("built", "column"), [(user("p").bound_to("n"), 0), (user("p"), 1), (user("p").gated(), 2)]
)
def test_a_pod_is_charged_to_its_queue_and_to_those_above(built: PodBuilder, column: int) -> None:
    ledger = books()
    ledger.put_pod(built.view())
    for queue in ("team", "org", "root"):
        expected: list[dict[str, int]] = [{}, {}, {}]
        expected[column] = TWO
        assert list(shown(ledger, queue)) == expected
    ledger.drop_pod("uid-ml-p")
    assert shown(ledger, "org") == ({}, {}, {})


def test_a_claim_that_pods_share_is_charged_once_wherever_they_meet() -> None:
    ledger = books(TEAM, ORG, a_queue("other").child_of("org"))
    for pod in (user("a"), user("b"), user("c", queue="other")):
        ledger.put_pod(pod.bound_to("n").view())
    assert [shown(ledger, queue)[0] for queue in ("team", "other", "org")] == [TWO, TWO, TWO]


def test_an_assumed_lift_is_reserved_and_waits_again_when_it_is_taken_back() -> None:
    ledger = books()
    ledger.put_pod(user("p").gated().view())
    ledger.assume(user("p").view())
    assert shown(ledger, "team") == ({}, TWO, {})
    ledger.forget("uid-ml-p")
    assert shown(ledger, "team") == ({}, {}, TWO)


def test_a_pod_that_goes_with_its_queue_charges_the_same_name_when_that_comes_back() -> None:
    ledger = books()
    ledger.put_pod(user("p").bound_to("n").view())
    ledger.drop_queue("team")
    assert shown(ledger, "org") == ({}, {}, {})
    assert shown(ledger, "team")[0] == TWO
    ledger.put_queue(TEAM.view())
    assert (shown(ledger, "team")[0], shown(ledger, "org")[0]) == (TWO, TWO)


@pytest.mark.parametrize(
    "event",
    [
        lambda ledger: ledger.devices.put_claim(a_claim("late").exactly("r", "gpu").view()),
        lambda ledger: ledger.put_queue(TEAM.devices(devices(9)).view()),
        lambda ledger: ledger.put_queue(ORG.devices(devices(9)).view()),
        lambda ledger: ledger.drop_queue("org"),
        lambda ledger: ledger.drop_pod("uid-ml-runs"),
        lambda ledger: ledger.put_pod(user("runs").bound_to("n", phase="Succeeded").view()),
        lambda ledger: ledger.devices.put_claim(
            a_claim("c").exactly("r", "gpu", count=2).allocated("r").view()
        ),
    ],
    ids=[
        "a claim comes",
        "quota",
        "quota above",
        "queue above goes",
        "a pod goes",
        "a pod ends",
        "a claim costs less",
    ],
)
def test_whatever_may_help_a_waiting_pod_has_its_queue_looked_at_again(event: Any) -> None:
    ledger = books()
    ledger.put_pod(user("runs").bound_to("n").view())
    ledger.put_pod(user("waits", claim="late").gated().view())
    ledger.wakeups.take_queues()
    event(ledger)
    assert "team" in ledger.wakeups.take_queues()


def test_what_helps_nobody_has_nobody_looked_at() -> None:
    """A claim that nobody names, a queue beside, its status: a thousand queues must not be looked at for that."""
    ledger = books()
    ledger.put_pod(user("waits", claim="late").gated().view())
    ledger.wakeups.take_queues()
    ledger.devices.put_claim(a_claim("unrelated").exactly("r", "gpu").view())
    ledger.devices.drop_claim("ml/unrelated")
    ledger.put_queue(TEAM.allocated({"cpu": "1"}).view())
    assert set(ledger.wakeups.take_queues()) == set()


def test_a_bind_has_the_queues_above_published_as_well() -> None:
    ledger = books()
    ledger.wakeups.take_figures()
    ledger.put_pod(user("p").bound_to("n").view())
    assert {"team", "org", "root"} <= ledger.wakeups.take_figures()


def test_with_the_feature_off_claims_are_nothing() -> None:
    ledger = books(features={"dra": False})
    ledger.put_pod(user("p").bound_to("n").view())
    pod = user("lost", claim="none").gated().view()
    ledger.put_pod(pod)
    assert (shown(ledger, "team"), figures_of(ledger, "team").quota) == (({}, {}, {}), {})
    assert ledger.devices.obstacle(pod, "team") is None
    assert ledger.devices.excess(pod, "team") is None


def test_where_claims_are_not_served_nobody_waits_for_one_until_they_are() -> None:
    ledger = books()
    pod = user("p", claim="none").gated().view()
    ledger.put_pod(pod)
    ledger.wakeups.take_queues()
    ledger.devices.serve(False)
    assert set(ledger.wakeups.take_queues()) == {"team"}
    assert ledger.devices.obstacle(pod, "team") is None
    ledger.devices.serve(True)
    assert set(ledger.wakeups.take_queues()) == {"team"}
    assert ledger.devices.obstacle(pod, "team") is not None


def test_the_share_is_that_of_the_fullest_limit() -> None:
    ledger = books()
    assert share_of(ledger, "team") == 0
    ledger.put_pod(user("p").bound_to("n").view())
    assert (share_of(ledger, "team"), share_of(ledger, "org")) == (0.5, 2 / 6)
    ledger.put_queue(a_queue("team").cards({"A": 4}).devices(devices(8)).view())
    assert share_of(ledger, "team") == 0.25


def test_keys_that_another_manager_owns_are_left_to_it() -> None:
    owned: dict[str, Any] = {"f:status": {"f:allocated": {"f:deviceclass/gpu": {}}}}
    entry = {"manager": "vc-scheduler", "fieldsV1": owned}
    queue = TEAM.allocated({"deviceclass/gpu": "9"}).add("metadata", "managedFields", item=entry)
    ledger = books(queue, ORG)
    ledger.put_pod(user("p").bound_to("n").view())
    assert ledger.devices.published(queue.view()) == {"memory.deviceclass/gpu": str(32 * 2**30)}
    assert ledger.devices.published(ORG.view()) == {
        "deviceclass/gpu": "2",
        "memory.deviceclass/gpu": str(32 * 2**30),
    }


class TestNotices:
    """What is said on the queue."""

    def said(self, ledger: Ledger, queue: str = "team") -> dict[str, str]:
        return {notice.reason: notice.message for notice in queue_notices(ledger, queue)}

    @pytest.mark.parametrize("bad", [[], "x", {"capability": {"gpu": {}}}])
    def test_a_quota_that_cannot_be_read(self, bad: Any) -> None:
        """Stored while the webhook was away. That all is beyond it goes without saying."""
        ledger = books(a_queue("team").put("spec", "dra", value=bad))
        let_in = {"dev": {"uid": "uid-ml-c", "deviceclass/gpu": "2"}}
        holder = user("p").charged("team").annotation(names.CLAIMS_ANNOTATION, json.dumps(let_in))
        ledger.put_pod(holder.bound_to("n").view())
        said = self.said(ledger)
        assert said.keys() == {reasons.DEVICE_QUOTA_MALFORMED}
        assert "spec.dra" in said[reasons.DEVICE_QUOTA_MALFORMED]
        short = ledger.devices.excess(user("q").gated().view(), "team")
        assert short is None, "its claim is charged already, and was asked for"
        short = ledger.devices.excess(a_pod("q").claim("dev", template="t").gated().view(), "team")
        assert short is not None
        assert short.code == reasons.DEVICE_QUOTA_MALFORMED

    def test_more_than_the_quota_is_used_by_the_queue_or_below_it(self) -> None:
        ledger = books(TEAM, ORG.devices(devices(1)))
        ledger.put_pod(user("p").bound_to("n").view())
        assert self.said(ledger) == {}
        (message,) = self.said(ledger, "org").values()
        assert "deviceclass/gpu used 2, limit 1" in message

    def test_a_quota_that_the_api_server_dropped(self) -> None:
        applied = a_queue("team").annotation(
            APPLIED, '{"spec": {"dra": {"capability": {"gpu": {"count": 1}}}}}'
        )
        assert self.said(books(applied)).keys() == {reasons.DEVICE_QUOTA_PRUNED}
        for kept in (
            applied.devices(devices(1)),
            applied.annotation("volcano.sh/dra.quota", "{}"),
            applied.capability(**{"deviceclass/gpu": 1}),
            a_queue("team").annotation(APPLIED, '{"spec": {"dra": {}}}'),
            a_queue("team").annotation(APPLIED, '{"dra"'),
        ):
            assert self.said(books(kept)) == {}
        assert self.said(books(applied, features={"dra": False})) == {}
