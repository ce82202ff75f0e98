"""The fixtures of the tests here that attack a real control plane; all others need none."""

from tests.apiserver.conftest import cluster, namespace, nobody_ended_by_itself

__all__ = ["cluster", "namespace", "nobody_ended_by_itself"]
