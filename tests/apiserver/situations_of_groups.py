"""What becomes of parts of cards, of gangs, of workloads and of claims."""

from core import names
from tests.apiserver.cluster import Object, unique
from tests.apiserver.devices import Devices, claiming
from tests.apiserver.manifests import deployment, pod, volcano_job
from tests.apiserver.scene import Scene, Table

TABLE = Table()
situation = TABLE.situation

# -- parts of cards -------------------------------------------------------------------------------------------------


@situation("runs")
def a_slice_of_a_card(s: Scene) -> list[Object]:
    card = f"{s.cut()}/mig-1g.10gb-mixed"
    return [part(s, card, "nvidia.com/mig-1g.10gb", 2, s.queue({card: 3}))]


@situation("waits")
def more_slices_than_the_quota(s: Scene) -> list[Object]:
    card = f"{s.cut()}/mig-1g.10gb-mixed"
    return [part(s, card, "nvidia.com/mig-1g.10gb", 2, s.queue({card: 1}))]


@situation("runs")
def an_eighth_of_a_card(s: Scene) -> list[Object]:
    card = f"{s.cut()}/mps-80g*1/8"
    return [part(s, card, "nvidia.com/gpu.shared", 1, s.queue({card: 3}))]


def part(s: Scene, card: str, resource: str, count: int, q: str) -> Object:
    annotations = {names.CARD_NAME_ANNOTATION: card, names.QUEUE_NAME_ANNOTATION: q}
    return pod(unique(s.prefix), limits={resource: count}, annotations=annotations)


@situation("runs")
def a_share_of_a_card(s: Scene) -> list[Object]:
    return [s.share(40, 3000, nodeSelector=s.share_node())]


@situation("waits")
def a_share_with_more_memory_than_a_card(s: Scene) -> list[Object]:
    return [s.share(40, 9000, nodeSelector=s.share_node())]


@situation("waits")
def two_shares_for_one_card(s: Scene) -> list[Object]:
    selector = s.share_node()
    return [s.share(60, 3000, nodeSelector=selector), s.share(60, 3000, nodeSelector=selector)]


@situation("refused")
def a_share_of_more_than_a_card(s: Scene) -> list[Object]:
    return [s.share(120, 3000, nodeSelector=s.share_node())]


# -- gangs and workloads --------------------------------------------------------------------------------------------


@situation("runs")
def a_gang_that_fits(s: Scene) -> list[Object]:
    card = s.card(8)
    return s.gang(card, s.queue({card: 4}), 4, 4)


@situation("waits")
def a_gang_with_quota_for_all_but_one(s: Scene) -> list[Object]:
    card = s.card(8)
    return s.gang(card, s.queue({card: 3}), 4, 4)


@situation("waits")
def a_gang_without_its_last_member(s: Scene) -> list[Object]:
    card = s.card(8)
    return s.gang(card, s.queue({card: 8}), 3, 4)


@situation("waits")
def members_of_a_group_that_is_not_there(s: Scene) -> list[Object]:
    card = s.card(8)
    return s.gang(card, s.queue({card: 8}), 2, 2)[1:]


@situation("runs")
def a_deployment_that_fits(s: Scene) -> list[Object]:
    card = s.card(8)
    return [deployment(unique(s.prefix), s.pod(card, s.queue({card: 3})), 3)]


@situation("waits")
def a_deployment_that_fits_in_part(s: Scene) -> list[Object]:
    card = s.card(8)
    return [deployment(unique(s.prefix), s.pod(card, s.queue({card: 2})), 3)]


@situation("runs")
def a_job_of_three_at_once(s: Scene) -> list[Object]:
    card = s.card(8)
    return [job(s, card, s.queue({card: 3}))]


@situation("waits")
def a_job_that_fits_in_part(s: Scene) -> list[Object]:
    card = s.card(8)
    return [job(s, card, s.queue({card: 2}))]


def job(s: Scene, card: str, q: str) -> Object:
    """A Job of Kubernetes: three pods at once."""
    made = s.pod(card, q, restartPolicy="Never")
    template = {"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": unique(s.prefix)},
        "spec": {"parallelism": 3, "completions": 3, "template": template},
    }


@situation("runs", volcano=True)
def a_job_of_volcano_that_fits(s: Scene) -> list[Object]:
    return [volcano(s, 4)]


@situation("waits", volcano=True)
def a_job_of_volcano_that_is_too_large(s: Scene) -> list[Object]:
    return [volcano(s, 3)]


def volcano(s: Scene, quota: int) -> Object:
    """A Job of Volcano, all four pods of which start together."""
    card = s.card(8)
    q = s.queue({card: quota})
    return volcano_job(unique(s.prefix), q, {"w": (s.pod(card, q), 4)}, minimum=4)


@situation("runs")
def one_on_each_node_that_is_meant(s: Scene) -> list[Object]:
    """There are many other nodes."""
    card = s.card(1, 1)
    made = s.pod(card, s.queue({card: 2}), nodeSelector={"nvidia.com/gpu.product": card})
    return [daemon_set(s, made)]


@situation("waits")
def one_on_each_node_with_quota_for_one(s: Scene) -> list[Object]:
    card = s.card(1, 1)
    made = s.pod(card, s.queue({card: 1}), nodeSelector={"nvidia.com/gpu.product": card})
    return [daemon_set(s, made)]


def daemon_set(s: Scene, template: Object) -> Object:
    made = deployment(unique(s.prefix), template, 1)
    made["spec"].pop("replicas")
    return {**made, "kind": "DaemonSet"}


# -- devices --------------------------------------------------------------------------------------------------------


@situation("waits")
def a_claim_beyond_the_device_quota(s: Scene) -> list[Object]:
    devices = Devices(s.cluster)
    s.plain_node()
    q, claim = devices.queue(1), unique(s.prefix)
    devices.claim(claim, 2)
    return [claiming(unique(s.prefix), q, claim=claim)]


@situation("waits")
def a_claim_that_is_not_there(s: Scene) -> list[Object]:
    return [claiming(unique(s.prefix), Devices(s.cluster).queue(1), claim="nowhere")]


@situation("runs")
def nothing_of_ours(s: Scene) -> list[Object]:
    s.plain_node()
    return [pod(unique(s.prefix), limits={"cpu": 1})]
