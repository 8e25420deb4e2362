"""A target in its module: resolved as it is stored, wrapped, put back; and what it is called instead."""
import sys
import types

from . import events, mainmod, step, wrap


class Missing(Exception):
    """A name that is not there; holder: where it was looked for."""


def attempt(target, module):
    """Wrap the target in this module: None, or the exception that says why not."""
    try:
        holder, name, raw = _find(module, target.qualname)
        _put(target, holder, name, raw)
    except (Missing, wrap.Refused) as problem:
        return problem
    return None


def _get(holder, name):
    """An attribute as it is stored: no descriptor runs, nor the __getattr__ of a module."""
    if isinstance(holder, type):
        for base in holder.__mro__:
            if name in vars(base):
                return vars(base)[name]
    elif isinstance(holder, (types.ModuleType, mainmod.Names)):
        if name in vars(holder):
            return vars(holder)[name]
    elif hasattr(holder, name):  # an object: a pipeline, its transformer, …
        return getattr(holder, name)
    raise Missing("%s has no %s" % (_describe(holder), name))


def _describe(holder):
    if isinstance(holder, type):
        return "class %s" % holder.__qualname__
    if isinstance(holder, types.ModuleType):
        return "module %s" % holder.__name__
    return "the program" if isinstance(holder, mainmod.Names) else "the %s" % type(holder).__name__


def _find(module, qualname):
    """(holder, name, raw) of a qualified name."""
    holder = module
    *path, last = qualname.split(".")
    for name in path:
        holder = _get(holder, name)
    return holder, last, _get(holder, last)


def _is_ours(target, raw):
    function = wrap.original(raw)
    return any(function is wrapper for wrapper, _, _ in target.made)


def _put(target, holder, name, raw):
    if _is_ours(target, raw):
        return
    for other in step.targets:
        if other is not target and _is_ours(other, raw):
            target.same_as = other
            events.write("wrapped", target=target.name, kind="same as %s" % other.name)
            return
    new, function, kind = wrap.rewrap(raw, target, isinstance(holder, type))
    try:
        setattr(holder, name, new)
    except (AttributeError, TypeError) as error:  # an extension type, or one that is closed
        raise wrap.Refused("%s cannot be changed: %s" % (_describe(holder), error))
    target.made.append((wrap.original(new), holder, name))
    if not isinstance(holder, type):
        _everywhere(raw, new)
    events.write("wrapped", target=target.name, kind=kind)


def _everywhere(raw, new):
    """Modules that took the function by `from … import` while its module was still running."""
    if not isinstance(raw, types.FunctionType):
        return
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if isinstance(names, dict):
            for name, value in list(names.items()):
                if value is raw:
                    names[name] = new


def hook_getattr(target, module):
    """PEP 562: what the module's __getattr__ makes is wrapped when the program asks for it."""
    getter = vars(module).get("__getattr__") if isinstance(module, types.ModuleType) else None
    if getter is None or getattr(getter, "_npuprof", False):
        return
    first, _, rest = target.qualname.partition(".")

    def __getattr__(name):
        value = getter(name)
        if name != first:
            return value
        with events.guard("__getattr__ of %s" % target.module):
            holder = mainmod.Names({name: value})
            attempt(target, holder)
            value = vars(holder)[name]
        return value
    __getattr__._npuprof = True
    module.__getattr__ = __getattr__


def not_found(target, problem, module=None, known=()):
    """The event, once per reason; near: names of the module, or the known ones, like the target's."""
    reason = str(problem)
    if reason not in target.reasons:
        target.reasons.append(reason)
        names = list(known) if module is None else list(_callables(module, "", 3))
        events.write("not_found", target=target.name, reason=reason,
                     near=_near(target.qualname, names))


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
        elif isinstance(wrap.original(value), types.FunctionType):
            yield prefix + name


def is_in_place(target):
    """Is our last wrapper still what its name stands for?"""
    _, holder, name = target.made[-1]
    try:
        return _is_ours(target, _get(holder, name))
    except Missing:
        return False


def overrides(target):
    """Subclasses with a method of their own, which never come to the one of their base."""
    found = []
    for _, holder, name in target.made:
        queue = holder.__subclasses__() if isinstance(holder, type) else []
        while queue:
            one = queue.pop()
            queue += one.__subclasses__()
            if name in vars(one):
                found.append("%s:%s.%s" % (one.__module__, one.__qualname__, name))
    return sorted(found)[:8]
