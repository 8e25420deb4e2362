"""A target in its module: wrapped, and put back in its place; and what became of it at the end."""
import types

from . import events, find, step, wrap


def attempt(target, module):
    """Wrap the target in this module: None, or the exception that says why not."""
    try:
        holder, name, raw = find.find(module, target.qualname)
        _put(target, holder, name, raw)
    except (find.Missing, wrap.Refused) as problem:
        return problem
    return None


def _is_ours(target, raw):
    """Is it the target's wrapper, or a decorator around it (that of the recorder's stages, too)?"""
    function, depth = find.original(raw), 0
    while function is not None and depth < 100:
        if any(function is wrapper for wrapper, _, _ in target.made):
            return True
        function, depth = getattr(function, "__wrapped__", None), depth + 1
    return False


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
        raise wrap.Refused("%s cannot be changed: %s" % (find.describe(holder), error))
    target.made.append((find.original(new), holder, name))
    if not isinstance(holder, type):
        find.everywhere(raw, new)
    events.write("wrapped", target=target.name, kind=kind)


def hook_getattr(target, module):
    """What the module's __getattr__ makes is wrapped when the program asks for it.

    Its own (PEP 562), or that of its type, as the lazy modules of some packages have.
    """
    if not isinstance(module, types.ModuleType):
        return
    getter = vars(module).get("__getattr__")
    if getter is None and hasattr(type(module), "__getattr__"):
        def getter(name):
            return type(module).__getattr__(module, name)
    if getter is None:
        return
    first = target.qualname.partition(".")[0]

    def __getattr__(name):
        value = getter(name)
        if name == first:
            with events.guard("__getattr__ of %s" % target.module):
                made = find.Names({name: value})
                attempt(target, made)
                value = vars(made)[name]
                if name in vars(module):  # it keeps what it made
                    vars(module)[name] = value
        return value
    vars(module)["__getattr__"] = __getattr__


def is_in_place(target):
    """Is our last wrapper still what its name stands for?"""
    _, holder, name = target.made[-1]
    try:
        return _is_ours(target, find.get(holder, name))
    except find.Missing:
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
