"""What events say: the message first, the way out at the end, and no more than the API server takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import reasons
from core.catalogue import CATALOGUE, remedy
from core.catalogue.notes import EVENT_LIMIT, event_note, message_of
from core.display.substance import substance
from core.queues.whole import Use, in_cards, in_units

CODES = st.sampled_from(sorted(CATALOGUE))
SCALAR = reasons.INSUFFICIENT_SCALAR_QUOTA
CORE = "vke.volcengine.com/mgpu-core"


@given(CODES, st.text(min_size=1, max_size=3000))
def test_a_note_is_never_too_long_and_ends_with_the_way_out_or_says_it_itself(
    code: str, message: str
) -> None:
    note = event_note(code, message)
    assert note == message or (
        len(note.encode("utf-8", errors="replace")) <= EVENT_LIMIT
        and note.casefold().endswith(f"{remedy(code)}.".casefold())
    )


@given(CODES, st.text(min_size=1, max_size=300))
def test_what_earlier_versions_said_without_the_way_out_is_no_news(code: str, message: str) -> None:
    """Else every pod that waits would be told once more after an upgrade."""
    assert substance(code, event_note(code, message)) == substance(code, message)


@pytest.mark.parametrize(
    "message",
    [
        f"short. {in_cards(1000, [Use('A', 3000, 3000)])}",
        f"short. {in_cards(9000, [Use('A', 3000, 3000)])}; PodGroup ml/g needs 2 more members at once, 1 fit",
        f"short. {in_units(CORE, 30_000, 90_000, 100_000)}",
    ],
)
def test_what_says_the_way_out_with_its_numbers_says_it_once(message: str) -> None:
    assert event_note(SCALAR, message) == message


def test_the_words_of_a_message_that_has_none() -> None:
    assert event_note(reasons.QUEUE_NOT_OPEN, "Queue <q> is Closed; it takes in no pods") == (
        "Queue <q> is Closed; it takes in no pods. Open the queue, or name another one."
    )
    assert message_of("NoneOfOurs", "text.") == "text."


@pytest.mark.parametrize(
    ("asked", "used", "limit", "told"),
    [
        (
            30_000,
            90_000,
            100_000,
            "In whole units: asks for 30, 90 of 100 are in use; wait for shares to come back, or raise spec.capability[k].",
        ),
        (
            130_000,
            0,
            100_000,
            "In whole units: asks for 130, more than the whole capability (100); ask for less, or raise spec.capability[k].",
        ),
        (
            1,
            0,
            0,
            "In whole units: asks for 0.001, more than the whole capability (0); raise spec.capability[k].",
        ),
    ],
)
def test_shares_are_told_in_whole_units_and_never_is_told_from_not_now(
    asked: int, used: int, limit: int, told: str
) -> None:
    assert in_units("k", asked, used, limit) == told
