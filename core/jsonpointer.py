"""JSON pointers (RFC 6901): how a JSON patch says which member of an object it is about."""


def render(*path: str | int) -> str:
    """The pointer to the member that is reached by these keys and list indexes, one after the other."""
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def parse(pointer: str) -> tuple[str, ...]:
    """The keys and indexes of a pointer, all as text; the other way round from `render`."""
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
