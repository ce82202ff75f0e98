"""Which objects of a collection a list or a watch is about."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Scope:
    """Those of a namespace, of a label selector, of a field selector; what is None does not narrow."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None

    @property
    def query(self) -> dict[str, str]:
        """The selectors, as a request names them; the namespace is part of its path."""
        given = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: value for key, value in given.items() if value}

    @classmethod
    def named(cls, name: str, namespace: str | None = None) -> "Scope":
        """The one object of this name."""
        return cls(namespace, field_selector=f"metadata.name={name}")


ALL: Final = Scope()
