"""A control plane for the tests of one module, or of one process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hack.controlplane import ControlPlane


@contextmanager
def own_plane(request: pytest.FixtureRequest, **options: Any) -> Iterator[ControlPlane]:
    """One started with these options of ControlPlane; its logs are kept when a test has failed by the end."""
    with ControlPlane(**options) as plane:
        yield plane
        if request.session.testsfailed:
            plane.keep_logs()
