"""What the command says in the end, and with which status it exits."""

from pathlib import Path

import pytest

from tests.chaos.__main__ import report
from tests.chaos.checker import Verdict
from tests.chaos.checker.terms import Violation
from tests.chaos.run import written

RESTED = {"at rest: judged": 1}
BROKEN = Violation(at=1.0, rule="quota", about="q", text="four of three", entries=(7,))


@pytest.mark.parametrize(
    ("verdict", "status", "last"),
    [
        (Verdict((), RESTED), 0, "no violation"),
        (Verdict((BROKEN,), RESTED), 1, str(BROKEN)),
        (
            Verdict((), {"at rest: judged": 0}, "somebody wrote"),
            1,
            "nothing was judged at rest: somebody wrote",
        ),
    ],
    ids=["whole", "broken", "never at rest"],
)
def test_only_a_log_that_was_judged_at_rest_without_violation_is_a_success(
    verdict: Verdict, status: int, last: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(verdict, {"fault: kill": 0}) == status
    told = capsys.readouterr().out.splitlines()
    assert f"{0:8} fault: kill" in told, "what was not covered is told as well"
    assert last in told[-1]


def test_what_is_written_while_a_log_is_judged_is_not_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    log.write_bytes(b"1\n2\nhal")
    read = list[bytes]()
    with log.open("rb") as lines, log.open("ab") as writer:
        for line in written(lines):
            read.append(line)
            writer.write(b"more of it\n")
            writer.flush()
    assert read == [b"1\n", b"2\n", b"hal"]
