"""Compact frozen views of the Kubernetes objects that decisions look at.

Caches keep these instead of JSON: a hundred thousand pods fit into some hundred megabytes and a garbage
collection stays short. Projection is tolerant: what has the wrong type is read as absent, because a stored
object that cannot be read completely must still be counted as far as it can. Admission judges shapes strictly.
"""

from core.objects.claim import Claim, ClaimTemplate
from core.objects.device_class import DeviceClass
from core.objects.group import Gang, Group
from core.objects.job import Job
from core.objects.namespace import Namespace
from core.objects.node import Node
from core.objects.owner import Owner
from core.objects.pod import ContainerShare, Pod
from core.objects.queue import Queue

__all__ = [
    "Claim",
    "ClaimTemplate",
    "ContainerShare",
    "DeviceClass",
    "Gang",
    "Group",
    "Job",
    "Namespace",
    "Node",
    "Owner",
    "Pod",
    "Queue",
]
