"""The short form of volumes, as compose reads it on every platform (a drive's letter included)."""

from __future__ import annotations

_PROPAGATION = ("rprivate", "private", "rshared", "shared", "rslave", "slave")


def parse(spec: str) -> dict[str, object]:
    """`[SOURCE:]TARGET[:OPTIONS]` in the long form. Raises `ValueError` where compose refuses it."""
    if not spec:
        raise ValueError("a volume is empty")
    if len(spec) < 3:
        return {"type": "volume", "target": spec}
    fields = _fields(spec)
    if not all(fields):
        raise ValueError(f"the volume {spec!r} has an empty part between colons")
    if len(fields) > 3:
        raise ValueError(f"the volume {spec!r} has too many colons")
    if len(fields) == 1:
        return {"type": "volume", "target": fields[0]}
    source, target = fields[:2]
    is_bind = source[0] in "./~" or source.startswith("\\\\") or (source[0].isalpha() and source[1:2] == ":")
    mount: dict[str, object] = {"type": "bind" if is_bind else "volume", "source": source, "target": target}
    options: dict[str, object] = {"create_host_path": True} if is_bind else {}
    for option in fields[2].split(",") if len(fields) == 3 else ():
        if option == "ro":
            mount["read_only"] = True
        elif option == "rw":
            mount.pop("read_only", None)
        elif option == "nocopy" and not is_bind:
            options["nocopy"] = True
        elif is_bind and option in _PROPAGATION:
            options["propagation"] = option
        elif is_bind and option in ("z", "Z"):
            options["selinux"] = option
    return {**mount, "bind" if is_bind else "volume": options}


def _fields(spec: str) -> list[str]:
    """The parts between colons; a single letter before a colon begins a Windows path."""
    fields, part = [], ""
    for letter in spec:
        if letter == ":" and not (len(part) == 1 and part.isalpha()):
            fields.append(part)
            part = ""
        else:
            part += letter
    return [*fields, part]
