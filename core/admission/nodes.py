"""Nodes: a CrossQuota limit that cannot be read is refused where it is written.

Only what is new or changed is looked at. A kubelet writes its node with every heartbeat and must never be kept from it by
what somebody else has written there before.
"""

from core.admission import shapes
from core.admission.request import AdmissionRequest, Context
from core.crossquota.quota import node_findings
from core.objects import raw as read
from core.violations import Findings


def judge(request: AdmissionRequest, context: Context, found: Findings) -> None:
    """The limits in the annotations of a new node, and those that an update brings."""
    settings, malformed = context.settings, shapes.annotated(request.object)
    found.violations += malformed
    if settings.features.cross_quota and not malformed:
        now = read.texts(request.object, "metadata", "annotations")
        was = read.texts(request.old_object, "metadata", "annotations")
        found += node_findings(now, was, settings.cross_quota.quota_resources)
