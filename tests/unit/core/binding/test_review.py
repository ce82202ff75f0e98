"""What a Binding may lay over the annotations of its pod."""

from core import names
from core.binding.review import Target, grant


def test_a_bind_writes_our_records_and_takes_the_pod_into_no_other_gang() -> None:
    """Nobody looks at what a Binding brings along but us, and it is stored on the pod with the node."""
    brought = {
        names.GANG_NAME_ANNOTATION: "g",
        names.GANG_SIZE_ANNOTATION: "1",
        names.ASSUMED_ANNOTATION: "no",
    }
    target = Target("ml", "p", "u", "n", {**brought, "example.com/note": "x"}, "")
    (patch,) = grant(target, {names.CHARGED_QUEUE_ANNOTATION: "q"}).patch
    assert patch.value == {"example.com/note": "x", names.CHARGED_QUEUE_ANNOTATION: "q"}
