"""State files for the commands that look at a cluster."""

NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: %s
  labels: {nvidia.com/gpu.product: NVIDIA-H200, nvidia.com/gpu.count: "8", nvidia.com/gpu.memory: "143771"}
status:
  allocatable: {nvidia.com/gpu: "%d"}
---
"""
SHARE_NODE = """\
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {vke.node.gpu.schedule: mgpu}}
status:
  allocatable: {vke.volcengine.com/mgpu-core: "%d", vke.volcengine.com/mgpu-memory: "%d"}
  capacity: {vke.volcengine.com/mgpu-core: "%d", vke.volcengine.com/mgpu-memory: "%d"}
---
"""
QUEUE_OF_FOUR = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: %s, annotations: {volcano.sh/card.quota: '{"NVIDIA-H200": 4}'}}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: %s
  annotations: {volcano.sh/card.quota: '%s'}
---
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: %s
  annotations: {volcano.sh/card.name: "%s", scheduling.volcano.sh/queue-name: %s}
spec:
  %s
  containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]
---
"""
SHARE_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  schedulingGates: [{name: cardquota.io/quota}]
  containers: [{name: c, resources: {limits: {vke.volcengine.com/mgpu-core: %d, vke.volcengine.com/mgpu-memory: %d}}}]
---
"""
CPU_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers: [{name: c}]
---
"""
BARE = '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}'
"""A cluster before anything is in it."""
NO_OBJECTS = '{"apiVersion": "v1", "kind": "List", "items": []}'
GATED = "schedulingGates: [{name: cardquota.io/quota}]"
