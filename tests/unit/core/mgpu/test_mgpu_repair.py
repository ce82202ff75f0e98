"""What is done about missing, edited and odd records: cards where they are still of use, else words, never an eviction."""

from collections.abc import Iterable

import pytest

from core import names, reasons
from core.mgpu import records
from core.mgpu.booked import RecordBook
from core.mgpu.node import Card, NodeState, model_of
from core.mgpu.occupancy import Irregular, occupancy
from core.mgpu.repair import Examination, Repair, examine
from core.objects import Pod
from core.settings import Settings
from tests.builders import a_node, a_pod
from tests.builders.objects import NodeBuilder, PodBuilder

NODE = a_node("m1").mgpu(2, memory=10_000)
AGENTS = Settings.model_validate({"mgpu": {"node_agents": ["system:node:m1"]}})


def bound(name: str = "p", core: int = 30, **record: str) -> PodBuilder:
    """Bound to m1 and not started, `main` with `core` and 2000 MiB (whole cards from 100), with these records."""
    pod = a_pod(name).mgpu(core=core, memory=2000 if core < 100 else None).bound_to("m1", phase="Pending")
    for container, text in record.items():
        pod = pod.annotation(records.key(container), text).annotation(names.ASSUMED_ANNOTATION, "true")
    return pod.put("metadata", "resourceVersion", value="7")


class Books:
    """What a leader knows about one node: `sees` is what the watch shows, one state after the other."""

    def __init__(
        self, *found: PodBuilder, node: NodeBuilder = NODE, settings: Settings | None = None
    ) -> None:
        self.node = node.view()
        self.settings = settings or Settings()
        self.book = RecordBook(self.settings.mgpu, {"m1": self.node})
        self.observed: dict[str, Pod] = {}
        self.booked: dict[str, Pod] = {}
        self.book.keep(pod.view() for pod in found)
        self.sees(*found)

    def sees(self, *pods: PodBuilder) -> None:
        for pod in pods:
            view = pod.view()
            self.observed[view.uid] = view
            self.booked[view.uid] = self.book.as_booked(view)

    def assign(self, repair: Repair) -> None:
        self.book.assign(repair.pod, repair.cards)
        self.booked[repair.pod.uid] = self.book.as_booked(repair.pod)

    def examine(self) -> Examination:
        pods = list(self.booked.values())
        return examine(self.node, pods, lambda pod: self.observed.get(pod.uid), self.book, self.settings)


def mended(found: Examination) -> list[tuple[str, str, dict[str, tuple[int, ...]]]]:
    assert found.notices == []
    return [(repair.pod.name, repair.reason, dict(repair.cards)) for repair in found.repairs]


def said(found: Examination) -> list[tuple[str, str]]:
    assert found.repairs == []
    return [(notice.pod.name if notice.pod else "", notice.reason) for notice in found.notices]


class TestMissing:
    """A pod that is bound without a complete record."""

    def test_not_started_it_gets_cards_over_everything_that_is_booked(self) -> None:
        books = Books(bound("a", 100, main="0"), bound("b", 80, main="1"), bound("c", 30, main="x"))
        assert said(books.examine()) == [("c", reasons.MGPU_RECORD_MISSING)]
        books = Books(bound("a", 100, main="0"), bound("b", 50, main="1"), bound("c", 30))
        assert mended(books.examine()) == [("c", reasons.MGPU_RECORD_ASSIGNED, {"main": (1,)})]

    @pytest.mark.parametrize("text", ["", "x", "-1", "0,,1", "9" * 100_000, "\N{ARABIC-INDIC DIGIT ONE}"])
    def test_garbage_is_no_record(self, text: str) -> None:
        (repair,) = Books(bound(main=text)).examine().repairs
        assert repair.cards == {"main": (0,)}

    def test_the_patch_is_one_write_of_all_keys_that_holds_for_this_state_of_the_pod_only(self) -> None:
        pod = bound(main="0", stray="3").mgpu("b", core=10, memory=500)
        (repair,) = Books(pod).examine().repairs
        assert repair.patch == {
            "metadata": {
                "uid": "uid-ml-p",
                "resourceVersion": "7",
                "annotations": {
                    records.key("main"): "0",
                    records.key("b"): "0",
                    records.key("stray"): None,
                    names.ASSUMED_ANNOTATION: "true",
                },
            }
        }
        assert repair.message == (
            'bound to node m1 without a complete record; cards assigned now: container "main": 0; container "b": 0'
        )

    def test_a_record_without_its_marker_is_marked_as_it_is(self) -> None:
        pod = bound(main="1").annotation(names.ASSUMED_ANNOTATION, "false")
        assert mended(Books(pod).examine()) == [("p", reasons.MGPU_RECORD_ASSIGNED, {"main": (1,)})]
        assert said(Books(pod.started()).examine()) == []

    def test_assigned_cards_stay_booked_while_the_answer_is_open_whatever_changes_on_the_node(self) -> None:
        """Held anew each time, the pod would move to card 1, where it fits more closely, and 0 would be given away."""
        books = Books(bound("a", 80, main="1"), bound("p"))
        (repair,) = books.examine().repairs
        assert repair.cards == {"main": (0,)}
        books.assign(repair)
        books.sees(bound("a", 20, main="1").uid("another"), bound("a", 80, main="1").phase("Failed"))
        assert mended(books.examine()) == [("p", reasons.MGPU_RECORD_ASSIGNED, {"main": (0,)})]
        books.sees(bound("p", main="0"))
        assert mended(books.examine()) == []
        books.sees(bound("p", main="1"))
        assert mended(books.examine()) == [("p", reasons.MGPU_RECORD_RESTORED, {"main": (0,)})]

    def test_one_that_starts_before_the_cards_reach_it_is_booked_virtually(self) -> None:
        books = Books(bound("p"))
        books.assign(books.examine().repairs[0])
        books.sees(bound("p").started())
        found = books.examine()
        assert said(found) == [("p", reasons.MGPU_RECORD_MISSING)]
        assert found.kinds == [Irregular.MISSING]

    def test_started_nothing_is_written(self) -> None:
        found = Books(bound("p", 100).started(), bound("q", 200).started()).examine()
        assert said(found) == [("p", reasons.MGPU_RECORD_MISSING), ("q", reasons.MGPU_RECORD_MISSING)]
        assert found.notices[0].message == (
            "bound to node m1 without a complete record of its cards; it runs already, and nobody knows on which;"
            " room is held for it on the cards that it would get now"
        )
        assert "nowhere, for the node has none left" in found.notices[1].message
        assert found.kinds == [Irregular.MISSING, Irregular.NO_ROOM]

    @pytest.mark.parametrize(
        ("pod", "words"),
        [
            (bound("p", 200), "no room for container"),
            (bound().mgpu_policy("native-burst-share"), "compute policy of the pod"),
            (bound().mgpu("x" * 44, core=1, memory=500), "44 characters"),
            (bound().cards_per_container(1, 1), "container-multiple-gpu"),
        ],
    )
    def test_where_no_cards_can_be_assigned_the_reason_is_said(self, pod: PodBuilder, words: str) -> None:
        found = Books(bound("other", main="0"), pod).examine()
        assert said(found) == [("p", reasons.MGPU_RECORD_MISSING)]
        assert words in found.notices[0].message
        assert "none can be assigned" in found.notices[0].message

    def test_the_oldest_gets_the_last_card_and_the_other_is_told(self) -> None:
        pods = [
            bound(name, 200).created(f"2024-01-01T00:00:0{second}Z") for name, second in (("p", 2), ("q", 1))
        ]
        found = Books(*pods).examine()
        assert [repair.pod.name for repair in found.repairs] == ["q"]
        assert [notice.pod.name for notice in found.notices if notice.pod] == ["p"]

    @pytest.mark.parametrize(
        "pod", [bound().terminating(), bound().phase("Failed"), a_pod("p").bound_to("m1"), a_pod("p")]
    )
    def test_what_is_ending_or_asks_for_nothing_is_left_alone(self, pod: PodBuilder) -> None:
        assert Books(pod).examine().repairs == []
        assert Books(pod).examine().notices == []

    def test_a_bind_under_way_is_no_business_of_repair(self) -> None:
        books = Books()
        granted = bound("p", main="0").view()
        books.booked[granted.uid] = granted
        assert mended(books.examine()) == []


class TestEdited:
    """A record that is not what it was."""

    @pytest.mark.parametrize(
        "edited",
        [
            bound(main="1"),
            bound(main="0,1"),
            bound(main="garbage"),
            bound(main="7"),
            bound(),
            bound(main="0").annotation(names.ASSUMED_ANNOTATION, "false"),
            bound(main="1").started(),
        ],
    )
    def test_it_is_put_back_and_the_books_never_move(self, edited: PodBuilder) -> None:
        books = Books(bound(main="0"))
        books.sees(edited)
        found = books.examine()
        assert mended(found) == [("p", reasons.MGPU_RECORD_RESTORED, {"main": (0,)})]
        assert found.kinds == []
        assert records.recorded(books.booked["uid-ml-p"]) == {"main": (0,)}
        books.sees(bound(main="0"))
        assert mended(books.examine()) == []

    @pytest.mark.parametrize("edited", ["4", "1", "2,2", "x", None])
    def test_edited_card_counts_move_the_books_no_more_than_an_edited_record(
        self, edited: str | None
    ) -> None:
        """What the container takes of each card is its share divided by the count under which it got them."""
        pod = a_pod("p").mgpu(core=80, memory=4000).bound_to("m1", phase="Pending")
        pod = pod.annotation(records.key("main"), "0,1").annotation(names.ASSUMED_ANNOTATION, "true")
        counted = pod.cards_per_container(2)
        books = Books(counted)
        books.sees(pod if edited is None else pod.annotation(names.MGPU_MULTIPLE_ANNOTATION, edited))
        state = occupancy(model_of(books.node), books.booked.values(), Settings().mgpu).state
        assert state == NodeState((Card(60, 8000, 1),) * 2)
        (repair,) = books.examine().repairs
        assert repair.reason == reasons.MGPU_RECORD_RESTORED
        assert repair.patch["metadata"]["annotations"][names.MGPU_MULTIPLE_ANNOTATION] == "2"
        assert repair.message.endswith('container "main": 0,1; vke.volcengine.com/container-multiple-gpu "2"')
        books.sees(counted)
        assert mended(books.examine()) == []

    def test_card_counts_that_a_bound_pod_never_had_are_taken_away(self) -> None:
        books = Books(bound(main="0"))
        books.sees(bound(main="0").cards_per_container(1))
        (repair,) = books.examine().repairs
        assert repair.patch["metadata"]["annotations"][names.MGPU_MULTIPLE_ANNOTATION] is None
        assert repair.message.endswith("container-multiple-gpu removed")

    def test_other_words_for_the_same_cards_are_no_edit(self) -> None:
        books = Books(bound("p", 60, main="0,1").cards_per_container(2))
        books.sees(bound("p", 60, main=" 1 , 0").cards_per_container(2))
        assert mended(books.examine()) == []

    def test_a_new_leader_takes_what_it_finds(self) -> None:
        assert mended(Books(bound(main="1")).examine()) == []
        assert said(Books(bound(main="0,1")).examine()) == [("p", reasons.MGPU_RECORD_IRREGULAR)]

    @pytest.mark.parametrize("text", ["0,1", "2", "garbage"])
    def test_what_was_never_sound_may_be_corrected(self, text: str) -> None:
        books = Books(bound(main=text))
        books.sees(bound(main="1"))
        assert mended(books.examine()) == []

    def test_before_and_after_leading_a_pod_is_what_it_says(self) -> None:
        books = Books(bound(main="0"))
        books.book.release()
        edited = bound(main="1").view()
        assert books.book.as_booked(edited) is edited
        books.book.keep([edited])
        assert books.book.as_booked(edited) is edited

    def test_a_pod_that_comes_back_under_another_uid_is_another_pod(self) -> None:
        books = Books(bound(main="0"))
        books.book.drop("uid-ml-p")
        again = bound(main="1").view()
        assert books.book.as_booked(again) is again

    def test_what_a_pod_carries_before_it_is_bound_is_no_record(self) -> None:
        books = Books()
        books.sees(bound(main="0").put("spec", "nodeName", value=""))
        books.sees(bound(main="1"))
        assert mended(books.examine()) == []

    def test_node_agents_may_change_to_other_cards_but_not_to_nonsense(self) -> None:
        books = Books(bound(main="0"), settings=AGENTS)
        books.sees(bound(main="1").annotation(names.ASSUMED_ANNOTATION, "false").started())
        assert mended(books.examine()) == []
        books.sees(bound(main="0,1"))
        assert mended(books.examine()) == [("p", reasons.MGPU_RECORD_RESTORED, {"main": (1,)})]


class TestOdd:
    """Records that are readable and cannot be right: booked as they are, said, counted, and left alone."""

    @pytest.mark.parametrize(
        ("pods", "subject", "kinds", "words"),
        [
            ([bound(main="2")], "p", [Irregular.UNKNOWN_CARD], "beyond the 2 of the node"),
            ([bound(main="0,1")], "p", [Irregular.WRONG_COUNT], "names 2 cards, 1 asked for"),
            (
                [bound("p", 100, main="0"), bound("q", 10, main="0")],
                "",
                [Irregular.OVERBOOKED],
                "card 0: more is booked than there is",
            ),
        ],
    )
    def test_it_is_said(
        self, pods: Iterable[PodBuilder], subject: str, kinds: list[Irregular], words: str
    ) -> None:
        found = Books(*pods).examine()
        assert said(found) == [(subject, reasons.MGPU_RECORD_IRREGULAR)]
        assert words in found.notices[0].message
        assert found.kinds == kinds

    def test_topics_stay_the_same_while_messages_move(self) -> None:
        first, second = (Books(bound(main=text)).examine().notices[0] for text in ("2", "3"))
        assert first.topic == second.topic
        assert first.message != second.message

    def test_a_node_whose_device_plugin_restarts_accuses_no_pod(self) -> None:
        books = Books(bound(main="0"), bound("q").started(), node=a_node("m1").mgpu(0, memory=0))
        found = books.examine()
        assert said(found) == [("q", reasons.MGPU_RECORD_MISSING)]
        assert found.kinds == [Irregular.NO_ROOM]
