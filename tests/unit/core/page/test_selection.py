"""What a page shows: the same as the commands, as far as its reader may see it, and never more than fits."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from core.answers.explain import observed
from core.display.figures import figures_of
from core.objects import Pod
from core.page.board import Board, board
from core.page.hours import Summed
from core.page.html.links import wish_of
from core.page.selection import EVERYTHING, KEYS, NODES, QUEUES, SHARES, WAITING, Sight, view_of
from core.page.view import View, Wish, read
from core.page.witness import HOUR_US, Witness
from core.plan.decision import Hold
from core.quantity import render_amounts
from core.queues.ledger import Ledger
from core.settings import CardSettings, Settings
from core.steps import finish
from core.usage.sums import DAY_S, Series, Sums, What
from tests.builders import a_group, a_node, a_pod, a_queue
from tests.builders.objects import GroupBuilder, NodeBuilder, PodBuilder, QueueBuilder

TIME = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOW = int(TIME.timestamp()) * 1_000_000
Builder = PodBuilder | NodeBuilder | QueueBuilder | GroupBuilder


def ago(minutes: int) -> str:
    return f"{TIME - timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


class Scene:
    """Books of some objects, and why the pods in them wait."""

    def __init__(self, *things: Builder, settings: Settings | None = None) -> None:
        from core.answers.whatif import Change, WhatIf

        self.ledger = Ledger(settings or Settings())
        self.pods: list[Pod] = []
        for thing in things:
            match thing:
                case PodBuilder():
                    self.pods.append(thing.view())
                    self.ledger.put_pod(self.pods[-1])
                case NodeBuilder():
                    self.ledger.put_node(thing.view())
                case QueueBuilder():
                    self.ledger.put_queue(thing.view())
                case GroupBuilder():
                    self.ledger.put_group(thing.view())
        finish(self.ledger.settle())
        self.holds: Mapping[str, Hold] = WhatIf(self.ledger).holds(Change.none())

        self.witness: Witness | None = None

    def board(self, summed: Summed | None = None) -> Board:
        return finish(board(self.ledger, self.pods, self.holds, summed, NOW, self.witness))

    def view(self, query: str = "", sight: Sight = EVERYTHING, summed: Summed | None = None) -> View:
        return finish(view_of(self.board(summed), self.ledger, wish_of(query), sight, "books"))


def waits(name: str, *, queue: str = "q", namespace: str = "ml", card: str = "A") -> PodBuilder:
    return a_pod(name, namespace=namespace).gpu(1).card(card).in_queue(queue).gated()


def runs(name: str, node: str = "n", *, queue: str = "q") -> PodBuilder:
    return a_pod(name).gpu(1).card("A").in_queue(queue).assigned({"A": 1}).charged(queue).bound_to(node)


SCENE = (
    a_node("n").card("A", 8),
    a_queue("q").cards({"A": 2, "B": 1}),
    runs("one"),
    runs("two"),
    waits("late").created(ago(10)),
    waits("early").created(ago(90)),
    waits("theirs", namespace="research").created(ago(50)),
)


def test_a_queue_has_the_figures_of_the_command_queues() -> None:
    scene = Scene(*SCENE)
    found = scene.view().queues
    assert found is not None
    (queue,) = found.rows
    figures = figures_of(scene.ledger, "q")
    assert (queue.name, queue.state, queue.depth) == ("q", "Open", 0)
    assert {key.key: key.quota for key in queue.keys} == render_amounts(figures.quota, zero=True)
    assert {key.key: key.allocated for key in queue.keys if key.allocated != "0"} == render_amounts(
        figures.allocated
    )
    assert {key.key: key.waiting for key in queue.keys if key.waiting != "0"} == render_amounts(
        figures.waiting
    )


def test_each_pod_that_waits_has_the_place_and_the_reason_that_explain_tells() -> None:
    scene = Scene(*SCENE)
    found = scene.view().waiting
    assert found is not None
    assert [one.pod for one in found.rows] == ["ml/early", "research/theirs", "ml/late"]
    for row in found.rows:
        (uid,) = [pod.uid for pod in scene.pods if pod.key == row.pod]
        told = finish(observed(scene.ledger, uid, scene.holds))
        assert told is not None
        assert told.place is not None
        assert told.hold is not None
        assert (row.number, row.line, row.queue) == (told.place.number, told.place.length, "q")
        assert (row.reason, row.message) == (told.hold.why.code, told.hold.why.message)
    assert found.rows[0].since == NOW // 1_000_000 - 90 * 60
    assert found.rows[0].asks == "1 A"


def test_members_of_a_gang_stand_in_one_place() -> None:
    members = [waits(f"m{number}").in_group("g") for number in range(3)]
    scene = Scene(*SCENE[:4], a_group("g").min_member(3), *members, waits("alone").priority(-1))
    found = scene.view().waiting
    assert found is not None
    assert [(one.number, one.line, one.together) for one in found.rows] == [(1, 2, 3)] * 3 + [(2, 2, 1)]


def test_whoever_would_be_let_in_by_the_next_pass_waits_without_a_reason() -> None:
    found = Scene(a_node("n").card("A", 8), a_queue("q").cards({"A": 2}), waits("next")).view().waiting
    assert found is not None
    assert [(one.pod, one.reason) for one in found.rows] == [("ml/next", "")]


def test_queues_stand_below_their_parents() -> None:
    tree = Settings(cards=CardSettings(hierarchy=True))
    scene = Scene(
        a_node("n").card("A", 8),
        a_queue("z").cards({"A": 8}),
        a_queue("child").cards({"A": 4}).child_of("z"),
        a_queue("leaf").cards({"A": 1}).child_of("child"),
        a_queue("a").cards({}),
        a_queue("lost").cards({}).child_of("nobody"),
        runs("one", queue="leaf"),
        settings=tree,
    )
    found = scene.view().queues
    assert found is not None
    assert [(one.name, one.depth) for one in found.rows] == [
        ("a", 0),
        ("lost", 0),
        ("z", 0),
        ("child", 1),
        ("leaf", 2),
    ]
    assert found.subtrees
    assert [one.keys[0].allocated for one in found.rows[2:]] == ["1", "1", "1"]


def test_queues_in_a_circle_are_shown_once_each() -> None:
    found = Scene(a_queue("a").cards({}).child_of("b"), a_queue("b").cards({}).child_of("a")).view().queues
    assert found is not None
    assert [(one.name, one.depth) for one in found.rows] == [("a", 0), ("b", 0)]


def test_nodes_with_cards_and_how_full_they_are() -> None:
    shared = a_node("m").mgpu(2, memory=8192)
    share = (
        a_pod("s").mgpu(core=30, memory=1024).annotation("vke.volcengine.com/gpu-index-container-main", "1")
    )
    found = Scene(*SCENE, a_node("cpu"), shared, share.bound_to("m")).view().nodes
    assert found is not None
    assert [one.name for one in found.rows] == ["m", "n"]
    m, n = found.rows
    assert [(one.used, one.core, one.held, one.memory) for one in m.shares] == [
        (0, 100, 0, 8192),
        (30, 100, 1024, 8192),
    ]
    assert [(one.card, one.used, one.count) for one in n.cards] == [("A", 2, 8)]


def test_the_last_hour_is_what_its_pods_show() -> None:
    started = runs("new").created(ago(30)).condition("PodScheduled", "True", ago(20))
    ended = runs("old").created(ago(300)).condition("PodScheduled", "True", ago(200)).phase("Succeeded")
    scene = Scene(*SCENE, started, ended.condition("Ready", "False", ago(5)), a_pod("cpu").created(ago(1)))
    found = scene.view().changes
    assert found is not None
    assert (found.came, found.started, found.ended) == (3, 1, 1)
    assert [(one.what, one.pod) for one in found.latest] == [
        ("ended", "ml/old"),
        ("came", "ml/late"),
        ("started", "ml/new"),
        ("came", "ml/new"),
        ("came", "research/theirs"),
    ]
    theirs = scene.view("namespace=research").changes
    assert theirs is not None
    assert (theirs.came, [one.pod for one in theirs.latest]) == (1, ["research/theirs"])


def witnessed(began: int, *gone: Pod, **quotas: int) -> Witness:
    """Who saw these pods go and queues get such a quota of A, one after the other in the last minute."""
    now = [began]
    booked: dict[str, Mapping[str, int]] = {}
    found = Witness(lambda: now[0], lambda name: booked.get(name, {}), lambda _: "q", lambda: True)
    now[0] = NOW - 60_000_000
    for pod in gone:
        now[0] += 1_000_000
        found.see_pod(pod, None)
    for name, quota in quotas.items():
        now[0] += 1_000_000
        for booked[name] in ({"A": 1000}, {"A": quota}):
            found.see_queue(None, a_queue(name).view())
    return found


def test_whoever_was_deleted_is_in_the_last_hour_with_all_that_became_of_it() -> None:
    scene = Scene(*SCENE[:2])
    old = runs("old").created(ago(300)).condition("PodScheduled", "True", ago(20)).view()
    scene.witness = witnessed(NOW - 2 * HOUR_US, old, waits("theirs", namespace="research").view())
    found = scene.view().changes
    assert found is not None
    assert (found.came, found.started, found.ended, found.gone) == (0, 1, 0, 2)
    assert [(one.what, one.pod, one.queue) for one in found.latest] == [
        ("gone", "research/theirs", "q"),
        ("gone", "ml/old", "q"),
        ("started", "ml/old", "q"),
    ]
    assert found.known < found.since
    mine = scene.view(sight=Sight(pods="ml")).changes
    assert mine is not None
    assert (mine.gone, "theirs" in str(mine)) == (1, False)


def test_quotas_that_were_others_are_told_to_whom_may_list_queues_the_latest_first() -> None:
    scene = Scene(*SCENE[:2])
    scene.witness = witnessed(NOW - 60_000_000, q=2500, r=0)
    found = scene.view().changes
    assert found is not None
    assert [(one.queue, one.what) for one in found.quotas] == [("r", "A: 1 to 0"), ("q", "A: 1 to 2500m")]
    assert found.known == NOW // 1_000_000 - 60
    without = scene.view(sight=Sight(queues=False)).changes
    assert without is not None
    assert without.quotas == ()


def test_who_looks_at_objects_at_hand_claims_to_know_of_nobody_who_is_gone() -> None:
    found = Scene(*SCENE).view().changes
    assert found is not None
    assert (found.gone, found.known, found.quotas) == (0, 0, ())


def test_card_hours_by_day_most_used_first() -> None:
    day = NOW // 1_000_000 // DAY_S
    sums = Sums(day - 30)
    sums.add(Series("q", "A", "ml", "offline"), What.USED, 2000, (day - 1) * DAY_S, day * DAY_S + 3600)
    sums.add(Series("q", "A", "", ""), What.QUOTA, 4000, (day - 1) * DAY_S, day * DAY_S)
    sums.add(Series("r", "A", "ml", "online"), What.WAITED, 1000, day * DAY_S, day * DAY_S + 1800)
    found = Scene(*SCENE).view(summed=Summed(sums, NOW // 1_000_000)).hours
    assert found is not None
    assert found.days[-1] == "2026-01-01"
    assert len(found.days) == 7
    q, r = found.rows
    assert (q.queue, q.card, q.days[-2:], q.used, q.quota) == ("q", "A", (48.0, 2.0), 50.0, 96.0)
    assert (r.queue, r.used, r.waited, r.quota) == ("r", 0.0, 0.5, None)


class TestRights:
    """A reader who may not see something is not shown it, whatever is asked for."""

    def test_without_queues_neither_they_nor_places_in_line_are_shown(self) -> None:
        found = Scene(*SCENE).view(sight=Sight(queues=False))
        assert found.queues is None
        assert found.waiting is not None
        assert {(one.number, one.line) for one in found.waiting.rows} == {(0, 0)}
        assert "list queues" in found.notes[0]

    @pytest.mark.parametrize("query", ["", "namespace=research", "find=theirs", "own=research"])
    def test_of_one_namespace_nobody_else_is_named_or_counted(self, query: str) -> None:
        found = Scene(*SCENE).view(query, Sight(pods="ml"))
        assert found.waiting is not None
        assert found.changes is not None
        assert "theirs" not in str(found.waiting.rows) + str(found.changes.latest)
        assert found.waiting.extent.of <= 2
        assert found.changes.came == 1

    def test_without_pods_nodes_and_hours_nothing_of_them_is_there(self) -> None:
        found = Scene(*SCENE).view(sight=Sight(pods=None, nodes=False, hours=False))
        assert (found.waiting, found.changes, found.nodes, found.hours) == (None, None, None, None)
        assert len(found.notes) == 3


class TestLimits:
    """However much there is, a page has so many rows, and the others can be had."""

    SCENE = Scene(
        *(a_node(f"n{number:03}").card("A", 1) for number in range(NODES + 5)),
        *(a_queue(f"q{number:03}").cards({"A": 0}) for number in range(QUEUES + 5)),
        *(
            waits(f"p{number:03}", queue="q000").created(ago(1000 - number))
            for number in range(2 * WAITING + 1)
        ),
    )

    def test_the_first_page_is_full_and_says_how_many_there_are(self) -> None:
        found = self.SCENE.view()
        for part, rows in ((found.queues, QUEUES), (found.waiting, WAITING), (found.nodes, NODES)):
            assert part is not None
            assert len(part.rows) == rows
            assert part.extent.of > rows

    def test_page_by_page_everybody_is_shown_once_in_line(self) -> None:
        shown: list[str] = []
        for number in range(1, 4):
            found = self.SCENE.view(f"waiting={number}").waiting
            assert found is not None
            shown += [one.pod for one in found.rows]
        assert shown == [f"ml/p{number:03}" for number in range(2 * WAITING + 1)]

    def test_a_page_that_is_not_there_is_the_last_one(self) -> None:
        found = self.SCENE.view("waiting=99&nodes=0&queues=-1")
        assert found.waiting is not None
        assert found.nodes is not None
        assert [one.pod for one in found.waiting.rows] == [f"ml/p{2 * WAITING:03}"]
        assert found.nodes.extent.first == 0

    def test_what_is_looked_for_is_found_wherever_it_stands(self) -> None:
        found = self.SCENE.view("find=P100")
        assert found.waiting is not None
        assert found.queues is not None
        assert ([one.pod for one in found.waiting.rows], found.queues.rows) == (["ml/p100"], ())

    def test_a_queue_has_so_many_keys_and_names_so_many_letters_whatever_pods_wait_for(self) -> None:
        cards = [f"{'X' * 50}{number}" for number in range(KEYS + 30)]
        nodes = [a_node(f"n{number}").card(card, 1) for number, card in enumerate(cards)]
        pods = [waits(f"p{number}", card="|".join([card, *cards[:7]])) for number, card in enumerate(cards)]
        found = Scene(a_queue("q").cards({"A": 1}), *nodes, *pods).view()
        assert found.queues is not None
        assert found.waiting is not None
        (queue,) = found.queues.rows
        assert (len(queue.keys), queue.more, queue.keys[0].key) == (KEYS, 31, "A")
        assert max(len(one.asks) + len(one.message) for one in found.waiting.rows) < 1000

    def test_of_too_many_quotas_those_are_shown_that_are_passed_or_used(self) -> None:
        quota = {f"A{number:02}": 1 for number in range(KEYS + 5)} | {"X": 1, "Y": 1, "Z": 9}
        bound = [
            a_pod(f"p-{count}").gpu(count).card(card).in_queue("q").assigned({card: count}).bound_to(node)
            for node, card, count in (("y", "Y", 3), ("z", "Z", 2))
        ]
        pods = [a_pod("p").gpu(2).card("X").in_queue("q").gated(), *bound]
        nodes = [a_node(card.lower()).card(card, 8) for card in ("X", "Y", "Z")]
        found = Scene(a_queue("q").cards(quota), *nodes, *pods).view()
        assert found.queues is not None
        (queue,) = found.queues.rows
        assert [one.key for one in queue.keys] == [f"A{number:02}" for number in range(KEYS - 3)] + [
            "X",
            "Y",
            "Z",
        ]
        assert queue.more == 8

    def test_a_node_says_how_many_of_its_cards_are_not_shown(self) -> None:
        found = Scene(a_node("many").mgpu(SHARES + 3, memory=8192)).view()
        assert found.nodes is not None
        assert [(len(one.shares), one.more) for one in found.nodes.rows] == [(SHARES, 3)]


class TestWishes:
    @pytest.mark.parametrize(
        ("query", "wish"),
        [
            ("", Wish()),
            ("find=a%26b&namespace=ml&waiting=3", Wish(find="a&b", namespace="ml", waiting=3)),
            ("waiting=x&queues=&nodes=1e3", Wish()),
            ("waiting=" + "9" * 5000, Wish()),
            ("waiting=²", Wish()),
            ("find=" + "x" * 1000, Wish(find="x" * 253)),
            ("&".join(f"a{number}=1" for number in range(100)), Wish()),
            ("%ff=%ff&find=%00", Wish(find="\x00")),
        ],
    )
    def test_what_is_not_understood_is_not_asked_for(self, query: str, wish: Wish) -> None:
        assert wish_of(query) == wish


def test_a_view_comes_back_from_json_as_it_was() -> None:
    import orjson

    found = Scene(*SCENE).view("find=a")
    assert read(orjson.dumps(found)) == found
