# SPDX-License-Identifier: Apache-2.0
"""Python objects that look like owners of leaked buffers, and the objects that refer to them.

It cannot be known for sure which object owns device memory. An object looks like an owner if one of
its attributes is the address of a leaked buffer, and is called so or cannot well be anything else; or
if it is one of ttnn's tensors. This is only a hint for people; it does not affect the result.
"""

import gc
import sys
import sysconfig
import types
from typing import Any, Dict, List, Set

_OWNERS_MAX = 10
_REFERRERS_MAX = 4
_TEXT_MAX = 80
_SMALL = 1 << 32  # smaller numbers are often something else: addresses only if their name says so
_NAMES = ("addr", "ptr", "pointer")
# Their objects hold flags, sizes and descriptors, but no device memory.
_NEVER = {"_pytest", "pytest", "pluggy", "ttmem", *getattr(sys, "stdlib_module_names", ())}
_STANDARD = sysconfig.get_paths().get("stdlib")


def _fields(thing: Any) -> Dict[str, Any]:
    try:
        fields = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        fields = None
    found = dict(fields) if isinstance(fields, dict) else {}
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            member = kind.__dict__.get(slot)
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found[slot] = member.__get__(thing)
                except AttributeError:  # never assigned
                    continue
    return found


def _is_foreign(kind: type) -> bool:
    """Of Python itself, the harness or ttmem."""
    module = str(kind.__module__)
    if module.partition(".")[0] in _NEVER or module in ("builtins", "types"):
        return True
    # Before Python 3.10 the list is not known.
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return _STANDARD is not None and file.startswith(_STANDARD) and "-packages" not in file


def _looks(thing: Any, addresses: Set[int], tensor: Any) -> bool:
    kind = type(thing)
    if tensor is not None and issubclass(kind, tensor):
        return True
    # Classes and modules hold what was imported; frames and containers are shown as referrers.
    if _is_foreign(kind) or issubclass(kind, (type, types.ModuleType)):
        return False
    return any(
        type(value) is int
        and value in addresses
        and (value >= _SMALL or any(word in name.lower() for word in _NAMES))
        for name, value in _fields(thing).items()
    )


def _name_of(thing: Any) -> str:
    kind = type(thing)
    return f"{kind.__module__}.{kind.__qualname__} at {id(thing):#x}"


def _key_in(holder: Dict[Any, Any], thing: Any) -> str:
    for key, value in list(holder.items()):
        if value is thing:
            return key if isinstance(key, str) else repr(type(key))
    return "?"


def _of_dict(holder: Dict[Any, Any], thing: Any) -> str:
    key = _key_in(holder, thing)[:_TEXT_MAX]
    name = holder.get("__name__")
    if isinstance(name, str) and getattr(sys.modules.get(name), "__dict__", None) is holder:
        return f"the global {key} of {name}"
    for owner in gc.get_referrers(holder):
        try:
            fields = object.__getattribute__(owner, "__dict__")
        except AttributeError:
            continue
        if fields is holder:
            return f"the attribute {key} of {_name_of(owner)}"
    return f"the key {key!r} of a dict of {len(holder)}"


def _home(container: Any) -> str:
    """Containers have no names; the variable or attribute that holds one identifies it."""
    for holder in gc.get_referrers(container):
        if isinstance(holder, dict):
            return f", {_of_dict(holder, container)}"
    return ""


def _referrer(holder: Any, thing: Any) -> str:
    if isinstance(holder, types.FrameType):
        code = holder.f_code
        names = [name for name, value in holder.f_locals.items() if value is thing]
        place = f"{code.co_name} ({code.co_filename}:{holder.f_lineno})"
        return f"{', '.join(names) or 'a value'} in {place}"
    if isinstance(holder, dict):
        return _of_dict(holder, thing)
    if isinstance(holder, types.CellType):
        return "a variable of an enclosing function"
    if isinstance(holder, (list, tuple, set, frozenset)):
        return f"a {type(holder).__name__} of {len(holder)}{_home(holder)}"
    names = [name for name, value in _fields(holder).items() if value is thing]
    if names:
        return f"the attribute {names[0]} of {_name_of(holder)}"
    return _name_of(holder)


def _referrers(thing: Any, ours: Set[int]) -> List[str]:
    found = []
    for holder in gc.get_referrers(thing):
        # The search itself holds them, too.
        if id(holder) in ours or (
            isinstance(holder, types.FrameType) and holder.f_code.co_filename == __file__
        ):
            continue
        try:
            found.append(_referrer(holder, thing))
        except Exception:  # as in describe()
            found.append(object.__repr__(holder))
    more = len(found) - _REFERRERS_MAX
    return found[:_REFERRERS_MAX] + ([f"{more} more"] if more > 0 else [])


def describe(leaks: List[Dict[str, Any]]) -> str:
    """Lines to be put below the table of leaks; empty if no object looks like an owner."""
    addresses = {int(leak["address"], 16) for leak in leaks} - {0}
    tensor = getattr(sys.modules.get("ttnn"), "Tensor", None)
    everything = gc.get_objects()
    owners = []
    for thing in everything:
        try:
            if _looks(thing, addresses, tensor if isinstance(tensor, type) else None):
                owners.append(thing)
        except Exception:  # an object of other code that cannot be inspected
            continue
    shown = owners[:_OWNERS_MAX]
    ours = {id(everything), id(owners), id(shown)}
    lines = []
    for thing in shown:
        lines.append(f"  {_name_of(thing)}")
        lines += [f"    held by {text}" for text in _referrers(thing, ours)]
    if len(owners) > _OWNERS_MAX:
        lines.append(f"  ... and {len(owners) - _OWNERS_MAX} more")
    return "\n".join(["", "objects that look like owners:", *lines]) if lines else ""
