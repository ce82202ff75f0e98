"""Prometheus is taken from where it is, else from Debian's package; where that cannot be had, one line says so and nothing fails."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from hack.toolchain import prometheus
from tests.unit.hack.conftest import executable

# $CALLS gets each command line; `download` fails while $FAILS names it, or until there was an `update` if it is `lists`.
_APT = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *update) [ "$FAILS" = update ] && { echo "E: no network" >&2; exit 100; }; touch "$CALLS.updated"; exit 0;;
  *download*)
    if [ -n "$FAILS" ] && [ ! -e "$CALLS.updated" ]; then
      echo "noise" >&2; echo "E: Unable to locate package prometheus" >&2; exit 100
    fi
    : > prometheus_1_any.deb;;
esac
"""
_DPKG = """#!/bin/sh
[ "$1" = -x ] || exit 2
mkdir -p "$3/usr/bin"
for name in $PACKED; do printf '#!/bin/sh\\n' > "$3/usr/bin/$name"; chmod +x "$3/usr/bin/$name"; done
"""


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment with stand-ins for Debian's tools, and nothing of Prometheus."""
    executable(tmp_path / "path" / "apt-get", _APT)
    executable(tmp_path / "path" / "dpkg-deb", _DPKG)
    for name in ("touch", "mkdir", "chmod"):
        (tmp_path / "path" / name).symlink_to(f"/bin/{name}")
    return {
        "PATH": str(tmp_path / "path"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "CALLS": str(tmp_path / "calls"),
        "PACKED": "prometheus promtool",
        "FAILS": "",
    }


def fetched(machine: Mapping[str, str]) -> tuple[bool, list[str]]:
    said: list[str] = []
    return prometheus.fetch(said.append, machine), said


def calls(machine: Mapping[str, str]) -> list[str]:
    file = Path(machine["CALLS"])
    return [line.split()[-1] for line in file.read_text().splitlines()] if file.exists() else []


def test_the_package_is_unpacked_once_and_then_found(machine: dict[str, str]) -> None:
    assert prometheus.find("promtool", machine) is None
    done, said = fetched(machine)
    assert done
    assert len(said) == 1
    for name in prometheus.PROGRAMS:
        assert prometheus.find(name, machine) == Path(machine["XDG_CACHE_HOME"], "cardquota/prometheus", name)
    assert fetched(machine) == (True, [])
    assert len([line for line in Path(machine["CALLS"]).read_text().splitlines() if "download" in line]) == 1


def test_what_the_user_names_or_has_comes_first(machine: dict[str, str], tmp_path: Path) -> None:
    fetched(machine)
    executable(tmp_path / "path" / "promtool")
    assert prometheus.find("promtool", machine) == tmp_path / "path" / "promtool"
    own = executable(tmp_path / "own" / "promtool")
    assert prometheus.find("promtool", {**machine, "PROMETHEUS_ASSETS": str(own.parent)}) == own


def test_lists_of_packages_are_fetched_by_root_alone(
    machine: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine["FAILS"] = "lists"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    done, (said,) = fetched(machine)
    assert not done
    assert said.endswith("skipped: apt-get failed (100): E: Unable to locate package prometheus")
    assert "update" not in calls(machine)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert fetched(machine)[0]
    assert "update" in calls(machine)


def test_no_network_no_debian_and_another_package_end_in_one_line(
    machine: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    machine["FAILS"] = "update"
    done, said = fetched(machine)
    assert (done, len(said)) == (False, 1)
    assert said[0].endswith("E: no network")
    done, said = fetched({**machine, "FAILS": "", "PACKED": "prometheus"})
    assert (done, len(said)) == (False, 1)
    assert said[0].endswith("prometheus_1_any.deb has no promtool")
    (tmp_path / "path" / "apt-get").unlink()
    done, said = fetched(machine)
    assert (done, len(said)) == (False, 1)
    assert "this system has no apt-get" in said[0]
    assert [*Path(machine["XDG_CACHE_HOME"], "cardquota").iterdir()] == [], "nothing is left of what failed"
