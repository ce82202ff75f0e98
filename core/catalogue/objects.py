"""Why an object is refused, or warned about."""

from typing import Final

from core import reasons
from core.catalogue.reason import Reason

ROWS: Final = (
    Reason(reasons.OBJECT_MALFORMED, "a field has the wrong type", "correct the field that the path names"),
    Reason(
        reasons.MANIFEST_MALFORMED,
        "a manifest is no YAML or JSON, names a key twice, or holds something that is no Kubernetes object",
        "correct the line that is named",
    ),
    Reason(
        reasons.CARD_NAME_MALFORMED,
        "the card name breaks the grammar",
        "write names as `cardquota cards` shows them, joined by | without blanks",
    ),
    Reason(
        reasons.AFFINITY_TOO_LARGE,
        "the required node affinity of a pod that waits at the gate has more than 2,000 expressions",
        "label the nodes that are meant, and select that label",
    ),
    Reason(
        reasons.TOO_MANY_TEMPLATES,
        "one object has more than 500 new or changed pod templates, or more than 1,000 in all",
        "make several objects of it",
    ),
    Reason(
        reasons.OBJECT_TOO_LARGE,
        "a pod has more than 10,000 containers, amounts, claims, gates and owners, or all new or changed templates of a workload more than 20,000 (a container counts as five); or a queue lists more than 5,000 resources or DeviceClasses",
        "ask for less in one object",
    ),
    Reason(
        reasons.CARD_REQUEST_MALFORMED,
        "the card request of the job cannot be read",
        'write a JSON object of whole numbers, such as {"NVIDIA-H200": 8}',
    ),
    Reason(
        reasons.CARD_RESOURCES_DIFFER,
        "the alternatives of the card name need different resources",
        "name only alternatives that are served by one resource",
    ),
    Reason(
        reasons.CARD_RESOURCE_MISSING,
        "the pod does not ask for the card's resource",
        "add the resource to the limits",
    ),
    Reason(
        reasons.CARD_UNKNOWN, "no node carries the card now", "check the spelling against `cardquota cards`"
    ),
    Reason(
        reasons.CARD_NAME_MISSING,
        "the pod asks for a card resource without naming a card, so no card quota counts it",
        "add the annotation volcano.sh/card.name to the pod template",
    ),
    Reason(
        reasons.KEY_UNREAD,
        "a key of a manifest is read by nobody where it stands",
        "write it as the message says, and where it is read",
    ),
    Reason(reasons.CARD_NAME_MISSPELT, "volcano.sh/card.card is not read", "write volcano.sh/card.name"),
    Reason(
        reasons.DEVICE_QUOTA_CONTRADICTORY,
        "two parts of the queue's device quota contradict each other",
        "write the same limits wherever a DeviceClass is limited, and guarantee, deserved, capability in rising order",
    ),
    Reason(
        reasons.DEVICE_QUOTA_INERT,
        "a part of the device quota is stored and not enforced",
        "set spec.dra.capability to limit devices",
    ),
    Reason(
        reasons.DEVICE_QUOTA_ABOVE_PARENT,
        "a queue above has a smaller limit, which holds for this queue too",
        "lower the limit, or raise that of the queue above",
    ),
    Reason(
        reasons.CARD_QUOTA_ABOVE_PARENT,
        "queues are promised more cards together than the queue above them has",
        "nothing where cards are oversold on purpose; else lower a quota, or raise that of the queue above",
    ),
    Reason(
        reasons.CARD_QUOTA_INERT,
        "a card quota does not hold for the queues below its queue, as cards.hierarchy is off",
        "set cards.hierarchy, or give each queue below a quota of its own",
    ),
    Reason(
        reasons.CAPABILITY_BELOW_QUOTA,
        "spec.capability has less of a card's resource than the card quota has cards, and Volcano's own quota holds as well",
        "leave the card's resource out of spec.capability, or raise it to the cards of the quota",
    ),
    Reason(
        reasons.DEVICE_QUOTA_PRUNED,
        "the API server dropped spec.dra, since its definition of Queue does not have the field",
        "put the same JSON into the annotation volcano.sh/dra.quota, or set dra.queueCRD to extend and apply again",
    ),
    Reason(
        reasons.DEVICE_CLASS_UNKNOWN,
        "the cluster has no DeviceClass of that name now",
        "check the spelling against kubectl get deviceclasses",
    ),
    Reason(
        reasons.DEVICE_CLASS_CLOSED,
        "a count of 0 lets no pod of the queue use the DeviceClass",
        "leave the DeviceClass out to set no limit",
    ),
    Reason(
        reasons.CARD_REQUEST_DIFFERS,
        "the card request of the job is not what its tasks add up to",
        "declare replicas times cards for each card name, or leave the request out",
    ),
    Reason(
        reasons.BEYOND_QUOTA,
        "more cards are asked for than the whole quota of the queue",
        "ask for less, name another queue, or raise the queue's card quota",
    ),
    Reason(
        reasons.BEYOND_NODES,
        "one pod asks for more cards than any node has",
        "ask for at most as many in one pod as a node has, in more pods if need be, or add a larger node",
    ),
    Reason(
        reasons.QUEUE_NAME_UNREAD,
        "a task of a Volcano Job names another queue than the job",
        "name the queue in spec.queue of the job",
    ),
    Reason(
        reasons.QUOTA_BEYOND_CLUSTER,
        "the quotas of all queues add up to more cards than the nodes have",
        "nothing where cards are oversold on purpose; else lower a quota",
    ),
    Reason(
        reasons.QUEUE_IN_USE,
        "a queue is deleted of which cards, shares or devices are in use",
        "close the queue and let its pods end first, or create it again",
    ),
    Reason(
        reasons.QUOTA_BELOW_USE,
        "a quota is lowered below what is in use",
        "wait for pods to end, or delete some; nothing is evicted",
    ),
    Reason(
        reasons.GANG_UNREAD,
        "an annotation that names a gang, or its size, is read by nobody: the other one is missing, a PodGroup says who starts together, or the pod is not held; or the gang stands in spec.schedulingGroup, which does not count there",
        "give both cardquota.io/gang-name and cardquota.io/gang-size to pods that ask for cards, or leave both out where there is a PodGroup",
    ),
    Reason(
        reasons.GANG_NEVER_COMPLETE,
        "the size of a gang is more than the pods that its workload makes, so it never starts",
        "have no more pods start together (cardquota.io/gang-size, minAvailable of a Volcano Job) than one replica makes, see docs/workloads.md, or make more pods",
    ),
    Reason(
        reasons.NODE_NAME_PRESET,
        "spec.nodeName is set at creation",
        "leave spec.nodeName out, use node affinity",
    ),
    Reason(reasons.RECORD_PROTECTED, "a record of the controller was set or edited", "leave the record out"),
    Reason(
        reasons.GATE_PROTECTED,
        "only the controller lifts the quota gate",
        "free quota, or raise the queue's quota",
    ),
    Reason(
        reasons.FIELD_FIXED,
        "the field is fixed once the quota gate is gone",
        "delete the pod and create it anew",
    ),
    Reason(
        reasons.MGPU_QUANTITY,
        "an mGPU quantity is not a whole number above 0",
        "write a whole number above 0",
    ),
    Reason(reasons.MGPU_LIMIT_DIFFERS, "an mGPU request differs from its limit", "set the limit only"),
    Reason(
        reasons.MGPU_INIT_CONTAINER,
        "an init container asks for mGPU",
        "move the mGPU work to a container of spec.containers",
    ),
    Reason(reasons.MGPU_CONTAINER_NAME, "the container's name is too long", "use at most 43 characters"),
    Reason(reasons.MGPU_CORE, "the mGPU core share is not possible", "use 1 to 99, or a multiple of 100"),
    Reason(
        reasons.MGPU_MEMORY, "the mGPU memory does not go with the core share", "correct mgpu-memory (MiB)"
    ),
    Reason(
        reasons.MGPU_CARD_COUNTS,
        "container-multiple-gpu does not go with the containers",
        "write one whole number per container of spec.containers, in their order",
    ),
    Reason(
        reasons.MGPU_POLICY,
        "the compute policy is unknown or does not go with several cards",
        "correct the policy",
    ),
    Reason(
        reasons.CROSS_QUOTA_MALFORMED,
        "a CrossQuota annotation of a node cannot be read",
        "write an amount such as 32 or 64Gi, or a percentage above 0 and at most 100",
    ),
    Reason(
        reasons.CROSS_QUOTA_UNUSED,
        "a CrossQuota annotation of a node has no effect",
        "name a resource of crossQuota.quotaResources, in one of the two forms",
    ),
    Reason(
        reasons.CROSS_QUOTA_STRATEGY,
        "the CrossQuota scoring strategy is unknown",
        "write most-allocated or least-allocated",
    ),
)
