"""In which queues pods wait for a claim is known by counting, and is what a look at each of them would find."""

from hypothesis import given
from hypothesis import strategies as st

from core.dra.awaited_claims import AwaitedClaims
from core.dra.booking import Booking
from core.dra.wants import Wants, claim_keys
from core.hierarchy import Chain
from core.stage import Stage
from tests.builders import a_pod

QUEUES = ("q", "r", "s")
CLAIMS = ("a", "b", "c")


@st.composite
def bookings(draw: st.DrawFn) -> Booking:
    """One of a few pods; it names a claim twice now and then, or its status names one that was made for it."""
    pod = a_pod(draw(st.sampled_from("uvwxyz")))
    for entry, claim in enumerate(draw(st.lists(st.sampled_from(CLAIMS), max_size=3))):
        if draw(st.booleans()):
            pod = pod.claim(f"e{entry}", name=claim)
        else:
            pod = pod.claim(f"e{entry}", template="t").generated_claim(f"e{entry}", claim)
    queue = draw(st.sampled_from(QUEUES))
    stage = draw(st.sampled_from([Stage.WAITING, Stage.RESERVED, Stage.ALLOCATED]))
    return Booking(pod.view(), stage, queue, Chain((queue, "root")), Wants())


@given(st.lists(bookings(), max_size=30))
def test_the_queues_of_a_claim_are_those_of_the_waiting_pods_that_refer_to_it(changes: list[Booking]) -> None:
    """Each pod is booked anew whenever it comes again, and all are taken out in the end."""
    awaited, booked = AwaitedClaims(), dict[str, Booking]()
    for booking in changes:
        before = booked.pop(booking.pod.uid, None)
        if before is not None:
            awaited.unbook(before)
        booked[booking.pod.uid] = booking
        awaited.book(booking)
        for claim in (f"ml/{name}" for name in CLAIMS):
            users = [each for each in booked.values() if claim in claim_keys(each.pod)]
            waiting = {each.queue for each in users if each.stage is Stage.WAITING}
            assert awaited.queues([claim]) == waiting
    for booking in booked.values():
        awaited.unbook(booking)
    assert awaited.queues(f"ml/{name}" for name in CLAIMS) == set()
    assert not any(vars(awaited).values()), "nothing is kept of claims for which nobody waits"
