import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kube.errors import ApiError, ConnectionFailed, Forbidden, Gone, NotFound, ServerError
from kube.informer import Informer
from kube.listing import WatchEvent
from kube.metrics import Metrics
from kube.reflector import Timing
from kube.resources import PODS
from tests.fakes import faults
from tests.fakes.apiserver import FakeApiServer, background
from tests.fakes.listwatch import ScriptedSource, added, bookmark, deleted, modified, raw

GONE = Gone(410, "Expired")


@dataclass(frozen=True, slots=True)
class View:
    name: str
    uid: str
    node: str


def project(content: dict[str, Any]) -> View | None:
    """Pods of a node; those without a node are not of interest, those with a number for one are garbage."""
    node = content.get("node")
    if node is None:
        return None
    return View(content["metadata"]["name"], content["metadata"]["uid"], node.strip())


def informer_of(source: Any, metrics: Metrics | None = None) -> Informer[View]:
    return Informer(
        source,
        PODS,
        project,
        timing=Timing(backoff_base_s=0.001, backoff_cap_s=0.02),
        metrics=metrics or Metrics(CollectorRegistry()),
    )


@asynccontextmanager
async def playing(source: ScriptedSource, metrics: Metrics | None = None) -> AsyncIterator[Informer[View]]:
    """An informer that has seen the whole script."""
    informer = informer_of(source, metrics)
    async with background(informer.run()):
        await source.exhausted.wait()
        yield informer


@pytest.mark.looptime
async def test_views_are_found_by_key() -> None:
    """Of every object of interest, and of no other."""
    listed = [raw("p", 1, node="x"), raw("q", 2, node="xy"), raw("r", 3)]
    async with playing(ScriptedSource(lists=[listed])) as informer:
        assert informer.synced
        assert informer.get("a/p") == View("p", "p", "x")
        assert informer.get("a/r") is None
        assert len(informer) == len(list(informer.values())) == 2


@pytest.mark.looptime
async def test_handlers_hear_of_every_change_and_of_nothing_else() -> None:
    """Additions, updates, removals in order; an object whose view stays equal is no change."""
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x")], [raw("p", 5, node="y"), raw("q", 6, node="x")]],
        watches=[
            [modified("p", 11, node="x", label="new"), modified("p", 12, node="y"), added("s", 13), GONE],
            [modified("q", 21), modified("q", 22, node="z"), deleted("p", 23)],
        ],
    )
    heard: list[tuple[str | None, str | None]] = []
    informer = informer_of(source)
    informer.subscribe(lambda old, new: heard.append((old.node if old else None, new.node if new else None)))
    async with background(informer.run()):
        await source.exhausted.wait()
    assert heard == [(None, "x"), ("x", "y"), (None, "x"), ("x", None), (None, "z"), ("y", None)]


@dataclass(frozen=True, slots=True)
class Versioned:
    """A view that is another one by its node alone."""

    node: str
    version: str = field(compare=False)


@pytest.mark.looptime
async def test_of_views_that_are_equal_the_latest_is_kept_and_nobody_is_told() -> None:
    """What is left out of comparisons, such as the version that the next write has to name, is never old."""
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x")]], watches=[[modified("p", 11, node="x"), modified("p", 12, node="x")]]
    )
    informer = Informer(
        source,
        PODS,
        lambda content: Versioned(content["node"], content["metadata"]["resourceVersion"]),
        metrics=Metrics(CollectorRegistry()),
    )
    heard: list[Versioned | None] = []
    informer.subscribe(lambda _old, new: heard.append(new))
    async with background(informer.run()):
        await source.exhausted.wait()
    kept = informer.get("a/p")
    assert (len(heard), kept is not None and kept.version) == (1, "12")
    assert [view.version for view in informer.values()] == ["12"]


@pytest.mark.looptime
async def test_a_late_handler_hears_what_is_there_already() -> None:
    """As additions, so that no handler depends on when it was subscribed."""
    async with playing(ScriptedSource(lists=[[raw("p", 1, node="x")]])) as informer:
        heard: list[tuple[View | None, View | None]] = []
        informer.subscribe(lambda old, new: heard.append((old, new)))
        assert heard == [(None, View("p", "p", "x"))]


@pytest.mark.looptime
async def test_the_store_is_up_to_date_when_a_handler_is_called() -> None:
    """Handlers may look into the informer."""
    source = ScriptedSource(lists=[[raw("p", 1, node="x")]], watches=[[modified("p", 11, node="y")]])
    informer = informer_of(source)
    found: list[bool] = []
    informer.subscribe(lambda _old, new: found.append(informer.get("a/p") is new))
    async with background(informer.run()):
        await source.exhausted.wait()
    assert found == [True, True]


@pytest.mark.looptime
async def test_garbage_is_absent_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """An unreadable object ends neither the informer nor the view of others; readable again, it is back."""
    metrics = Metrics(CollectorRegistry())
    garbage = [modified("p", 11, node=7), modified("p", 12, node=[])]
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x"), raw("q", 2, node={})]],
        watches=[[*garbage, added("r", 13, node="x"), GONE], [modified("q", 21, node="x")]],
    )
    source.lists.append([raw("p", 12, node=[]), raw("q", 2, node={}), raw("r", 13, node="x")])
    async with playing(source, metrics) as informer:
        assert sorted(view.name for view in informer.values()) == ["q", "r"]
    logged = [record for record in caplog.records if "cannot be read" in record.message]
    assert [vars(record)["object"] for record in logged] == ["a/q", "a/p"]
    labels = {"resource": "pods"}
    value = metrics.registry.get_sample_value("cardquota_informer_projection_failures_total", labels)
    assert value == 5.0


@pytest.mark.looptime
async def test_staleness_grows_while_the_server_is_silent() -> None:
    """From the last word of any kind, the opening of a watch too; there is none before the first."""
    metrics = Metrics(CollectorRegistry())
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x")]], watches=[[bookmark(10), 11.0], [bookmark(10), 80.0]]
    )
    informer = informer_of(source, metrics)
    assert informer.staleness_s() is None
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(11.0 + 70.0)
        assert informer.staleness_s() == pytest.approx(70.0)
        shown = metrics.registry.get_sample_value(
            "cardquota_informer_staleness_seconds", {"resource": "pods"}
        )
        assert shown == pytest.approx(70.0)


@pytest.mark.looptime
@pytest.mark.parametrize(
    ("refusal", "optional", "stale"),
    [
        (Forbidden(403, "Forbidden"), False, True),
        (NotFound(404, "NotFound"), False, True),
        (ServerError(500, "InternalError"), False, True),
        (NotFound(404, "NotFound"), True, False),
    ],
    ids=["forbidden", "gone", "server errors", "gone, and may be"],
)
async def test_a_list_that_is_only_asked_for_is_no_word_of_the_server(
    refusal: ApiError, optional: bool, stale: bool
) -> None:
    """`CardquotaCacheStale` fires while every list is refused, but for a kind that a cluster need not have."""
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x")], *([refusal] for _ in range(200))], watches=[[bookmark(10), GONE]]
    )
    informer = Informer(source, PODS, project, optional=optional, metrics=Metrics(CollectorRegistry()))
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(600)
        staleness_s = informer.staleness_s()
        assert staleness_s is not None
        assert (staleness_s > 500) is stale
        assert not source.exhausted.is_set(), "it was refused to the end"


@pytest.mark.looptime
async def test_the_first_pages_of_a_list_do_not_end_staleness() -> None:
    """What the others have is not here yet: what was used over time, for one, would be written down as complete without it."""
    broken_off: list[dict[str, Any] | Exception | float] = [raw("p", 20, node="x"), ConnectionFailed("reset")]
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x")], *[broken_off] * 200], watches=[[bookmark(10), GONE]]
    )
    informer = Informer(source, PODS, project, metrics=Metrics(CollectorRegistry()))
    async with background(informer.run()):
        await informer.wait_synced()
        await asyncio.sleep(600)
        assert not source.exhausted.is_set(), "it was broken off to the end"
        assert (informer.staleness_s() or 0) > 500


@pytest.mark.looptime
async def test_a_list_is_as_stale_at_its_end_as_it_took_long() -> None:
    """It shows what there was when it began. What changed meanwhile comes by the watch, once that is answered."""
    source = ScriptedSource(
        lists=[[raw("p", 1, node="x"), 40.0, raw("q", 2, node="x")]], watches=[[7.0, bookmark(10), 60.0]]
    )
    informer = informer_of(source)
    async with background(informer.run()):
        await asyncio.sleep(20)
        assert informer.staleness_s() is None
        await informer.wait_synced()
        await asyncio.sleep(3)
        assert informer.staleness_s() == pytest.approx(43.0)
        await asyncio.sleep(7)
        assert informer.staleness_s() == pytest.approx(3.0)


@pytest.mark.looptime
async def test_staleness_of_who_was_refused_from_the_start_is_shown_since_then() -> None:
    metrics = Metrics(CollectorRegistry())
    source = ScriptedSource(lists=[[Forbidden(403, "Forbidden")] for _ in range(100)])
    informer = Informer(source, PODS, project, metrics=metrics)
    async with background(informer.run()):
        await asyncio.sleep(300)
        assert informer.staleness_s() is None
        shown = metrics.registry.get_sample_value(
            "cardquota_informer_staleness_seconds", {"resource": "pods"}
        )
        assert shown == pytest.approx(300)


@pytest.mark.looptime
async def test_a_failing_handler_ends_the_informer() -> None:
    """A bug in the process is not hidden: the task group that runs the informer sees it."""
    informer = informer_of(ScriptedSource(lists=[[raw("p", 1, node="x")]]))

    def fail(_old: View | None, _new: View | None) -> None:
        raise ZeroDivisionError

    informer.subscribe(fail)
    with pytest.raises(ZeroDivisionError):
        await informer.run()


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("pqr"),
        st.sampled_from(["u1", "u2"]),
        st.sampled_from([None, "x", "xy", "y", 7]),
        st.booleans(),
    ),
    max_size=25,
)


@given(changes=CHANGES, relist_at=st.integers(0, 25))
def test_store_and_indices_agree_with_what_exists(
    changes: list[tuple[str, str, str | int | None, bool]], relist_at: int
) -> None:
    """After any history, with a list in the middle of it, and for a handler that keeps books from its calls."""
    exists: dict[str, dict[str, Any]] = {}
    histories: list[list[Any]] = [[], []]
    at_relist: list[dict[str, Any]] = []
    for number, (name, uid, node, removes) in enumerate(changes):
        history = histories[0 if number < relist_at else 1]
        if number == relist_at:
            at_relist = list(exists.values())
        if removes:
            gone = exists.pop(name, None)
            if gone is not None:
                history.append(WatchEvent("DELETED", gone))
        else:
            content = raw(name, 1000 + number, uid, **({} if node is None else {"node": node}))
            exists[name] = content
            history.append(WatchEvent("MODIFIED", content))
    if len(changes) <= relist_at:
        at_relist = list(exists.values())
    source_script = {"lists": [[], at_relist], "watches": [[*histories[0], GONE], histories[1]]}
    expected = {
        name: project(content) for name, content in exists.items() if isinstance(content.get("node"), str)
    }

    async def check() -> None:
        source = ScriptedSource(**source_script)
        informer = informer_of(source)
        books: dict[str, View] = {}

        def keep(old: View | None, new: View | None) -> None:
            assert (books.pop(old.name) if old else None) == old
            if new:
                assert books.setdefault(new.name, new) is new

        informer.subscribe(keep)
        async with background(informer.run()):
            await source.exhausted.wait()
        assert {view.name: view for view in informer.values()} == expected == books

    asyncio.run(check())


async def test_an_informer_survives_everything_a_server_does() -> None:
    """Over real sockets: expired list, cut stream, refusals, compaction with missed deletes; then all is right."""
    async with FakeApiServer() as server, server.client() as client:
        for number in range(5):
            server.put(PODS, raw(f"p{number}", 0, node="x"))
        server.fail("list", faults.answer_status(410, "Expired"))
        server.fail("list", faults.answer(503, b"starting"))
        server.fail("watch", faults.stream(b'{"type":"ADD', cut=True))
        server.fail("watch", faults.answer_status(429, "TooManyRequests"))
        informer = informer_of(client)
        async with background(informer.run()):
            await informer.wait_synced()
            await server.wait_for(lambda: server.watching == 1)
            assert len(informer) == 5
            server.put(PODS, raw("p0", 0, node="y"))
            await server.wait_for(
                lambda: [view.name for view in informer.values() if view.node == "y"] == ["p0"]
            )
            server.fail("watch", faults.answer(500, b"no"))
            server.end_watches()
            server.remove(PODS, "p1", "a")
            server.compact()
            await server.wait_for(lambda: informer.get("a/p1") is None)
            assert len(informer) == 4
