"""Whoever makes tokens up costs the API server little, and nobody else a turn."""

import asyncio
from collections import Counter

from controller.answering import AT_A_TIME, WAITING
from kube.callers import NEW_TOKENS_PER_S, WAIT_OF_ONE, BusyError, Callers
from tests.unit.controller.asking import Asked, Judge

ATTACKER, HONEST, KNOWN = "10.0.0.1", "10.0.0.2", "10.0.0.3"
PER_S = 10.0


class Asking:
    """Some ask from one address or another; what came of it, by the token."""

    def __init__(self, per_s: float = PER_S) -> None:
        self.judge = Judge()
        self.callers = Callers(self.judge, per_s=per_s)  # type: ignore[arg-type]
        self.order: list[str] = []

    async def ask(self, token: str, address: str) -> str:
        try:
            found = await self.callers.of_token(token, address)
        except BusyError:
            return "busy"
        self.order.append(token)
        return "" if found is None else found.user

    def guesses(self, number: int, *addresses: str) -> list[asyncio.Task[str]]:
        """All at once, the addresses by turns."""
        return [
            asyncio.create_task(self.ask(f"guess-{one}", addresses[one % len(addresses)]))
            for one in range(number)
        ]


async def test_they_are_asked_about_at_a_limited_pace_and_who_sends_too_many_is_told_to_wait() -> None:
    asking = Asking(NEW_TOKENS_PER_S)
    loop = asyncio.get_running_loop()
    began, burst = loop.time(), int(NEW_TOKENS_PER_S)
    answers = Counter(await asyncio.gather(*asking.guesses(3 * burst + WAIT_OF_ONE, ATTACKER)))
    # A second's worth has its turn at once, so many wait, and for all others there is no place.
    assert answers == {"": WAIT_OF_ONE + burst, "busy": 2 * burst} or answers[""] <= WAIT_OF_ONE + burst
    assert len(asking.judge.reviews) <= burst * (loop.time() - began + 1) + 1
    assert answers["busy"] >= burst


async def test_who_has_a_token_waits_for_one_of_each_address_and_not_for_all_that_were_made_up() -> None:
    asking = Asking()
    wasted = asking.guesses(30, ATTACKER)
    await asyncio.sleep(0)
    assert await asking.ask("good", HONEST) == "ann"
    assert asking.order.index("good") <= PER_S + 2
    for one in wasted:
        one.cancel()


async def test_where_a_good_one_came_from_nobody_waits_for_strangers_however_many_they_are() -> None:
    """Such as an API server's address, by way of which people ask."""
    asking = Asking()
    asking.judge.tokens["another"] = "bob"
    assert await asking.ask("good", KNOWN) == "ann"
    wasted = asking.guesses(200, *(f"10.0.1.{number}" for number in range(200)))
    await asyncio.sleep(0)
    assert await asking.ask("another", KNOWN) == "bob"
    assert asking.order.index("another") <= PER_S + 2
    for one in wasted:
        one.cancel()


async def test_nobody_has_a_turn_for_ever_who_waits_in_vain() -> None:
    """One who is told to come back, or goes, leaves its place to others."""
    asking = Asking(1.0)
    wasted = asking.guesses(WAIT_OF_ONE + 5, ATTACKER)
    await asyncio.sleep(0)
    assert await asking.ask("more", ATTACKER) == "busy"
    for one in wasted:
        one.cancel()
    await asyncio.gather(*wasted, return_exceptions=True)
    async with asyncio.timeout(3.0):
        assert await asking.ask("good", ATTACKER) == "ann"


async def test_those_who_wait_to_be_known_take_no_place_of_those_who_are() -> None:
    asked = Asked()
    asked.knowledge.callers = Callers(asked.judge, per_s=1.0)  # type: ignore[arg-type]
    async with asked.port() as port:
        first, _ = await port.get("books")
        guesses = {
            asyncio.create_task(port.get("books", f"guess-{number}"))
            for number in range(AT_A_TIME + WAITING + WAIT_OF_ONE + 20)
        }
        left = guesses
        while (
            len(guesses) - len(left) < 20
        ):  # Those for whom there is no place: all others have come and wait.
            _, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
        second, _ = await port.get("books")
        for one in guesses:
            one.cancel()
        await asyncio.gather(*guesses, return_exceptions=True)
    assert (first, second) == (403, 403)
