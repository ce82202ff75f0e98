"""What an audit finds."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["pod", "sum"]


@dataclass(frozen=True, slots=True)
class Drift:
    """One thing in the books that is not as it should be; `subject` is a pod, or queue and key."""

    kind: Kind
    subject: str
    booked: str
    found: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.booked} in the books, {self.found} found"
