"""Card quotas through the tree of queues: every queue above that lists a card limits all below it together."""

import pytest

from core import names, reasons
from core.answers.explain import explain
from core.display.figures import figures_of
from core.display.notices import queue_notices
from core.display.status import published
from core.queues.share import share_of
from core.settings import Settings
from tests.builders import a_group, a_pod, a_queue
from tests.builders.objects import QueueBuilder
from tests.unit.core.plan.levels import (
    TEAMS,
    books,
    lifted,
    org,
    passed,
    planned,
    running,
    team,
    told,
    waiting,
    woken,
)


class TestWhoIsLetIn:
    @pytest.mark.parametrize(
        ("quota", "used", "let_in"),
        [
            ({"A": 3}, 2, 1),
            ({"A": 2}, 2, 0),
            ({"A": 1}, 2, 0),
            ({"A": 0}, 0, 0),
            ({"A": 99}, 2, 2),
            ({"B": 1}, 2, 2),
            ({}, 2, 2),
        ],
    )
    def test_a_card_that_the_queue_above_lists_is_shared_by_all_below(
        self, quota: dict[str, int], used: int, let_in: int
    ) -> None:
        """One that it does not list it does not limit."""
        pods = [running(f"r{number}", "red") for number in range(used)]
        found = planned(books(org(**quota), *TEAMS, *pods, waiting("w1", "blue"), waiting("w2", "blue")))
        assert len(lifted(found)) == let_in

    def test_it_is_told_which_queue_is_short_and_which_is_below_it(self) -> None:
        found = planned(books(org(A=2), *TEAMS, running("r", "red", 2), waiting("w", "blue")))
        hold = told(found, "ml/w")
        assert (hold.code, found.pods["ml/w"].queue) == (reasons.INSUFFICIENT_SCALAR_QUOTA, "blue")
        assert hold.message == (
            "Queue <org> has insufficient <A> quota: requested <1000>, total would be <3000>, but capability is <2000>. In "
            "cards: asks for 1, 2 of 2 are in use; wait for cards to come back, or raise the quota (queue blue is below it)."
        )

    def test_the_own_queue_is_told_first(self) -> None:
        red = a_queue("red").child_of("org").cards({"A": 0})
        hold = told(planned(books(org(A=0), red, waiting("w", "red"))), "ml/w")
        assert hold.message.startswith("Queue <red> has insufficient <A> quota")

    def test_the_root_limits_everybody(self) -> None:
        root = a_queue(names.ROOT_QUEUE).cards({"A": 1})
        found = planned(
            books(
                root,
                a_queue("solo").cards({"A": 8}),
                *TEAMS,
                org(),
                running("r", "solo"),
                waiting("w", "red"),
            )
        )
        assert "Queue <root>" in told(found, "ml/w").message

    def test_of_three_levels_each_counts(self) -> None:
        queues = (org(A=4), team("red"), a_queue("red-1").child_of("red").cards({"A": 2}), TEAMS[1])
        pods = (running("r", "blue", 2), *(waiting(f"w{number}", "red-1") for number in range(3)))
        assert len(lifted(planned(books(*queues, *pods)))) == 2
        tight = (org(A=3), *queues[1:])
        assert len(lifted(planned(books(*tight, *pods)))) == 1

    def test_pods_of_a_queue_with_others_below_it_count_with_those(self) -> None:
        red, below = a_queue("red").child_of("org").cards({"A": 2}), team("red-1", "red")
        pods = (running("own", "red"), running("theirs", "red-1"))
        found = planned(books(org(), red, below, *pods, waiting("w1", "red"), waiting("w2", "red-1")))
        assert lifted(found) == {}
        assert "Queue <red>" in told(found, "ml/w1").message

    def test_a_choice_falls_to_the_card_that_all_levels_have_left(self) -> None:
        pods = (running("r", "red", 2), waiting("w", "blue", card="A|B"))
        assert lifted(planned(books(org(A=2), *TEAMS, *pods))) == {"w": {"B": 1}}
        closed = told(planned(books(org(A=2, B=0), *TEAMS, *pods)), "ml/w")
        assert closed.message == (
            "Queue <org> has insufficient <A|B> quota: requested <1000>, total would be <1000>, but capability is <0>. In "
            "cards: asks for 1, 2 of 2 <A>, 0 of 0 <B> are in use; wait for cards to come back, or raise the quota (queue "
            "blue is below it)."
        )

    @pytest.mark.parametrize(("quota", "whole"), [(3, True), (2, False)])
    def test_a_gang_is_let_in_whole_or_not_at_all(self, quota: int, whole: bool) -> None:
        ledger = books(org(A=quota), *TEAMS, running("r", "red"))
        ledger.put_group(a_group("g").in_queue("blue").min_member(2).view())
        for name in ("g1", "g2"):
            ledger.put_pod(waiting(name, "blue").in_group("g").view())
        found = planned(ledger)
        assert set(lifted(found)) == ({"g1", "g2"} if whole else set())
        if not whole:
            assert "Queue <org>" in told(found, "ml/g1").message

    def test_what_a_volcano_job_declares_has_to_fit_above_as_well(self) -> None:
        ledger = books(org(A=4), *TEAMS, running("r", "red", 2))
        job = a_group("j").in_queue("blue").owned_by("Job", "j", api_version="batch.volcano.sh/v1alpha1")
        ledger.put_group(job.cards({"A": 3}).min_member(1).view())
        ledger.put_pod(waiting("j-0", "blue").in_group("j").view())
        hold = told(planned(ledger), "ml/j-0")
        assert "Queue <org> has insufficient <A> quota: requested <3000>" in hold.message

    def test_shares_of_mgpu_cards_are_limited_above_too(self) -> None:
        queues = (a_queue("org").shares(core=100), *TEAMS)
        shares = [
            a_pod(name).mgpu(core=60, memory=1024).in_queue(queue).gated()
            for name, queue in (("x", "red"), ("y", "blue"))
        ]
        found = planned(books(*queues, *shares))
        assert len(lifted(found)) == 1
        (pod,) = [key for key, one in found.pods.items() if one.decision == "hold"]
        assert f"Queue <org> has insufficient <{names.MGPU_CORE}> quota" in told(found, pod).message

    @pytest.mark.parametrize("beside", [True, False])
    def test_cpu_that_the_queue_above_names_is_shared_with_pods_without_cards(self, beside: bool) -> None:
        cpu_pod = a_pod("cpu").request("cpu", 3).in_queue("red").bound_to("a")
        asking = waiting("w", "blue").request("cpu", 2)
        ledger = books(a_queue("org").capability(cpu=4), *TEAMS, asking, *([cpu_pod] if beside else []))
        found = planned(ledger)
        assert found.pods["ml/w"].decision == ("hold" if beside else "lift")
        if beside:
            assert "Queue <org> has insufficient CPU quota" in told(found, "ml/w").message

    def test_a_quota_above_that_cannot_be_read_is_no_cards_for_those_below(self) -> None:
        hold = told(planned(books(a_queue("org").cards("{"), *TEAMS, waiting("w", "red"))), "ml/w")
        assert hold.code == reasons.CARD_QUOTA_MALFORMED
        assert "Queue <org> has no cards" in hold.message

    @pytest.mark.parametrize(
        ("queues", "words"),
        [
            ((team("red", "gone"),), "queue red has the parent gone, which does not exist"),
            ((team("red", "blue"), team("blue", "red")), "which closes a circle"),
        ],
    )
    def test_a_broken_chain_holds_those_below_it_and_nobody_else(
        self, queues: tuple[QueueBuilder, ...], words: str
    ) -> None:
        solo = a_queue("solo").cards({"A": 8})
        found = planned(books(*queues, solo, waiting("w", "red"), waiting("s", "solo")))
        assert set(lifted(found)) == {"s"}
        assert told(found, "ml/w").code == reasons.QUEUE_HIERARCHY_BROKEN
        assert words in told(found, "ml/w").message

    def test_off_each_queue_is_limited_by_itself(self) -> None:
        pods = (running("r", "red", 2), waiting("w", "blue"), waiting("x", "lost"))
        found = planned(books(org(A=0), *TEAMS, team("lost", "gone"), *pods, settings=Settings()))
        assert set(lifted(found)) == {"w", "x"}


class TestWhoIsLookedAtAgain:
    """A pass costs what may have been helped."""

    def test_what_comes_free_below_helps_those_who_wait_for_the_queue_above(self) -> None:
        ledger = books(org(A=2), *TEAMS, running("r", "red", 2), waiting("w", "blue"))
        passed(ledger)
        ledger.drop_pod(running("r", "red").view().uid)
        assert "blue" in woken(ledger)

    def test_nobody_is_looked_at_for_what_nobody_lacked(self) -> None:
        """Blue waits for its own quota: what red gives back is none of its business."""
        ledger = books(
            org(A=8), TEAMS[0], team("blue").cards({"A": 0}), running("r", "red", 2), waiting("w", "blue")
        )
        passed(ledger)
        ledger.drop_pod(running("r", "red").view().uid)
        assert woken(ledger) == set()

    def test_a_raise_above_helps_those_below(self) -> None:
        ledger = books(org(A=0), *TEAMS, waiting("w", "blue"))
        passed(ledger)
        ledger.put_queue(org(A=1).view())
        assert "blue" in woken(ledger)

    def test_another_parent_helps_those_who_are_below_it_now(self) -> None:
        ledger = books(org(A=0), a_queue("rich"), *TEAMS, waiting("w", "blue"))
        passed(ledger)
        ledger.put_queue(team("blue", "rich").view())
        assert "blue" in woken(ledger)
        assert set(lifted(planned(ledger))) == {"w"}

    def test_pods_of_a_queue_with_others_below_it_are_helped_by_what_these_give_back(self) -> None:
        red, below = a_queue("red").cards({"A": 1}), team("red-1", "red")
        ledger = books(red, below, running("theirs", "red-1"), waiting("w", "red"))
        passed(ledger)
        ledger.drop_pod(running("theirs", "red-1").view().uid)
        assert "red" in woken(ledger)

    def test_cpu_that_comes_free_below_helps_those_who_wait_for_it_above(self) -> None:
        cpu_pod = a_pod("cpu").request("cpu", 4).in_queue("red").bound_to("a")
        ledger = books(
            a_queue("org").capability(cpu=4), *TEAMS, cpu_pod, waiting("w", "blue").request("cpu", 2)
        )
        passed(ledger)
        ledger.drop_pod(cpu_pod.view().uid)
        assert "blue" in woken(ledger)


class TestWhatIsShown:
    def test_a_queue_shows_what_those_below_it_use_and_wait_for(self) -> None:
        ledger = books(
            org(A=4), *TEAMS, running("r", "red", 2), running("b", "blue"), waiting("w", "blue", 2)
        )
        shown = figures_of(ledger, "org")
        assert (shown.quota, shown.allocated, shown.waiting) == ({"A": 4000}, {"A": 3000}, {"A": 2000})
        assert published(ledger.sums("org").allocated) == {"A": "3"}
        assert published(ledger.sums("red").allocated) == {"A": "2"}
        assert share_of(ledger, "org") == 0.75

    def test_a_queue_that_moves_takes_what_its_pods_use_along(self) -> None:
        cpu_pod = a_pod("cpu").request("cpu", 3).in_queue("red").bound_to("a")
        ledger = books(
            org(A=4), a_queue("rich"), *TEAMS, running("r", "red", 2), running("b", "blue"), cpu_pod
        )
        ledger.put_queue(team("red", "rich").view())
        assert [figures_of(ledger, name).allocated for name in ("org", "rich")] == [{"A": 1000}, {"A": 2000}]
        assert ledger.subtrees is not None
        assert [ledger.subtrees.cpu_memory_used(name, "cpu") for name in ("org", "rich", "root")] == [
            0,
            3000,
            3000,
        ]
        ledger.drop_queue("rich")
        assert figures_of(ledger, names.ROOT_QUEUE).allocated == {"A": 3000}

    def test_a_queue_is_published_anew_with_what_changes_below_it(self) -> None:
        ledger = books(org(A=4), *TEAMS)
        ledger.wakeups.take_figures()
        ledger.put_pod(running("r", "red").view())
        assert ledger.wakeups.take_figures() >= {"red", "org", names.ROOT_QUEUE}

    def test_a_quota_above_that_is_cut_below_use_is_told_on_that_queue(self) -> None:
        ledger = books(org(A=1), *TEAMS, running("r", "red", 2), running("o", "red", card="B"))
        (notice,) = queue_notices(ledger, "org")
        assert notice.reason == reasons.QUOTA_EXCEEDED
        assert "<A> used <2000>, but capability is <1000>" in notice.message
        assert "<B>" not in notice.message
        assert queue_notices(ledger, "red") == []

    def test_what_would_help_is_the_queue_that_is_short_and_those_who_hold_it(self) -> None:
        ledger = books(org(A=2), *TEAMS, running("r", "red", 2), waiting("w", "blue"))
        found = explain(ledger, waiting("w", "blue").view().uid, {})
        assert found is not None
        (figure,) = [one for one in found.figures if one.key == "A"]
        assert (figure.queue, figure.used, figure.limit, figure.missing) == ("org", 2000, 2000, 1000)
        assert [one.pod.name for one in found.holders] == ["r"]
        steps = [step for remedy in found.remedies for step in remedy.steps]
        assert ("raise", "Queue org", 3000) in [(step.action, step.object, step.total) for step in steps]
        assert ("end", ("ml/r",)) in [(step.action, step.pods) for step in steps]
