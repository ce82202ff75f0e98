"""docs/cards.md, made from the table of vendors: `python -m hack.pages.cards` writes it."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from core.cards.alarms import UNLABELLED
from core.cards.shares import SHARES
from core.cards.vendor import Example, Vendor
from core.cards.vendors import VENDORS

PAGE: Final = Path(__file__).parents[2] / "docs" / "cards.md"

_INTRODUCTION: Final = """\
# Cards

[中文](zh/cards.md)

A card is what a quota counts and what a pod names: the product on a node's label, or a share of it. This page says what a
node must show so that its cards are found, and how each name is built. It is made from the table in
[`core/cards/vendors.py`](../core/cards/vendors.py) by `python -m hack.pages.cards`; a test compares the two.

Three rules hold for every vendor:

- The **name** comes from a node label, as it stands. It must be able to be a label's value: letters, digits, `.`, `_`, `-`.
- The **number** comes from `status.allocatable` alone. Labels never give numbers, and readiness does not matter.
- One node carries one product, whole or cut into shares. A share is a card of its own, with a quota of its own.

`cardquota cards` shows what was found, and says on standard error which node offers something that gives no card.
"""

_SHARES: Final = """\
## Shares

| share | its name looks like | its resource |
|---|---|---|
"""

_BY_HAND: Final = """\
## Any other vendor, and nodes labelled by hand

A label that is named after a resource needs no row: `<resource>.product` names the card, `<resource>.memory` (MiB of one card)
must stand beside it, and what counts is `<resource>` itself, or else the only other resource of the same domain. So a node
with eight `example.com/npu` becomes one with eight cards `X200` by

```
kubectl label node NODE example.com/npu.product=X200 example.com/npu.memory=65536
```

What stands before `.product` may have letters, digits and `_` after the slash, and nothing else. For a resource with another name,
such as `example.com/v-npu`, take a plain word of the same domain: the two labels above do for it as well, as long as the domain
offers no other resource.

The software of these vendors names no product in a public node label. Their nodes are told about
(`AcceleratorWithoutCard`), and labelled by hand in this way:

| vendor | resource | looked up in |
|---|---|---|
"""

_SETTINGS: Final = """\
## Rows of your own

Where a vendor's labels are others, the setting `discovery` adds rows; they come before those above:

```yaml
discovery:
  - vendor: Example
    product: example.com/npu.model     # label with the name of the card
    resources: [example.com/npu]       # what stands for whole cards, the first that a node has
```

`cards.resources` says for one product which resource stands for it, whatever the nodes show.

## Node pools that are scaled to zero

A card that no node carries is unknown, and a pod that asks for it waits. `cards.pools` makes it known:

```yaml
cards:
  pools:
    NVIDIA-H200:
      labels: {example.com/pool: h200}  # labels that nodes of the pool have from their first moment
      resource: nvidia.com/gpu
```

A pod whose card has a pool is lifted as soon as its queue has quota, narrowed to the pool's labels while no node carries the
card, and to the product's label as soon as one does. To a cluster autoscaler it is an ordinary pending pod. Of several cards
that a pod accepts it gets the leftmost one that has quota and is free on a node or has a pool. A node of the pool that does
not show its product yet is accepted by the bind; one that carries another card is not.

A pool with `resource: vke.volcengine.com/mgpu-core` brings mGPU shares. Its labels name the kind of its nodes, and their compute
policy where that is not `fixed-share`:

```yaml
cards:
  pools:
    NVIDIA-A10:
      labels: {example.com/pool: a10, vke.node.gpu.schedule: mgpu}
      resource: vke.volcengine.com/mgpu-core
```

A pod with shares that no node has room for is lifted as soon as its queue has quota for it, narrowed to the labels of the pool, and
led to no node. How large its cards will be only the autoscaler knows. With `mgpu.cardQuota` its shares count against the quota of
the card that the pool is named after; whole cards the pool brings none. A pod that names a card beside its shares, and one that
has to start on the nodes of others of its task, wait for a node that is there.

## mGPU shares of a card

The shares of a node labelled `vke.node.gpu.schedule: mgpu` are limited by the two keys in `spec.capability` alone, whatever card
they are of. With `mgpu.cardQuota: true` they count against the quota of their card as well, where the node names it by a product
label: 100 of `vke.volcengine.com/mgpu-core` are one card. Quota 0 for an A10 closes its shares; quota 1 lets in a hundred
hundredths of them in all, beside the whole cards of the same quota, each once.

* A card that a queue does not list is closed to its pods' shares, as it is to whole cards. Shares on nodes without a product label
  count against no card. Memory counts against no card either: `vke.volcengine.com/mgpu-memory` limits that.
* While a pod waits nobody knows its card. It is lifted for a node with room of whose card the queue has enough left, whichever
  `mgpu.policy` prefers of those, and charged from then on by its record (`cardquota.io/share-card`), whatever becomes of labels. A
  pod that is led to no node is narrowed to the product's label instead, and one that names a card beside its shares has both of
  that one. Where all nodes with room are of cards that are used up, the pod waits and the message names the card.
* A bind to a node of another card is refused (`CardNotOnNode`). Who was let in before the setting came, or came past the gate,
  is charged by the node, and has to fit at its bind; what runs already stays, and counts.
* Of several cards (`vke.volcengine.com/container-multiple-gpu`) the sum counts. Status and `cardquota queues` show hundredths in
  the key of the whole card, exactly: 250 hundredths are `2500m` there, and 2.5 in messages. Whoever waits stands under the mGPU
  keys alone.
* With `cards.hierarchy` the queues above count the same. `cards.equivalents` of the card see its shares as well, as parts of its
  quota; the quotas of the classes do not.
* Members of one task of a gang that are lifted for nodes of several cards differ in their affinity; of Volcano's scheduler they
  need what [every spread](gangs.md#what-volcanos-scheduler-needs-for-that) needs.

## One device, several names

The same card may be had by its name and by a claim for a DeviceClass. By themselves these are two quotas, neither of which counts
the other (`DevicesCountedTwice` tells of it). `cards.equivalents` makes them one:

```yaml
cards:
  equivalents:
    NVIDIA-H200: [h200.nvidia.com]      # DeviceClasses that serve exactly this card
```

A claim for such a class then takes of the queue's quota of the card as well, and a pod with the card's name of the quota of each of
its classes. Whichever is short holds the pod, and the message names it; status and `cardquota queues` show under each name all that
is used of it.

* Of the card a claim has what the queue's card quota says, so nothing where that does not list it: give every queue a quota of the
  card whose claims are to run. The quota of a class limits only where it is listed, as ever.
* A claim that pods share costs once. So does a pod for whose card's resource a scheduler makes the claim itself
  (`spec.extendedResourceName`). A pod that names the card and brings a claim of its own beside it asks for two devices.
* In the queues above, cards count where `cards.hierarchy` is on, and devices where `dra.hierarchy` is.
* A class belongs to one card. A claim that may be served by several classes is charged with the most that may come of it, for each of
  their cards.
* What runs when the setting comes stays, and counts from then on; a queue that uses more than its quota by that is told so
  (`QuotaExceeded`).
* The votes for groups that only declare cards look at the card's quota, not at those of its classes; the gate looks at both.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(
        (_INTRODUCTION, *map(_section, VENDORS), _shares(), _by_hand(), _SETTINGS.rstrip() + "\n")
    )


def _section(vendor: Vendor) -> str:
    lines = [f"## {vendor.name}", "", f"Written by: {vendor.written_by}.", ""]
    lines += ["| | |", "|---|---|", f"| product | {_keys(vendor.products)} |"]
    if vendor.memories:
        note = " (a node without it is not recognised)" if vendor.memory_needed else ""
        lines.append(f"| memory | {_keys(vendor.memories)}{note} |")
    lines.append(f"| whole cards | {_keys(map(_readable, vendor.resources))} |")
    if vendor.partitions:
        lines.append(f"| all cards are cut | {_keys(vendor.partitions)} |")
    if vendor.shares:
        lines.append(f"| shares | {', '.join(share.title for share in vendor.shares)} |")
    lines.append("")
    for example in vendor.examples:
        lines += [*_example(example), ""]
    lines += ["Looked up in:", "", *(f"- {source}" for source in vendor.sources), ""]
    return "\n".join(lines)


def _example(example: Example) -> Iterator[str]:
    yield "```yaml"
    yield "metadata:"
    yield "  labels:"
    yield from (f'    {key}: "{value}"' for key, value in example.labels.items())
    yield "status:"
    yield "  allocatable:"
    yield from (f'    {resource}: "{number}"' for resource, number in example.allocatable.items())
    yield "```"
    yield ""
    yield "| card | resource to ask for | cards |"
    yield "|---|---|---|"
    for card, (resource, number) in example.cards.items():
        yield f"| `{card}` | `{resource}` | {number} |"


def _shares() -> str:
    rows = []
    for share in SHARES:
        match = share.written.fullmatch(share.like.partition("/")[2])
        resources = sorted(share.resources(match)) if match is not None else []
        rows.append(f"| {share.title} | `{share.like}` | {_keys(resources) or 'as the node offers it'} |")
    return _SHARES + "\n".join(rows) + "\n"


def _by_hand() -> str:
    rows = [f"| {name} | `{resource}` | {source} |" for name, (resource, source) in UNLABELLED.items()]
    return _BY_HAND + "\n".join(rows) + "\n"


def _keys(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _readable(pattern: str) -> str:
    """A resource's pattern as people write it: `huawei.com/Ascend*`."""
    return re.sub(r"\[[^]]*\]\+", "*", pattern.replace("\\", ""))


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
