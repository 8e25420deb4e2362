"""Names in modules and classes: what stands there, and what comes near to one that does not.

Everything is looked at as it is stored: no descriptor runs, and no __getattr__ of a module.
"""
import sys
import types

from . import events


class Names:
    """The global names of a running program, as an object with attributes."""

    def __init__(self, names):
        self.__dict__ = names


class Missing(Exception):
    """A name that is not there; holder: where it was looked for."""


def get(holder, name):
    """An attribute as it is stored: no descriptor runs, nor the __getattr__ of a module."""
    if isinstance(holder, type):
        for base in holder.__mro__:
            if name in vars(base):
                return vars(base)[name]
    elif isinstance(holder, (types.ModuleType, Names)):
        if name in vars(holder):
            return vars(holder)[name]
    elif hasattr(holder, name):  # an object: a pipeline, its transformer, …
        return getattr(holder, name)
    raise Missing("%s has no %s" % (describe(holder), name))


def describe(holder):
    if isinstance(holder, type):
        return "class %s" % holder.__qualname__
    if isinstance(holder, types.ModuleType):
        return "module %s" % holder.__name__
    return "the program" if isinstance(holder, Names) else "the %s" % type(holder).__name__


def find(module, qualname):
    """(holder, name, raw) of a qualified name."""
    holder = module
    *path, last = qualname.split(".")
    for name in path:
        holder = get(holder, name)
    return holder, last, get(holder, last)


def original(raw):
    """The function inside raw that a wrapper would stand for."""
    import functools
    while True:
        if isinstance(raw, (staticmethod, classmethod)):
            raw = raw.__func__
        elif isinstance(raw, (functools.partial, functools.partialmethod)):
            raw = raw.func
        else:
            return raw


def everywhere(raw, new):
    """Modules that took the function by `from … import` while its module was still running."""
    if not isinstance(raw, types.FunctionType):
        return
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            for name, value in list(names.items()):
                if value is raw:
                    names[name] = new


def not_found(target, module, problem, known=None):
    """The event, once per reason; near: what the module, or the list known, has of that kind.

    target: anything with name, qualname and reasons, a list of what was told; and with stage, if
    it is the anchor of one.
    """
    reason = str(problem)
    if reason not in target.reasons:
        target.reasons.append(reason)
        names = list(_callables(module, "", 3) if known is None else known)
        members = {"stage": target.stage} if hasattr(target, "stage") else {}
        events.write("not_found", target=target.name, reason=reason,
                     near=_near(target.qualname, names), **members)


def near_modules(target):
    """Modules that may be meant by a name that nobody imported: those in which the wanted name was
    defined first, then those whose names are like it."""
    import difflib
    names = sorted(name for name in sys.modules if isinstance(name, str))
    last = target.module.rpartition(".")[2]
    plain = target.module.replace("_", "").lower()
    near = [name for name in names if _defines(name, target.qualname)]
    near += [name for name in names if name not in near and (
        name.rpartition(".")[2] == last or name.replace("_", "").lower() == plain)]
    near += [name for name in difflib.get_close_matches(target.module, names, 5, 0.75)
             if name not in near]
    return near


def _defines(name, qualname):
    holder = sys.modules[name]
    try:
        first = get(holder, qualname.partition(".")[0])
        find(holder, qualname)
    except (Missing, AttributeError, TypeError):
        return False
    return getattr(first, "__module__", None) == name


def _near(wanted, known):
    import difflib
    near = difflib.get_close_matches(wanted, known, 5, 0.5)
    last = wanted.rpartition(".")[2].lower()
    near += [name for name in known if name not in near and (
        name.startswith(wanted + ".") or name.lower().rpartition(".")[2] == last)]
    return near[:8]


def _callables(holder, prefix, depth):
    """Qualified names of what a target can be."""
    for name, value in sorted(vars(holder).items(), key=lambda item: str(item[0])):
        if not isinstance(name, str) or (name.startswith("__") and name != "__call__"):
            continue
        if isinstance(value, type) and depth:
            if getattr(value, "__module__", None) == getattr(holder, "__module__", None) or \
                    getattr(value, "__module__", None) == getattr(holder, "__name__", None):
                yield from _callables(value, prefix + name + ".", depth - 1)
        elif isinstance(original(value), types.FunctionType):
            yield prefix + name


