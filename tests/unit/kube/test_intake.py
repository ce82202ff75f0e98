"""Bodies that are let in: each within its limit, all together within theirs, none for ever."""

import asyncio
import gc
import weakref
from http import HTTPStatus

import pytest

from kube.bigjson import Body
from kube.intake import DEFAULT, IN_FLIGHT, READ_S, Intake, RefusedError
from tests.fakes.bodies import Sending, sent

LIMIT = 100


async def refused(intake: Intake, sending: Sending, limit: int = LIMIT, name: str = "") -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        async with intake.body(sending.request, limit, name):
            pass
    return caught.value


@pytest.mark.parametrize("announced", [True, False])
async def test_a_body_is_counted_until_it_is_done_with(announced: bool) -> None:
    intake = Intake(1000)
    async with intake.body(sent(b"x" * 70, announced=announced), LIMIT) as body:
        assert body == b"x" * 70
        assert intake.held == 70
    assert intake.held == 0


def reading(intake: Intake, sending: Sending, address: str = "10.0.0.9") -> asyncio.Task[Body]:
    """One that takes a body in, and is done with it at once."""
    request = sending.request.clone(remote=address)

    async def read() -> Body:
        async with intake.body(request, LIMIT) as body:
            return body

    return asyncio.create_task(read())


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_body_is_counted_as_it_comes_and_not_as_it_is_announced() -> None:
    intake, sending = Intake(1000), Sending(70)
    task = reading(intake, sending)
    for part in (0, 30, 40):
        before = intake.held
        sending.sends(b"x" * part)
        await turns()
        assert intake.held == before + part
    sending.ends()
    assert await task == b"x" * 70
    assert intake.held == 0


async def test_who_announces_and_sends_nothing_takes_nothing_from_others() -> None:
    intake = Intake(150)
    announcers = [reading(intake, Sending(LIMIT), f"10.0.0.{number}") for number in range(3)]
    await turns()
    assert intake.held == 0
    async with intake.body(sent(b"x" * LIMIT), LIMIT) as body:
        assert len(body) == LIMIT
    for task in announcers:
        assert not task.done()
        task.cancel()


async def test_bodies_that_are_kept_from_ending_give_way_the_oldest_first() -> None:
    """Three addresses send all but the last byte; whoever sends at once is served, and the bytes stay within the limit."""
    intake = Intake(150)
    slow = [Sending(60).sends(b"x" * 50) for _ in range(3)]
    tasks = []
    for number, sending in enumerate(slow):
        tasks.append(reading(intake, sending, f"10.0.0.{number}"))
        await turns()
    assert intake.held == 150
    async with intake.body(sent(b"x" * 60), LIMIT) as body:
        assert body == b"x" * 60
        assert intake.held == 110
        for given_up in tasks[:2]:
            with pytest.raises(RefusedError) as caught:
                await given_up
            assert caught.value.status is HTTPStatus.SERVICE_UNAVAILABLE
    slow[2].sends(b"x" * 10).ends()
    assert await tasks[2] == b"x" * 60
    assert intake.held == 0
    assert (intake._by_address, intake._arriving) == ({}, {})


async def test_a_body_that_has_arrived_gives_way_to_nobody_and_an_older_one_to_no_younger() -> None:
    intake = Intake(150)
    old, young = Sending(60).sends(b"x" * 50), Sending(60).sends(b"x" * 50)
    first = reading(intake, old, "10.0.0.1")
    await turns()
    second = reading(intake, young, "10.0.0.2")
    await turns()
    async with intake.body(sent(b"x" * 50), LIMIT):
        old.sends(b"x")
        with pytest.raises(RefusedError):
            await first
        young.sends(b"x" * 10).ends()
        assert await second == b"x" * 60
        assert intake.held == 50
    assert intake.held == 0


async def test_what_had_to_give_way_is_refused_even_if_it_ends_at_that_moment() -> None:
    intake, late = Intake(100), Sending(60).sends(b"x" * 50)
    task = reading(intake, late)
    await turns()
    async with intake.body(sent(b"x" * 60), LIMIT):
        late.sends(b"x" * 10).ends()
        with pytest.raises(RefusedError) as caught:
            await task
        assert caught.value.status is HTTPStatus.SERVICE_UNAVAILABLE
        assert intake.held == 60
    assert intake.held == 0


async def test_a_body_of_exactly_the_limit_is_let_in_and_one_byte_more_is_not() -> None:
    intake = Intake(1000)
    async with intake.body(sent(b"x" * LIMIT), LIMIT) as body:
        assert len(body) == LIMIT
    refusal = await refused(intake, Sending(LIMIT + 1))
    assert (refusal.status, str(refusal)) == (413, "the body is larger than 100 bytes")
    refusal = await refused(intake, Sending().sends(b"x" * 101), name="some.setting")
    assert (refusal.status, str(refusal)) == (413, "the body is larger than some.setting, 100 bytes")
    assert intake.held == 0


@pytest.mark.parametrize("gives_way", [True, False])
async def test_what_was_held_of_a_body_that_was_given_up_is_free_at_once(gives_way: bool) -> None:
    """The next collection may be far, and who sends bodies that are given up sends MiB by MiB."""
    intake, late = Intake(100, read_s=30.0 if gives_way else 0.2), Sending(60).sends(b"x" * 50)

    async def told() -> HTTPStatus:
        try:
            async with intake.body(late.request, LIMIT):
                raise AssertionError("it never ends")
        except RefusedError as refusal:
            return refusal.status

    gc.disable()
    try:
        task = asyncio.create_task(told())
        await turns()
        (share,) = map(weakref.ref, intake._arriving)
        if gives_way:
            async with intake.body(sent(b"x" * 60), LIMIT):
                assert await task is HTTPStatus.SERVICE_UNAVAILABLE
        else:
            assert await task is HTTPStatus.REQUEST_TIMEOUT
        assert share() is None
    finally:
        gc.enable()


async def test_beyond_what_may_be_here_at_a_time_a_client_is_asked_to_come_again() -> None:
    intake = Intake(150)
    async with intake.body(sent(b"x" * 90), LIMIT):
        for late in (Sending(61).sends(b"x" * 61), Sending().sends(b"x" * 61)):
            refusal = await refused(intake, late)
            assert refusal.status is HTTPStatus.SERVICE_UNAVAILABLE
            assert refusal.headers == {"Retry-After": "1"}
        async with intake.body(sent(b"x" * 60), LIMIT):
            assert intake.held == 150
    assert intake.held == 0
    async with intake.body(sent(b"x" * 61), LIMIT):
        assert intake.held == 61


async def test_a_body_that_is_alone_is_let_in_up_to_its_own_limit() -> None:
    """An operator may allow more for one than what is allowed for all."""
    intake = Intake(50)
    for announced in (True, False):
        async with intake.body(sent(b"x" * LIMIT, announced=announced), LIMIT) as body:
            assert len(body) == LIMIT


@pytest.mark.looptime
@pytest.mark.parametrize("announced", [70, None])
async def test_a_client_that_does_not_get_to_the_end_is_given_up(announced: int | None) -> None:
    intake, sending = Intake(1000), Sending(announced).sends(b"x")
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.timeout(60.0):
        refusal = await refused(intake, sending)
    assert (refusal.status, str(refusal)) == (408, "the body did not arrive within 10 s")
    assert loop.time() - started == pytest.approx(READ_S)
    assert intake.held == 0


@pytest.mark.looptime
async def test_work_on_a_body_may_take_longer_than_the_body() -> None:
    async with Intake().body(sent(b"x"), LIMIT) as body:
        await asyncio.sleep(2 * READ_S)
        assert body == b"x"


async def test_an_error_of_the_work_gives_the_bytes_back() -> None:
    intake = Intake(1000)
    with pytest.raises(ValueError, match="work"):
        async with intake.body(sent(b"x" * 70), LIMIT):
            raise ValueError("work")
    assert intake.held == 0


def test_a_process_lets_24_mebibytes_in_at_a_time() -> None:
    assert IN_FLIGHT == 24 * 2**20
    assert DEFAULT.held == 0


async def test_one_address_leaves_the_others_some_room() -> None:
    """Whoever sends slowly, or without end, keeps bytes for as long as a body may take."""
    intake = Intake(100, others=40)
    mine, theirs = "10.0.0.1", "10.0.0.2"

    def coming(size: int, address: str) -> Sending:
        sending = Sending(size)
        sending.request = sending.request.clone(remote=address)
        return sending

    async with intake.body(coming(50, mine).sends(b"x" * 50).ends().request, LIMIT):
        refusal = await refused(intake, coming(11, mine).sends(b"x" * 11))
        assert refusal.status is HTTPStatus.SERVICE_UNAVAILABLE
        async with (
            intake.body(coming(10, mine).sends(b"x" * 10).ends().request, LIMIT),
            intake.body(coming(40, theirs).sends(b"x" * 40).ends().request, LIMIT),
        ):
            assert intake.held == 100
    assert intake.held == 0
    assert intake._by_address == {}
