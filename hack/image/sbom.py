"""Prints what an environment holds as a CycloneDX document: `python sbom.py requirements.lock`.

Run by the environment's own Python. Standard library only: it runs where nothing but the product is installed. What is listed
is what is installed; where that is not what the lock file says, it fails.
"""

import json
import re
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

PRODUCT = "cardquota"
TOOLS = frozenset({"pip", "setuptools"})
"""They are taken out in the end."""

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)", re.MULTILINE)
_LICENCE = "License :: OSI Approved :: "


def pins(lock: str) -> dict[str, str]:
    """Return the version of every distribution that a lock file names, by canonical name."""
    return {canonical(found["name"]): found["version"] for found in _PIN.finditer(lock)}


def canonical(name: str) -> str:
    """Return the one spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(meta: metadata.PackageMetadata) -> str:
    """Return the licence as the distribution itself states it: the expression, else the classifier, else the field's line."""
    given = meta.get_all("License-Expression") or []
    given += [
        each.removeprefix(_LICENCE) for each in meta.get_all("Classifier") or [] if each.startswith(_LICENCE)
    ]
    given += [each for each in meta.get_all("License") or [] if each and "\n" not in each]
    return str(given[0]) if given else ""


def document(installed: dict[str, metadata.Distribution], locked: dict[str, str]) -> dict[str, Any]:
    """Return the document. Raises ValueError where installed and locked differ."""
    found = {name: item for name, item in installed.items() if name not in TOOLS and name != PRODUCT}
    wrong = [
        f"{name} {item.version} is installed, {locked.get(name, 'none')} is locked"
        for name, item in sorted(found.items())
        if locked.get(name) != item.version
    ]
    if wrong:
        raise ValueError("; ".join(wrong))
    product = installed[PRODUCT]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component("application", PRODUCT, product)},
        "components": [_component("library", name, item) for name, item in sorted(found.items())],
    }


def _component(kind: str, name: str, item: metadata.Distribution) -> dict[str, Any]:
    purl = f"pkg:pypi/{name}@{item.version}"
    stated = licence(item.metadata)
    return {
        "type": kind,
        "bom-ref": purl,
        "name": name,
        "version": item.version,
        "purl": purl,
        **({"licenses": [{"license": {"name": stated}}]} if stated else {}),
    }


def main(lock: str) -> int:
    """Print the document for the Python that runs this; an exit status."""
    installed = {canonical(item.name): item for item in metadata.distributions()}
    try:
        found = document(installed, pins(Path(lock).read_text("utf-8")))
    except ValueError as error:
        print(f"error: {error}; `make lock` writes it anew", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
