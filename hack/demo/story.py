"""The story itself, section by section. Whatever it claims is checked on the way."""

import json

import yaml

from hack.demo.shell import DemoError, Shell

_QUEUE = "research"
_NOTEBOOKS = ("notebook-a", "notebook-b", "notebook-c")
_PODS = "/api/v1/namespaces/default/pods"
_INDEX = "vke.volcengine.com/gpu-index-container-main"
_INDEX_COLUMNS = (
    "-o custom-columns="
    r"'NAME:.metadata.name,NODE:.spec.nodeName,CARD:.metadata.annotations.vke\.volcengine\.com/gpu-index-container-main'"
)


def tell(shell: Shell) -> None:
    """Tell all of it. Raises `DemoError` at the first thing that is not as told."""
    the_cluster(shell)
    mistakes_are_refused(shell)
    the_queue_has_three_cards(shell)
    fractions_share_a_card(shell)
    the_queue_shows_its_use(shell)


def the_cluster(shell: Shell) -> None:
    """Cards are found by node labels."""
    shell.terminal.heading("The cluster")
    shell.terminal.say(
        "Four nodes. These are the cards that quotas and pods can name; mGPU fractions are asked for as resources."
    )
    stock = {row[0]: row[2] for row in _rows(shell.run("cardquota cards"))}
    wanted = {
        "NVIDIA-A100-80GB": "5",
        "NVIDIA-A100-80GB/mig-1g.10gb-mixed": "3",
        "NVIDIA-A100-80GB/mps-80g*1/8": "16",
        "NVIDIA-H200": "16",
    }
    if stock != wanted:
        raise DemoError(f"the cards of the nodes are {wanted}")


def mistakes_are_refused(shell: Shell) -> None:
    """Four objects that could never work do not get past `kubectl apply`."""
    shell.terminal.heading("1. What cannot work is refused at once")
    shell.terminal.say("A fraction of a card is 1 to 99 hundredths; more than a card comes in whole cards:")
    _refused(shell, "mgpu-core-120.yaml", "pods/notebook", "mgpu-core]", "multiple of 100")
    shell.terminal.say("A quota counts cards in numbers, not in texts:")
    _refused(
        shell, "quota-in-quotes.yaml", f"queues/{_QUEUE}", "card.quota][NVIDIA-H200]", '"3"', "without quotes"
    )
    shell.terminal.say("A choice of cards is fine, but both must come as the same resource:")
    _refused(shell, "two-resources.yaml", "pods/either", "nvidia.com/gpu.shared", "same resource")
    shell.terminal.say(
        "A Deployment is refused for its template, before a ReplicaSet fails on it unseen. All mistakes are told at once:"
    )
    _refused(
        shell,
        "bad-template.yaml",
        "deployments/serve",
        "spec.template.metadata.annotations[volcano.sh/card.name]",
        "spec.template.spec.containers[1]",
        "mgpu-memory",
    )


def the_queue_has_three_cards(shell: Shell) -> None:
    """Five pods, quota for three: two wait, and the next one starts when a card comes back."""
    shell.terminal.heading("2. A queue with three cards, and five pods")
    shell.file("queue.yaml")
    shell.run("kubectl create -f queue.yaml")
    shell.file("train.yaml", only_first=True)
    shell.run("kubectl apply -f train.yaml")
    before = {
        "train-1": "Running",
        "train-2": "Running",
        "train-3": "Running",
        "train-4": "SchedulingGated",
        "train-5": "SchedulingGated",
    }
    shell.until("three pods run and two are held", "kubectl get pods", lambda text: _statuses(text) == before)
    shell.terminal.say(
        "Both nodes have free cards, but the queue has not. The pods say so (in thousandths of a card, then in cards):"
    )
    shell.until(
        "an event says why train-5 waits",
        "kubectl events --for pod/train-5",
        lambda text: "InsufficientScalarQuota" in text and "<3000>" in text,
    )
    shell.terminal.say("One pod goes, and the next in line starts:")
    shell.run("kubectl delete pod train-1")
    after = {"train-2": "Running", "train-3": "Running", "train-4": "Running", "train-5": "SchedulingGated"}
    shell.until("train-4 runs", "kubectl get pods", lambda text: _statuses(text) == after)


def fractions_share_a_card(shell: Shell) -> None:
    """Two mGPU pods fit on one card, a third takes the other one."""
    shell.terminal.heading("3. Fractions of a card")
    shell.terminal.say("Three notebooks: two take 40 hundredths of a card, the third 70.")
    version = _version_of_pods(shell)
    shell.file("notebooks.yaml", only_first=True)
    shell.run("kubectl apply -f notebooks.yaml")
    shell.until(
        "all notebooks run",
        "kubectl get pods -l app=notebook",
        lambda text: _statuses(text) == dict.fromkeys(_NOTEBOOKS, "Running"),
    )
    shell.terminal.say("Which card of the node each of them got stands in an annotation:")
    rows = _rows(shell.run(f"kubectl get pods -l app=notebook {_INDEX_COLUMNS}"))
    cards = {row[0]: row[2] for row in rows}
    if not (
        cards["notebook-a"] == cards["notebook-b"] != cards["notebook-c"] and {*cards.values()} == {"0", "1"}
    ):
        raise DemoError(
            f"notebook-a and notebook-b should share one card and notebook-c have the other, but: {cards}"
        )
    _never_bound_without_cards(shell, version)


def the_queue_shows_its_use(shell: Shell) -> None:
    """The queue's status and the table of all queues agree."""
    shell.terminal.heading("4. What the queue uses")
    shell.until(
        "the queue's status shows three cards",
        f"kubectl get queue {_QUEUE} -o yaml",
        lambda text: yaml.safe_load(text).get("status", {}).get("allocated") == {"NVIDIA-H200": "3"},
    )
    rows = {row[2]: row[3:] for row in _rows(shell.run("cardquota queues")) if row[0] == _QUEUE}
    wanted = {
        "NVIDIA-H200": ["3", "3", "0", "1"],
        "vke.volcengine.com/mgpu-core": ["<none>", "150", "0", "0"],
        "vke.volcengine.com/mgpu-memory": ["<none>", "60000", "0", "0"],
    }
    if rows != wanted:
        raise DemoError(f"`cardquota queues` should show {wanted} for queue {_QUEUE}")


def _refused(shell: Shell, manifest: str, resource: str, *told: str) -> None:
    shell.file(manifest)
    message = shell.run(f"kubectl apply -f {manifest}", status=1)
    _expect(message, "admission webhook", *told)
    found = shell.quietly(f"kubectl get {resource}")
    if found.status == 0:
        raise DemoError(f"{resource} was refused, yet it is there:\n{found.output}")
    if "NotFound" not in found.output:
        raise DemoError(f"whether {resource} is there cannot be told:\n{found.output}")


def _version_of_pods(shell: Shell) -> str:
    """Where a watch has to begin to see all that happens from now on; `kubectl get -o json` drops it from lists."""
    pods = json.loads(_quietly(shell, f"kubectl get --raw '{_PODS}?limit=1'"))
    version: str = pods["metadata"]["resourceVersion"]
    return version


def _never_bound_without_cards(shell: Shell, version: str) -> None:
    """Read what a watcher since `version` has seen: whoever saw a node on a pod saw its card too."""
    query = f"watch=1&resourceVersion={version}&labelSelector=app%3Dnotebook&timeoutSeconds=2"
    lines = _quietly(shell, f"kubectl get --raw '{_PODS}?{query}'").splitlines()
    seen = [json.loads(line)["object"] for line in lines]
    bound = [pod for pod in seen if "nodeName" in pod["spec"]]
    unbound = [pod for pod in seen if "nodeName" not in pod["spec"]]
    # Without the states before the bind this would not be the history, and the claim would be empty.
    if not all({pod["metadata"]["name"] for pod in part} == set(_NOTEBOOKS) for part in (bound, unbound)):
        raise DemoError(
            f"a watcher should see each notebook without a node and then with one, but saw {seen}"
        )
    bare = [pod["metadata"]["name"] for pod in bound if _INDEX not in pod["metadata"]["annotations"]]
    if bare:
        raise DemoError(f"a watcher saw these pods with a node and without their card: {', '.join(bare)}")
    shell.terminal.checked(
        f"of the {len(seen)} states of these pods that a watcher saw, {len(bound)} have a node, and each of those"
        " has its card"
    )


def _statuses(table: str) -> dict[str, str]:
    """Pod -> STATUS, from the table that `kubectl get pods` prints."""
    return {row[0]: row[2] for row in _rows(table)}


def _rows(table: str) -> list[list[str]]:
    """The rows below the heading; what a command says of its sources on standard error is in the output too."""
    lines = [line for line in table.splitlines() if not line.startswith("note: ")]
    return [line.split() for line in lines[1:]]


def _quietly(shell: Shell, line: str) -> str:
    result = shell.quietly(line)
    if result.status != 0:
        raise DemoError(f"`{line}` failed:\n{result.output}")
    return result.output


def _expect(output: str, *parts: str) -> None:
    missing = [part for part in parts if part not in output]
    if missing:
        raise DemoError(f"the output above should contain {', '.join(map(repr, missing))}")
