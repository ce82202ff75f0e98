"""Whose handshake is next, where more are wanted than there is time for."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from kube.handshakes import AT_ONCE, KNOWN_MOST, Turns
from tests.unit.kube.test_doors import until

pytestmark = pytest.mark.looptime

SOON_S = 0.011
"""What `until` looks at in virtual time, it sees so soon."""


class Port:
    """Turns of which strangers get so many a second, and who had one, in order."""

    def __init__(self, per_s: float) -> None:
        self.turns = Turns(strangers_per_s=per_s, known_per_s=100 * per_s)
        self.begun: list[str] = []

    def wait(self, address: str, number: int = 0) -> Callable[[], None]:
        return self.turns.wait(address, lambda: self.begun.append(f"{address}{number}"))


async def test_after_a_second_of_them_at_once_strangers_have_their_pace() -> None:
    port = Port(32)
    clock = asyncio.get_running_loop().time
    for number in range(40):
        port.wait("a", number)
    await until(lambda: len(port.begun) >= 32)
    assert clock() <= SOON_S
    await until(lambda: len(port.begun) == 40)
    assert 8 / 32 <= clock() <= 8 / 32 + SOON_S
    assert port.begun == [f"a{number}" for number in range(40)]


@pytest.mark.parametrize("known", [False, True])
async def test_a_burst_is_begun_in_pieces_and_the_loop_goes_on_between_them(known: bool) -> None:
    """Whether those who wait have come all together or each by itself."""
    port, seen = Port(1000), [0]
    if known:
        port.turns.know("a")
    for number in range(95):
        port.wait("a", number)
    seen.append(len(port.begun))
    while len(port.begun) < 95:
        await asyncio.sleep(0)
        seen.append(len(port.begun))
    assert max(after - before for before, after in pairwise(seen)) <= AT_ONCE
    assert port.begun == [f"a{number}" for number in range(95)]


async def test_each_address_has_one_after_the_other() -> None:
    port = Port(20)
    for number in range(40):
        port.wait("a", number)
    await until(lambda: len(port.begun) == 20)
    port.wait("b")
    await until(lambda: "b0" in port.begun)
    assert port.begun.index("b0") <= 22, "it waits for one of each other address, not for all of them"


async def test_who_is_known_does_not_wait_for_strangers() -> None:
    port = Port(1)
    port.turns.know("api-server")
    for number in range(1000):
        port.wait(f"10.0.0.{number}")
    for number in range(100):
        port.wait("api-server", number)
    await until(lambda: len(port.begun) == 101)
    assert port.begun == ["10.0.0.00", *(f"api-server{number}" for number in range(100))]


async def test_who_becomes_known_waits_with_strangers_no_longer() -> None:
    """An API server that has just come opens many connections at once."""
    port = Port(1)
    take_back = [port.wait("api-server", number) for number in range(4)][-1]
    assert port.begun == ["api-server0"]
    port.turns.know("api-server")
    await until(lambda: len(port.begun) == 4)
    assert port.begun == [f"api-server{number}" for number in range(4)]
    take_back()


async def test_who_has_gone_has_no_turn() -> None:
    port = Port(20)
    gone = [port.wait("a", number) for number in range(40)]
    await until(lambda: len(port.begun) == 20)
    port.wait("b")
    for take_back in gone:
        take_back()
        take_back()
    await until(lambda: "b0" in port.begun)
    assert port.begun == [*(f"a{number}" for number in range(20)), "b0"]


async def test_of_the_known_those_are_forgotten_that_were_not_heard_of_for_long() -> None:
    port = Port(1)
    for number in range(KNOWN_MOST):
        port.turns.know(f"10.0.0.{number}")
    port.turns.know("10.0.0.0")
    port.turns.know("another")
    for address in ("stranger", "10.0.0.0", "10.0.0.1", "another"):
        port.wait(address)
    await until(lambda: "another0" in port.begun)
    assert port.begun == ["stranger0", "10.0.0.00", "another0"]
