"""`cards.equivalents`: a card and the DeviceClasses that serve exactly it are one device, under whatever name it is asked for."""

import json

import pytest

from core import names, reasons
from core.answers.holders import holders_of
from core.answers.shortage import figures_for
from core.binding.quota import BindQuota
from core.display.figures import figures_of
from core.display.notices import queue_notices
from core.objects import DeviceClass
from core.plan.decision import Hold, Lift
from core.plan.lift import Planner
from core.queues.audit import audit
from core.queues.check import balance_of, group_balance
from core.queues.ledger import Ledger
from core.settings import Settings, SettingsError, parse
from core.steps import finish
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.claims import a_claim, a_template
from tests.builders.objects import QueueBuilder
from tests.builders.pods import PodBuilder

SETTINGS = Settings.model_validate({"cards": {"equivalents": {"A": ["a.dev"]}}})
CARD_SHORT, CLASS_SHORT = reasons.INSUFFICIENT_SCALAR_QUOTA, reasons.INSUFFICIENT_DEVICE_QUOTA


def limited(queue: QueueBuilder, count: int) -> QueueBuilder:
    return queue.devices({"capability": {"a.dev": {"count": count}}})


def books(*queues: QueueBuilder, settings: Settings = SETTINGS) -> Ledger:
    """Nodes with eight A and eight B, a template `each` of one device of the class, the claims `one` and `two`."""
    ledger = Ledger(settings)
    ledger.put_node(a_node("n1").card("A", 8).view())
    ledger.put_node(a_node("n2").card("B", 8).view())
    for queue in queues:
        ledger.put_queue(queue.view())
    ledger.devices.put_template(a_template("each").exactly("r", "a.dev").view())
    ledger.devices.put_claim(a_claim("one").exactly("r", "a.dev").view())
    ledger.devices.put_claim(a_claim("two").exactly("r", "a.dev", count=2).view())
    return ledger


def card(name: str, second: int = 0, *, cards: str = "A", count: int = 1, queue: str = "q") -> PodBuilder:
    pod = a_pod(name).gpu(count).card(cards).in_queue(queue).gated()
    return pod.created(f"2024-01-01T00:00:{second:02}Z")


def claiming(name: str, second: int = 0, *, claim: str = "", queue: str = "q") -> PodBuilder:
    made = a_pod(name).claim("dev", name=claim) if claim else a_pod(name).claim("dev", template="each")
    return made.in_queue(queue).gated().created(f"2024-01-01T00:00:{second:02}Z")


def decide(ledger: Ledger, *pods: PodBuilder, queue: str = "q") -> dict[str, str]:
    """The reason of each pod that is held, the card of one that is lifted."""
    for each in pods:
        ledger.put_pod(each.view())
    found = {}
    for one in Planner(ledger).decide(queue):
        found[one.pod.name] = one.why.code if isinstance(one, Hold) else ",".join(one.assigned)
    assert finish(audit(ledger, {entry.pod.key: entry.pod for entry in ledger.entries()})) == []
    return found


def why(ledger: Ledger, name: str) -> str:
    (hold,) = (
        one for one in Planner(ledger).decide("q") if one.pod.name == name and not isinstance(one, Lift)
    )
    return hold.why.message


class TestOneQuota:
    def test_a_claim_and_a_card_pod_share_the_card_s_quota(self) -> None:
        ledger = books(a_queue("q").cards({"A": 2}))
        found = decide(ledger, card("a", 1), claiming("b", 2), claiming("c", 3), card("d", 4))
        assert found == {"a": "A", "b": "", "c": CARD_SHORT, "d": CARD_SHORT}
        for name in "cd":
            assert why(ledger, name).startswith(
                "Queue <q> has insufficient <A> quota: requested <1000>, total would be <3000>, but capability is <2000>"
            )

    def test_a_claim_that_came_past_the_gate_pays_for_nobody_s_card(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        ledger.put_pod(a_pod("past").claim("dev", name="two").in_queue("q").bound_to("n1").view())
        assert decide(ledger, claiming("p", claim="two")) == {"p": CARD_SHORT}

    def test_without_the_setting_neither_counts_the_other(self) -> None:
        ledger = books(a_queue("q").cards({"A": 2}), settings=Settings())
        found = decide(
            ledger, *(card(f"a{n}", n) for n in range(3)), *(claiming(f"c{n}", 9) for n in range(3))
        )
        assert list(found.values()) == ["A", "A", CARD_SHORT, "", "", ""]

    def test_they_share_the_quota_of_the_class_too(self) -> None:
        ledger = books(limited(a_queue("q").cards({"A": 8}), 2))
        found = decide(ledger, claiming("a", 1), card("b", 2), card("c", 3), claiming("d", 4))
        assert found == {"a": "", "b": "A", "c": CLASS_SHORT, "d": CLASS_SHORT}
        assert why(ledger, "c") == "queue q: DeviceClass a.dev quota exceeded: requested 1, used 2, limit 2"

    def test_a_queue_without_the_card_has_nothing_of_it_for_claims_either(self) -> None:
        assert decide(books(a_queue("q").cards({"B": 2})), claiming("a")) == {"a": CARD_SHORT}
        assert decide(books(limited(a_queue("q"), 2)), claiming("a")) == {"a": reasons.EMPTY_QUEUE_CAPABILITY}

    def test_a_claim_that_pods_share_costs_once(self) -> None:
        ledger = books(a_queue("q").cards({"A": 2}))
        found = decide(
            ledger, claiming("a", 1, claim="one"), claiming("b", 2, claim="one"), card("c", 3), card("d", 4)
        )
        assert found == {"a": "", "b": "", "c": "A", "d": CARD_SHORT}

    def test_other_cards_and_classes_are_not_concerned(self) -> None:
        ledger = books(a_queue("q").cards({"A": 0, "B": 1}))
        ledger.devices.put_template(a_template("each").exactly("r", "other.dev").view())
        assert decide(ledger, claiming("a", 1), card("b", 2, cards="B")) == {"a": "", "b": "B"}

    @pytest.mark.parametrize(("devices", "expected"), [(0, "B"), (1, "A")])
    def test_of_a_choice_the_first_with_both_quotas_is_taken(self, devices: int, expected: str) -> None:
        ledger = books(limited(a_queue("q").cards({"A": 1, "B": 1}), devices))
        assert decide(ledger, card("a", cards="A|B")) == {"a": expected}

    def test_what_ends_gives_back_whatever_its_name_was(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        claim = claiming("a").put("spec", "schedulingGates", value=[]).bound_to("n1")
        assert decide(ledger, claim, card("b", 1)) == {"b": CARD_SHORT}
        ledger.wakeups.take_queues()
        ledger.drop_pod(claim.view().uid)
        assert "q" in ledger.wakeups.take_queues()
        assert decide(ledger) == {"b": "A"}


class TestOneRequest:
    def test_a_card_whose_resource_the_class_serves_costs_once(self) -> None:
        """A scheduler makes a claim for the very resource: that is the card, and no second one."""
        ledger = books(limited(a_queue("q").cards({"A": 2}), 2))
        ledger.put_class(DeviceClass("a.dev", extended="nvidia.com/gpu"))
        assert decide(ledger, card("a", 1), card("b", 2), card("c", 3)) == {
            "a": "A",
            "b": "A",
            "c": CARD_SHORT,
        }
        assert figures_of(ledger, "q").reserved == {"A": 2000, "deviceclass/a.dev": 2000}

    def test_a_card_and_a_claim_beside_it_are_two(self) -> None:
        both = card("a").claim("dev", template="each")
        assert decide(books(a_queue("q").cards({"A": 2})), both, card("b", 1)) == {"a": "A", "b": CARD_SHORT}
        assert decide(books(a_queue("q").cards({"A": 1})), both) == {"a": CARD_SHORT}

    @pytest.mark.parametrize(
        "plugin", [True, False], ids=["a device plugin serves it", "the class serves it"]
    )
    def test_a_card_and_a_device_of_its_class_by_another_resource_are_two(self, *, plugin: bool) -> None:
        """Only a claim for the resource by which the card is asked for is the card itself."""
        other = "deviceclass.resource.kubernetes.io/a.dev"
        for quota, expected in ((1, CARD_SHORT), (2, "A")):
            ledger = books(a_queue("q").cards({"A": quota}))
            ledger.put_class(DeviceClass("a.dev", extended="" if plugin else "nvidia.com/gpu"))
            assert decide(ledger, card("a").limit(other, 1)) == {"a": expected}
            assert ledger.devices.card_used("q", "A") == (2000 if expected == "A" else 0)


class TestGroups:
    def test_a_gang_of_both_kinds_is_lifted_whole_or_not_at_all(self) -> None:
        members = [card("a").in_group("g"), card("b", 1).in_group("g"), claiming("c", 2).in_group("g")]
        group = a_group("g").in_queue("q").min_member(3).view()
        for quota, lifted in ((2, 0), (3, 3)):
            ledger = books(a_queue("q").cards({"A": quota}))
            ledger.put_group(group)
            found = decide(ledger, *members)
            assert sum(code in ("A", "") for code in found.values()) == lifted

    def test_declared_requests_see_what_claims_use(self) -> None:
        ledger = books(a_queue("q").cards({"A": 2}))
        decide(ledger, claiming("a", claim="two"))
        balance = balance_of(ledger, "q")
        assert balance is not None
        assert group_balance(ledger, balance).used["A"] == 2000


class TestLevels:
    def test_claims_count_for_the_card_in_queues_above_only_where_cards_do(self) -> None:
        queues = a_queue("org").cards({"A": 1}), a_queue("q").cards({"A": 4}).child_of("org")
        for hierarchy, second in ((False, ""), (True, CARD_SHORT)):
            cards = {"equivalents": {"A": ["a.dev"]}, "hierarchy": hierarchy}
            ledger = books(*queues, settings=Settings.model_validate({"cards": cards}))
            assert decide(ledger, claiming("a", 1), claiming("b", 2)) == {"a": "", "b": second}

    def test_cards_count_for_the_class_in_queues_above_where_devices_do(self) -> None:
        queues = limited(a_queue("org"), 1), a_queue("q").cards({"A": 4}).child_of("org")
        for hierarchy, second in ((True, CLASS_SHORT), (False, "A")):
            found = {"cards": {"equivalents": {"A": ["a.dev"]}}, "dra": {"hierarchy": hierarchy}}
            ledger = books(*queues, settings=Settings.model_validate(found))
            assert decide(ledger, card("a", 1), card("b", 2)) == {"a": "A", "b": second}

    def test_a_parent_s_own_pods_are_not_charged_with_cards_below_it_where_cards_do_not(self) -> None:
        queues = a_queue("org").cards({"A": 1}), a_queue("q").cards({"A": 4}).child_of("org")
        ledger = books(*queues)
        decide(ledger, claiming("a", 1), card("b", 2))
        assert decide(ledger, claiming("c", 1, queue="org"), queue="org") == {"c": ""}


class TestBind:
    def test_a_pod_that_was_never_lifted_is_judged_by_both(self) -> None:
        for quota, refused in ((1, CARD_SHORT), (2, "")):
            ledger = books(a_queue("q").cards({"A": quota}))
            decide(ledger, claiming("a"))
            bare = a_pod("b").gpu(1).card("A").in_queue("q")
            ledger.put_pod(bare.view())
            found = BindQuota(ledger, SETTINGS).assigned(bare.bound_to("n1").view())
            assert (found if isinstance(found, str) else found.code) == (refused or '{"A":1}')

    def test_so_is_one_with_a_claim(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        decide(ledger, card("a"))
        bare = a_pod("b").claim("dev", name="one").in_queue("q")
        ledger.put_pod(bare.view())
        found = BindQuota(ledger, SETTINGS).first_charge(bare.bound_to("n1").view())
        assert found is not None
        assert found.code == CARD_SHORT

    def test_what_was_granted_to_nobody_keeps_nobody_from_its_bind(self) -> None:
        """Pods that came without a gate hold nothing until their own bind, whatever name they ask by."""
        ledger = books(a_queue("q").cards({"A": 1}))
        bare = a_pod("b").gpu(1).card("A").in_queue("q")
        for each in (bare, a_pod("c").claim("dev", name="two").in_queue("q")):
            ledger.put_pod(each.view())
        assert BindQuota(ledger, SETTINGS).assigned(bare.bound_to("n1").view()) == '{"A":1}'

    def test_the_record_of_claims_is_what_it_was(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        ledger.put_pod(claiming("a").view())
        (lift,) = Planner(ledger).decide("q")
        assert isinstance(lift, Lift)
        record = json.loads(lift.lifted.annotations[names.CLAIMS_ANNOTATION])
        assert record == {"dev": {"deviceclass/a.dev": "1"}}


class TestShown:
    def test_every_key_is_shown_with_all_that_is_used_of_it(self) -> None:
        ledger = books(limited(a_queue("q").cards({"A": 3}), 3))
        decide(ledger, card("a", 1), claiming("b", 2, claim="two"))
        assert figures_of(ledger, "q").reserved == {"A": 3000, "deviceclass/a.dev": 3000}
        assert figures_of(ledger, "q").quota == {"A": 3000, "deviceclass/a.dev": 3000}
        holders = finish(holders_of(ledger, "q", {"A"}))
        assert [(one.pod.name, dict(one.amounts)) for one in holders] == [
            ("b", {"A": 2000}),
            ("a", {"A": 1000}),
        ]

    def test_the_figures_of_a_claim_pod_name_the_card(self) -> None:
        ledger = books(a_queue("q").cards({"A": 1}))
        decide(ledger, card("a", 1), claiming("b", 2))
        (entry,) = ledger.waiting("q")
        (figure,) = (one for one in figures_for(ledger, [entry]) if one.key == "A")
        assert (figure.asked, figure.used, figure.limit, figure.missing) == (1000, 1000, 1000, 1000)

    def test_overuse_and_the_end_of_the_warning(self) -> None:
        ledger = books(a_queue("q").cards({"A": 2}))
        ledger.put_class(DeviceClass("a.dev", extended="nvidia.com/gpu"))
        decide(ledger, claiming("a", claim="two"))
        assert queue_notices(ledger, "q") == []
        ledger.put_queue(a_queue("q").cards({"A": 1}).view())
        (notice,) = queue_notices(ledger, "q")
        assert notice.reason == reasons.QUOTA_EXCEEDED
        assert "A used 2, limit 1" in notice.message


class TestSetting:
    def test_a_class_belongs_to_one_card(self) -> None:
        with pytest.raises(SettingsError, match=r"cards\.equivalents: must give a DeviceClass to one card"):
            parse({"cards": {"equivalents": {"A": ["d"], "B": ["d"]}}})
        with pytest.raises(SettingsError, match=r"cards\.equivalents\.A: must not be empty"):
            parse({"cards": {"equivalents": {"A": []}}})
