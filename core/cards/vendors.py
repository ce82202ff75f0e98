"""The table by which cards are found: for each vendor the labels and resources of a node, as its own software writes them.

Facts alone stand here; what is made of them is in `core.cards.discovery`, and `docs/cards.md` is generated from it. In each row is
where it was looked up. Settings (`discovery`) add rows. A vendor without a row is found by labels named after its resource
(`vendor.generic`): that is how the documents have it, and how an administrator labels a node by hand.
"""

import re
from collections.abc import Sequence
from typing import Final

from core.cards import shares
from core.cards.vendor import Example, Vendor
from core.settings.model import DiscoveryRow

REPLICAS_LABEL: Final = "nvidia.com/gpu.replicas"
STRATEGY_LABEL: Final = "nvidia.com/gpu.sharing-strategy"
MIG_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"
TIME_SLICING: Final = "time-slicing"
MPS_SHARING: Final = "mps"
SHARED_SUFFIX: Final = "-SHARED"
"""What GPU feature discovery appends to the product of cards that are shared under the name of whole ones."""

UNCUT_PARTITION: Final = "spx_nps1"
"""An AMD card that is one partition: a whole card."""

NVIDIA: Final = Vendor(
    name="NVIDIA",
    products=("nvidia.com/gpu.product",),
    memories=("nvidia.com/gpu.memory",),
    counts=("nvidia.com/gpu.count",),
    memory_needed=True,
    any_resource=True,
    resources=(r"nvidia\.com/gpu",),
    shares=(shares.MPS, shares.MIG, shares.TIME_SLICE),
    written_by="device plugin and GPU feature discovery",
    sources=(
        "NVIDIA/k8s-device-plugin, docs/gpu-feature-discovery/README.md: product, count, memory; both MIG strategies",
        "NVIDIA/k8s-device-plugin, internal/lm/resource.go: replicas, and `-SHARED` behind the product unless the resource is renamed",
    ),
    examples=(
        Example(
            {
                "nvidia.com/gpu.product": "NVIDIA-H200",
                "nvidia.com/gpu.memory": "143771",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/gpu.sharing-strategy": "none",
                "nvidia.com/mig.strategy": "mixed",
            },
            {"nvidia.com/gpu": 7, "nvidia.com/mig-1g.18gb": 7},
            {
                "NVIDIA-H200": ("nvidia.com/gpu", 7),
                "NVIDIA-H200/mig-1g.18gb-mixed": ("nvidia.com/mig-1g.18gb", 7),
            },
        ),
        Example(
            {
                "nvidia.com/gpu.product": "NVIDIA-H200-SHARED",
                "nvidia.com/gpu.memory": "143771",
                "nvidia.com/gpu.count": "8",
                "nvidia.com/gpu.replicas": "4",
                "nvidia.com/gpu.sharing-strategy": "time-slicing",
            },
            {"nvidia.com/gpu": 32},
            {"NVIDIA-H200/ts-140g*1/4": ("nvidia.com/gpu", 32)},
        ),
        Example(
            {
                "nvidia.com/gpu.product": "NVIDIA-A100-80GB",
                "nvidia.com/gpu.memory": "81920",
                "nvidia.com/gpu.count": "4",
                "nvidia.com/gpu.replicas": "8",
                "nvidia.com/gpu.sharing-strategy": "mps",
            },
            {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 32},
            {"NVIDIA-A100-80GB/mps-80g*1/8": ("nvidia.com/gpu.shared", 32)},
        ),
        Example(
            {
                "nvidia.com/gpu.product": "A100-SXM4-40GB-MIG-1g.5gb",
                "nvidia.com/gpu.memory": "4864",
                "nvidia.com/gpu.count": "56",
                "nvidia.com/mig.strategy": "single",
            },
            {"nvidia.com/gpu": 56},
            {"A100-SXM4-40GB-MIG-1g.5gb": ("nvidia.com/gpu", 56)},
        ),
    ),
)

AMD: Final = Vendor(
    name="AMD",
    products=("amd.com/gpu.product-name",),
    memories=("amd.com/gpu.vram",),
    resources=(r"amd\.com/gpu", rf"amd\.com/{UNCUT_PARTITION}"),
    partitions=("amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition"),
    shares=(shares.AMD_PARTITION,),
    written_by="device plugin and node labeller",
    sources=(
        "ROCm/k8s-device-plugin, docs/user-guide/installation.md: labels of a node with MI300X",
        "ROCm/k8s-device-plugin, docs/user-guide/configuration.md: resources by naming strategy, values of the partition's label",
        "ROCm/k8s-device-plugin, cmd/k8s-node-labeller: the partition's label with and without `gpu.`, by version",
    ),
    examples=(
        Example(
            {
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/gpu.vram": "192G",
                "amd.com/gpu.device-id": "74a1",
                "amd.com/gpu.cu-count": "304",
                "amd.com/gpu.simd-count": "1216",
                "amd.com/gpu.family": "AI",
            },
            {"amd.com/gpu": 8},
            {"AMD_Instinct_MI300X_OAM": ("amd.com/gpu", 8)},
        ),
        Example(
            {
                "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                "amd.com/gpu.vram": "192G",
                "amd.com/gpu.compute-memory-partition": "cpx_nps4",
            },
            {"amd.com/gpu": 64},
            {"AMD_Instinct_MI300X_OAM/cpx_nps4": ("amd.com/gpu", 64)},
        ),
        Example(
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"},
            {"amd.com/spx_nps1": 5, "amd.com/cpx_nps1": 24},
            {
                "AMD_Instinct_MI300X_OAM": ("amd.com/spx_nps1", 5),
                "AMD_Instinct_MI300X_OAM/cpx_nps1": ("amd.com/cpx_nps1", 24),
            },
        ),
    ),
)

ASCEND: Final = Vendor(
    name="Ascend",
    products=("huawei.com/npu.chip.name", "node.kubernetes.io/npu.chip.name", "accelerator/huawei-npu"),
    memories=("huawei.com/npu.chip.memory", "mind-cluster/npu-chip-memory"),
    resources=(r"huawei\.com/Ascend[0-9A-Za-z]+", r"huawei\.com/npu", r"huawei\.com/ascend-[0-9]+"),
    shares=(shares.VNPU,),
    written_by="Ascend device plugin and NodeD; on Huawei Cloud CCE its own suite",
    sources=(
        "hiascend.com, MindCluster 7.3.0, Native Kubernetes Objects: node.kubernetes.io/npu.chip.name and its values",
        "Ascend/mind-cluster, documentation of Kubernetes objects: mind-cluster/npu-chip-memory=64G",
        "Ascend/mind-cluster, its package of node label keys: the new keys huawei.com/npu.chip.name and npu.chip.memory beside the old",
        "Ascend scheduler plugin for vNPU: resources such as huawei.com/Ascend310P-4c.3cpu",
        "Huawei Cloud, CCE user manual, cce_10_0346: accelerator/huawei-npu=ascend-310 and huawei.com/ascend-310",
    ),
    examples=(
        Example(
            {
                "node.kubernetes.io/npu.chip.name": "910B3",
                "mind-cluster/npu-chip-memory": "64G",
                "accelerator": "huawei-Ascend910",
                "accelerator-type": "module-910b-8",
                "servertype": "Ascend910B-20",
            },
            {"huawei.com/Ascend910": 8},
            {"910B3": ("huawei.com/Ascend910", 8)},
        ),
        Example(
            {
                "huawei.com/npu.chip.name": "310P3",
                "node.kubernetes.io/npu.chip.name": "310P3",
                "accelerator": "huawei-Ascend310P",
            },
            {"huawei.com/Ascend310P": 0, "huawei.com/Ascend310P-2c": 4, "huawei.com/Ascend310P-4c.3cpu": 2},
            {
                "310P3/vnpu-2c": ("huawei.com/Ascend310P-2c", 4),
                "310P3/vnpu-4c.3cpu": ("huawei.com/Ascend310P-4c.3cpu", 2),
            },
        ),
        Example(
            {"accelerator/huawei-npu": "ascend-310"},
            {"huawei.com/ascend-310": 4},
            {"ascend-310": ("huawei.com/ascend-310", 4)},
        ),
    ),
)

INTEL: Final = Vendor(
    name="Intel",
    products=("gpu.intel.com/product",),
    counts=("gpu.intel.com/device.count",),
    resources=(r"gpu\.intel\.com/i915", r"gpu\.intel\.com/xe"),
    written_by="GPU device plugin and its NFD rules",
    sources=(
        "intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin/labels.md (0.30): product, family and device.count of the NFD rules",
        "intel/intel-device-plugins-for-kubernetes, cmd/gpu_plugin/README.md: i915 and xe, and the monitoring resources beside them",
    ),
    examples=(
        Example(
            {
                "gpu.intel.com/product": "Max_1550",
                "gpu.intel.com/family": "Max_Series",
                "gpu.intel.com/device.count": "2",
            },
            {"gpu.intel.com/i915": 2, "gpu.intel.com/i915_monitoring": 1},
            {"Max_1550": ("gpu.intel.com/i915", 2)},
        ),
    ),
)

HYGON: Final = Vendor(
    name="Hygon",
    products=("hygon.com/dcu.name",),
    memories=("hygon.com/dcu.vram",),
    resources=(r"hygon\.com/dcu",),
    written_by="DCU device plugin and DCU label node",
    sources=(
        "Hygon's guide to the DCU device plugin and DCU label node, chapter on labels: dcu.name=K100_AI, dcu.cu-count=120, dcu.vram=64G",
    ),
    examples=(
        Example(
            {
                "hygon.com/dcu": "true",
                "hygon.com/dcu.name": "K100_AI",
                "hygon.com/dcu.cu-count": "120",
                "hygon.com/dcu.vram": "64G",
            },
            {"hygon.com/dcu": 8},
            {"K100_AI": ("hygon.com/dcu", 8)},
        ),
    ),
)

ENFLAME: Final = Vendor(
    name="Enflame",
    products=("enflame.com/gcu.model",),
    memories=("enflame.com/gcu.memory",),
    counts=("enflame.com/gcu.count",),
    resources=(r"enflame\.com/gcu",),
    written_by="device plugin and GCU feature discovery",
    sources=(
        "Enflame's user guide of GCU Feature Discovery, v1.1: gcu.model=T10, gcu.memory in MB, gcu.count",
    ),
    examples=(
        Example(
            {
                "enflame.com/gcu.model": "T10",
                "enflame.com/gcu.memory": "16384",
                "enflame.com/gcu.count": "8",
                "enflame.com/gcu.family": "LEO",
            },
            {"enflame.com/gcu": 8},
            {"T10": ("enflame.com/gcu", 8)},
        ),
    ),
)

METAX: Final = Vendor(
    name="MetaX",
    products=("metax-tech.com/gpu.product",),
    memories=("metax-tech.com/gpu.memory",),
    resources=(r"metax-tech\.com/gpu",),
    written_by="GPU operator (gpu-device and gpu-label)",
    sources=("a published installation of the MetaX GPU operator, with the node that it makes (8 MXC550)",),
    examples=(
        Example(
            {
                "metax-tech.com/gpu.product": "MXC550",
                "metax-tech.com/gpu.memory": "64GB",
                "metax-tech.com/gpu.family": "MXC",
                "metax-tech.com/gpu.installed": "true",
            },
            {"metax-tech.com/gpu": 8, "metax-tech.com/vfio-gpu": 0},
            {"MXC550": ("metax-tech.com/gpu", 8)},
        ),
    ),
)

ILUVATAR: Final = Vendor(
    name="Iluvatar",
    products=("iluvatar.com/gpu.product",),
    memories=("iluvatar.com/gpu.memory",),
    counts=("iluvatar.com/gpu.count",),
    any_resource=True,
    resources=(r"iluvatar\.com/gpu",),
    written_by="IX device plugin and IX feature discovery",
    sources=(
        "Deep-Spark/ix-feature-discovery, README.md and pkg/label: gpu.product=BI-V150S, gpu.memory=32768 in MB, gpu.count",
        "Deep-Spark/ix-device-plugin, README.md: iluvatar.com/gpu, also where cards are shared by time-slicing",
    ),
    examples=(
        Example(
            {
                "iluvatar.com/gpu.product": "BI-V150S",
                "iluvatar.com/gpu.memory": "32768",
                "iluvatar.com/gpu.count": "2",
                "iluvatar.com/gpu.machine": "X580-G30",
            },
            {"iluvatar.com/gpu": 2},
            {"BI-V150S": ("iluvatar.com/gpu", 2)},
        ),
    ),
)

VENDORS: Final = (NVIDIA, AMD, ASCEND, INTEL, HYGON, ENFLAME, METAX, ILUVATAR)


def table_of(added: Sequence[DiscoveryRow]) -> tuple[Vendor, ...]:
    """The table with the rows that the settings add before it."""
    return (*map(_added, added), *VENDORS)


def _added(row: DiscoveryRow) -> Vendor:
    return Vendor(
        name=row.vendor,
        products=(row.product,),
        resources=tuple(re.escape(resource) for resource in row.resources),
        written_by="settings",
    )
