"""The YAML that the pages of the documentation show."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

_ROOT: Final = Path(__file__).parents[2]
PAGES: Final = (
    *(page for page in sorted((_ROOT / "docs").rglob("*.md")) if page.parent.name != "zh"),
    _ROOT / "README.md",
    _ROOT / "charts" / "cardquota" / "README.md",
)
"""Those in Chinese show the same: tests/unit/docs/test_chinese.py sees to that."""


def shown() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every document of every block of YAML, with the page and the line where its block begins."""
    for page in PAGES:
        block: list[str] | None = None
        begun = 0
        for number, line in enumerate(page.read_text("utf-8").splitlines(), start=1):
            if line == "```yaml":
                block, begun = [], number
            elif line == "```" and block is not None:
                for document in yaml.safe_load_all("\n".join(block)):
                    yield f"{page.name}:{begun}", document
                block = None
            elif block is not None:
                block.append(line)


def is_object(document: dict[str, Any]) -> bool:
    """Whether it is to be given to an API server."""
    return {"apiVersion", "kind"} <= document.keys()
