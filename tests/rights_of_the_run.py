"""Whether the chart's roles give both processes what they use in a whole test run, and nothing more.

Every installation that ends tells what its processes were given and what they asked for; test processes side by side tell
the one that started them. What was asked for without a right fails any run. A right that nobody used fails a run of all tests
in which none failed: who runs a part of them is told nothing about the rest. Nor is who has no definitions of Volcano's, for some
rights are about those; other tests that are skipped for what a machine lacks use no rights of their own.
"""

import os
from typing import Any, Final

import pytest

from hack.install import Installation
from tests.rights import HERE, Right, Usage

_TOLD: Final = "cardquota_rights"
_NARROWING: Final = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "collectonly")
"""Options of pytest that leave tests out."""
_NEEDED: Final = "VOLCANO_CRDS"
HELD_BACK: Final = {
    Right(
        "cardquota-controller", "create", "secrets", HERE
    ): "a Secret that somebody deleted: tests/apiserver/test_trust.py"
}
"""What is asked for and not granted on purpose: the right to create Secrets cannot be limited to a name."""
_NODE: Final = "tests/rights_of_the_run.py::test_rights_of_the_run"


class RightsOfTheRun:
    """What was used so far, here and by those that have told it; `part` says why this is not all there is to see."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.usage = Usage()
        self.part = _narrowed(config)

    def take(self, installation: Installation) -> None:
        """An installation has ended."""
        self.usage.add(Usage.of(installation))

    def pytest_deselected(self) -> None:
        self.part = self.part or "tests were left out"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.part = self.part or f"{report.nodeid} failed"

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.part = self.part or f"{report.nodeid} failed"

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Another test process has ended; one that crashed has told nothing."""
        told = getattr(node, "workeroutput", {}).get(_TOLD)
        if told is None:
            self.part = self.part or f"a test process was lost: {error}"
            return
        self.usage.add(Usage.unpacked(told["usage"]))
        self.part = self.part or told["part"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_TOLD] = {"usage": self.usage.packed(), "part": self.part}
            return
        problems = self.problems()
        if problems:
            _fail(session, "\n".join(problems))

    def problems(self) -> list[str]:
        """One paragraph for each of both ways in which roles and use can differ."""
        found = _listed("asked for and not granted", self.usage.beyond - HELD_BACK.keys())
        if not self.part:
            found += _listed("granted and not used by any test", self.usage.unused)
        return found


def watch(config: pytest.Config) -> None:
    """To be called when pytest is configured."""
    rights = RightsOfTheRun(config)
    Installation.on_end = rights.take
    config.pluginmanager.register(rights, "rights of the run")


def _narrowed(config: pytest.Config) -> str:
    """Why what was asked to run is not everything; '' if it is."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return "not all tests were asked for"
    if not os.environ.get(_NEEDED):
        return f"{_NEEDED} is not set"
    given = [name for name in _NARROWING if config.getoption(name, None)]
    return f"narrowed by {', '.join(given)}" if given else ""


def _listed(what: str, rights: set[Right]) -> list[str]:
    return [f"{what}:\n" + "\n".join(f"  {right}" for right in sorted(rights))] if rights else []


def _fail(session: pytest.Session, text: str) -> None:
    """As a test that failed, so that it counts in the summary line."""
    report = pytest.TestReport(
        nodeid=_NODE,
        location=(__file__, None, _NODE),
        keywords={},
        outcome="failed",
        longrepr=text,
        when="call",
    )
    session.config.hook.pytest_runtest_logreport(report=report)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
