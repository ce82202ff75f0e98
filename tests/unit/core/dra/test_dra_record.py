"""The record of counted claims: how it reads, and that it is charged for a claim that is out of sight."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import names
from core.dra.amounts import DeviceKey, thousandths
from core.dra.book import DeviceBook
from core.dra.record import Counted, read_counted, render_counted
from core.settings import DraSettings
from core.stage import Stage
from tests.builders import a_pod, a_queue
from tests.builders.claims import ClaimBuilder, a_claim, a_template
from tests.builders.objects import PodBuilder

KEYS = st.builds(DeviceKey, st.sampled_from(["gpu", "x.y"]), st.sampled_from(["", "memory", "d.io/cores"]))
ENTRIES = st.builds(
    Counted,
    st.sampled_from(["", "u-1"]),
    st.dictionaries(KEYS, st.integers(1, 2**40 * 10**9), max_size=3),
    st.booleans(),
)


@given(st.dictionaries(st.sampled_from(["dev", "uid", "b"]), ENTRIES, max_size=3))
def test_what_is_written_is_read_again(entries: dict[str, Counted]) -> None:
    assert read_counted(render_counted(entries)) == entries


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        '{"dev":1}',
        '{"dev":{"uid":1}}',
        '{"dev":{"unasked":true}}',
        '{"dev":{"unasked":"no"}}',
        '{"dev":{"deviceclass/gpu":1}}',
        '{"dev":{"deviceclass/gpu":"one"}}',
        '{"dev":{"deviceclass/gpu":"-1"}}',
        '{"dev":{"deviceclass/gpu":"0"}}',
        '{"dev":{"gpu":"1"}}',
        '{"good":{"deviceclass/gpu":"1"},"dev":{"":"1"}}',
        "[" * 100_000,
    ],
)
def test_what_nobody_of_us_wrote_is_no_record(text: str) -> None:
    assert read_counted(text) is None


# -- what is charged -----------------------------------------------------------------------------------------


def gpus(count: int, uid: str = "u") -> ClaimBuilder:
    return a_claim("c").uid(uid).exactly("r", "gpu", count=count)


def recorded(pod: PodBuilder, count: int = 2, uid: str = "u", queue: str = "q") -> PodBuilder:
    known = f'"uid":"{uid}",' if uid else ""
    text = f'{{"dev":{{{known}"deviceclass/gpu":"{count}"}}}}'
    return pod.charged(queue).annotation(names.CLAIMS_ANNOTATION, text)


NAMED = a_pod("p").claim("dev", name="c")
PLANNED = a_pod("p").claim("dev", template="t")
MADE = PLANNED.generated_claim("dev", "c")


class Books:
    """A book with pods, all of the queue `q`."""

    def __init__(self, *pods: PodBuilder) -> None:
        self.book = DeviceBook(DraSettings())
        for pod in pods:
            self.put(pod)

    def put(self, pod: PodBuilder) -> None:
        view = pod.view()
        stage = Stage.ALLOCATED if view.bound else Stage.WAITING if view.gated else Stage.RESERVED
        self.book.put_pod(view, stage, "q")

    @property
    def used(self) -> int:
        return thousandths(self.book.accounts.used("q")).get("deviceclass/gpu", 0) // 1000


@pytest.mark.parametrize("pod", [NAMED, MADE], ids=["named", "made"])
@pytest.mark.parametrize("bound", [True, False])
def test_a_claim_that_is_gone_stays_charged(pod: PodBuilder, *, bound: bool) -> None:
    """Deleted, with its finalizers patched away, while the pod goes on with the devices; and the template with it."""
    let_in = recorded(pod)
    books = Books(let_in.bound_to("n") if bound else let_in)
    claim = gpus(2).made_for("p")
    books.book.put_claim(claim.view())
    assert books.used == 2
    books.book.drop_claim("ml/c")
    assert books.used == 2
    assert not books.book.obstacle(let_in.view(), "q")
    books.book.put_claim(claim.view())
    assert books.used == 2
    books.book.drop_pod("uid-ml-p")
    assert books.used == 0
    assert not list(books.book.accounts.queues())


def test_a_claim_that_lost_its_owner_stays_charged() -> None:
    """It is the one on record by its UID; with another pod on it, it is still one claim."""
    books = Books(recorded(MADE).bound_to("n"))
    books.book.put_claim(gpus(2).view())
    assert books.used == 2
    books.put(recorded(a_pod("q").claim("dev", name="c")))
    assert books.used == 2


@pytest.mark.parametrize("template", [0, 1, 5])
def test_one_that_was_not_made_yet_costs_what_it_was_let_in_with(template: int) -> None:
    """Whether its template is gone, or was made anew, and whatever is made of that: the bind will ask for it."""
    books = Books(recorded(PLANNED, uid=""))
    if template:
        books.book.put_template(a_template("t").exactly("r", "gpu", count=template).view())
    assert books.used == 2
    books.put(recorded(MADE, uid=""))
    books.book.put_claim(gpus(7).made_for("p").view())
    assert books.used == 2
    books.book.put_claim(gpus(1).made_for("p").view())
    assert books.used == 1
    books.book.put_claim(gpus(7).made_for("p").view())
    books.put(recorded(MADE, uid="").bound_to("n"))
    assert books.used == 7


def test_pods_that_share_a_claim_have_it_once() -> None:
    books = Books(*(recorded(a_pod(name).claim("dev", name="c")).bound_to("n") for name in "abc"))
    assert books.used == 2
    books.book.drop_pod("uid-ml-a")
    books.book.drop_pod("uid-ml-b")
    assert books.used == 2
    books.book.drop_pod("uid-ml-c")
    assert books.used == 0


def test_records_of_one_claim_may_differ() -> None:
    """It was narrowed by its allocation between the two; the sums stay sums."""
    many = recorded(a_pod("a").claim("dev", name="c"), 32).bound_to("n")
    books = Books(many, recorded(a_pod("b").claim("dev", name="c")).bound_to("n"))
    books.book.drop_pod("uid-ml-a")
    assert books.used == 2
    books.book.drop_pod("uid-ml-b")
    assert books.used == 0


@pytest.mark.parametrize("bound", [True, False])
def test_one_that_was_made_anew_costs_nothing_before_it_has_devices(bound: bool) -> None:
    """Whoever may write claims must not charge a queue with any number by that. Unbound, its pod is asked at the bind."""
    books = Books(recorded(NAMED).bound_to("n") if bound else recorded(NAMED))
    anew = gpus(7, "new")
    books.book.put_claim(anew.view())
    assert books.used == 2
    books.book.put_claim(anew.allocated(*["r"] * 7).view())
    assert books.used == (2 + 7 if bound else 2)
    books.book.drop_claim("ml/c")
    assert books.used == 2


@pytest.mark.parametrize(("limit", "refused"), [(2, True), (6, True), (7, False)])
@pytest.mark.parametrize("shared", [False, True])
def test_the_bind_asks_for_one_that_was_made_anew_in_the_place_of_the_first(
    limit: int, refused: bool, shared: bool
) -> None:
    """What other pods were let in with stays theirs."""
    books = Books(recorded(NAMED))
    if shared:
        books.put(recorded(a_pod("other").claim("dev", name="c")))
    books.book.put_queue(a_queue("q").devices({"capability": {"gpu": {"count": limit + 2 * shared}}}).view())
    books.book.put_claim(gpus(7, "new").view())
    assert (books.book.exchanged(recorded(NAMED, 7, "new").view()) is not None) == refused
    books.put(recorded(NAMED, 7, "new").bound_to("n"))
    assert books.used == 7 + 2 * shared


@pytest.mark.parametrize("past_the_gate", [True, False])
def test_the_bind_asks_in_full_for_one_that_only_a_pod_past_the_gate_has(*, past_the_gate: bool) -> None:
    """Made anew for more, and held by a pod with a node at once, it would be had for nothing."""
    other = a_pod("other").claim("dev", name="c").bound_to("n")
    books = Books(recorded(NAMED), other if past_the_gate else recorded(other, 7, "new"))
    books.book.put_queue(a_queue("q").devices({"capability": {"gpu": {"count": 4}}}).view())
    books.book.put_claim(gpus(7, "new").view())
    assert books.used == 9
    assert (books.book.exchanged(recorded(NAMED, 7, "new").view()) is not None) == past_the_gate


@pytest.mark.parametrize(
    "pod",
    [
        NAMED.charged("q"),
        NAMED.annotation(names.CLAIMS_ANNOTATION, '{"dev":{"deviceclass/gpu":"2"}}'),
        NAMED.charged("q").annotation(names.CLAIMS_ANNOTATION, "u"),
        NAMED.charged("q").annotation(names.CLAIMS_ANNOTATION, "{}"),
    ],
    ids=["earlier version", "never let in", "unreadable", "of other entries"],
)
def test_without_a_record_a_claim_that_is_gone_costs_nothing(pod: PodBuilder) -> None:
    books = Books(pod.bound_to("n"))
    assert books.used == 0
    assert books.book.obstacle(pod.view(), "q")


def test_what_needs_no_claim_costs_nothing() -> None:
    none = recorded(PLANNED).add("status", "resourceClaimStatuses", item={"name": "dev"})
    assert Books(none.bound_to("n")).used == 0


def test_a_record_that_changes_is_charged_anew() -> None:
    books = Books(recorded(NAMED).bound_to("n"))
    books.put(recorded(NAMED, 5, "v").bound_to("n"))
    assert books.used == 5
