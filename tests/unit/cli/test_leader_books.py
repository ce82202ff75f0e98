"""The leader's books as an object of a dump: whom they come from, and why there are none."""

import argparse
from dataclasses import replace
from typing import Any

import pytest

from cli import cluster, inspection, leader_books, state
from cli.errors import UnavailableError
from cli.inspection import Inspection
from cli.state import State

OPTIONS = argparse.Namespace(kubeconfig=None, context=None)
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "cardquota",
        "namespace": "quota",
        "labels": {"app.kubernetes.io/name": "cardquota"},
    },
    "data": {"cardquota.yaml": "{}"},
}
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "cardquota", "namespace": "quota"},
    "spec": {"holderIdentity": "c-0_x"},
}
INSTALLED = state.build([SETTINGS, LEASE], "test")
PAGE = """\
# TYPE volcano_queue_card_allocated gauge
volcano_queue_card_allocated{queue_name="q",card="A"} 2.0
volcano_queue_card_allocated{queue_name="q",card="H200/mps-1g*1/8"} 0.5
# TYPE cardquota_ledger_drift gauge
cardquota_ledger_drift{kind="pod"} 1.0
"""
NO_TOKEN = "your kubeconfig shows no token"


def asked(
    monkeypatch: pytest.MonkeyPatch, found: Inspection | UnavailableError, there: State = INSTALLED
) -> tuple[dict[str, Any], str]:
    """The books where the cluster holds this installation and its leader shows that."""

    def books(_kubeconfig: object, _context: object, home: str, leader: str) -> Inspection:
        assert (home, leader) == (("quota", "c-0_x") if there is INSTALLED else ("cardquota-system", ""))
        if isinstance(found, UnavailableError):
            raise found
        return found

    monkeypatch.setattr(cluster, "installed", lambda _options: there)
    monkeypatch.setattr(inspection, "books", books)
    return leader_books.asked(OPTIONS)


def test_what_the_leader_answers_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {
        "leader": "c-0_x",
        "queues": {"q": {"allocated": {"A": "2"}, "waiting": {"A": "1"}}},
        "drift": 0,
    }
    assert asked(monkeypatch, Inspection(books=answer)) == (
        {
            "apiVersion": "cardquota.io/v1",
            "kind": "LeaderBooks",
            "metadata": {"name": "cardquota", "namespace": "quota"},
            "status": {"source": "answer", **answer},
        },
        "",
    )


def test_of_a_leader_that_cannot_be_asked_the_metrics_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    told, missing = asked(monkeypatch, Inspection(books_failure=NO_TOKEN, page=PAGE))
    assert (told["status"], missing) == (
        {
            "source": "metrics",
            "leader": "c-0_x",
            "queues": {"q": {"allocated": {"A": "2", "H200/mps-1g*1/8": "500m"}}},
            "drift": 1,
        },
        "",
    )


@pytest.mark.parametrize(
    ("found", "there", "why"),
    [
        (Inspection(), State(), "nothing is installed"),
        (Inspection(), replace(INSTALLED, unled="there is no Lease"), "nobody leads: there is no Lease"),
        (
            Inspection(books_failure=NO_TOKEN, page_failure="pods is forbidden"),
            INSTALLED,
            f"{NO_TOKEN}; its metrics: pods is forbidden",
        ),
        (
            Inspection(books_failure="services is forbidden", page_failure="no pod"),
            replace(State(), settings_hidden=True),
            "services is forbidden; its metrics: no pod",
        ),
        (UnavailableError("connection refused"), INSTALLED, "connection refused"),
        (Inspection(page="<html>"), INSTALLED, "the leader's metrics cannot be read: "),
    ],
)
def test_why_there_are_none(
    monkeypatch: pytest.MonkeyPatch, found: Inspection | UnavailableError, there: State, why: str
) -> None:
    told, missing = asked(monkeypatch, found, there)
    assert told == {}
    assert missing.startswith(why)


def test_books_that_nothing_can_be_held_against_are_as_right_as_the_leader_itself_finds_them() -> None:
    books = leader_books.LeaderBooks({("q", "A"): 2000}, drift=0)
    (verdict,) = leader_books.compared(books, None)
    assert verdict.result == "ok"
    assert verdict.text.startswith("1 figures agree with its own audit; the pods cannot be counted")
    assert [one.result for one in leader_books.compared(replace(books, drift=1), None)] == ["wrong"]
