"""The rounds of an event loop: who follows them is called in each, and not while nothing happens."""

import asyncio

from kube.stalls import Loop, of_running_loop


def test_a_round_begins_with_what_came_and_ends_before_the_next_sleep() -> None:
    called: list[str] = []

    def begins(timeout_s: float | None, something_came: bool) -> None:
        called.append(f"begins {timeout_s is None} {something_came}")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Loop)
        with loop.rounds.calling(begins=begins, ends=lambda: called.append("ends")):
            called.append("work")
            loop.call_soon(called.append, "soon")
            await asyncio.sleep(0.02)
            called.append("over")
            loop.call_soon(called.append, "not followed")
        await asyncio.sleep(0.01)

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())
    assert called[:5] == ["work", "ends", "begins False False", "soon", "ends"]
    assert called[-3:] == ["begins False False", "over", "not followed"]
    calls = [call for call in called if call.startswith(("begins", "ends"))]
    assert calls == ["ends", "begins False False"] * (len(calls) // 2)


def test_whoever_comes_first_is_heard_while_the_loop_sleeps() -> None:
    """As with any other selector: readers and threads wake it."""

    async def main() -> str:
        return await asyncio.wait_for(asyncio.to_thread(lambda: "from a thread"), 5)

    with asyncio.Runner(loop_factory=Loop) as runner:
        assert runner.run(main()) == "from a thread"


async def test_a_loop_of_another_make_has_none_to_follow() -> None:
    assert of_running_loop() is None
