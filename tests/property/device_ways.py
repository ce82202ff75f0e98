"""Ways to ask for devices: of two classes, few of each, perhaps with a capacity."""

from hypothesis import strategies as st

from tests.builders.claims import a_way

CLASSES = ("gpu", "nic")

counts = st.integers(0, 3)
classes = st.sampled_from(CLASSES)
ways = st.builds(a_way, classes, count=counts, capacity=st.none() | st.fixed_dictionaries({"m": counts}))
