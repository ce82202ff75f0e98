from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kube.reading import LineSplitter


@given(
    lines=st.lists(st.binary(max_size=6).filter(lambda line: b"\n" not in line), max_size=8),
    tail=st.binary(max_size=4).filter(lambda line: b"\n" not in line),
    cuts=st.lists(st.integers(0, 70), max_size=8),
)
def test_lines_come_out_the_same_however_the_chunks_fall(
    lines: list[bytes], tail: bytes, cuts: list[int]
) -> None:
    """Cuts inside lines, at line ends and empty chunks change nothing; what is unfinished stays in `rest`."""
    data = b"".join(line + b"\n" for line in lines) + tail
    bounds = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    splitter = LineSplitter()
    found = [line for start, end in pairwise(bounds) for line in splitter.feed(data[start:end])]
    assert found == [line for line in lines if line]
    assert splitter.rest == tail
