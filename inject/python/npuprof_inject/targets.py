"""The targets: found once their module is there, wrapped, and accounted for at the exit.

A target that is not in its module when that has been imported may appear later: assigned by someone
else, or made on demand by the module's __getattr__. It is looked for again at each later import;
a module's __getattr__ is never called for that, since it might import half of the program earlier
than the user does. Events tell `not_found` first, and `wrapped` if it appears.
"""
import itertools
import os
import sys
import types

from . import config, events, imports, mainmod, phase, step, wrap

_all = []


class Target:
    """One function, with its count; wrapper code reads `tick` and `limit` only."""

    def __init__(self, module, qualname, settings):
        self.module, self.qualname = module, qualname
        self.name = "%s:%s" % (module, qualname)
        self.call = settings.call
        self.phase = None if settings.phase == config.PHASES[0] else settings.phase
        self.tick = itertools.count(1).__next__  # calls, or those of the wanted phase
        self.tick_all = itertools.count(1).__next__  # with a phase: all calls
        self.base = self.base_all = 0  # what the counters stood at when this process was forked
        self.limit = settings.call
        self.made = []  # (wrapper, holder, name) of each thing that was wrapped
        self.same_as = None  # the target that wrapped the same function first
        self.final = None
        self.reasons = []  # what was told by not_found

    def count(self, args, kwargs):
        """The number of this call; 0 when it is of another phase."""
        if self.phase is None:
            return self.tick()
        self.tick_all()
        return self.tick() if phase.classify(args, kwargs) == self.phase else 0

    def restart(self):
        """Count from 1 again, in a child of fork()."""
        self.base, self.base_all = self.tick(), self.tick_all()
        self.limit = self.call + self.base

    def totals(self):
        """(calls, those of the wanted phase), at the exit: looking at a counter advances it."""
        if self.final is None or self.final[0] != os.getpid():
            wanted = self.tick() - 1 - self.base
            every = self.tick_all() - 1 - self.base_all if self.phase else wanted
            self.final = os.getpid(), every, wanted
        return self.final[1:]

    def is_ours(self, raw):
        function = wrap.original(raw)
        return any(function is wrapper for wrapper, _, _ in self.made)


class Missing(Exception):
    """A name that is not there; holder: where it was looked for."""


def install(settings):
    for module, qualname in settings.targets:
        _all.append(Target(module, qualname, settings))
    step.setup(settings, _all)
    events.at_exit(_tell_calls)
    for target in _all:
        if target.module != "__main__":
            imports.after(target.module, _Watch(target), every=True)
    mainmod.install(_all, attempt, not_found)


class _Watch:
    """The callback of one target's module."""

    def __init__(self, target):
        self.target, self.waiting = target, None

    def __call__(self, module):
        problem = attempt(self.target, module)
        if problem is None:
            return
        not_found(self.target, problem, _callables(module, "", 3))
        _hook_getattr(self.target, module)
        if self.waiting is None:
            imports.retry(self.again)
        self.waiting = module

    def again(self):
        if self.waiting is not None and attempt(self.target, self.waiting) is None:
            self.waiting = None
            return True
        return False


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


def _put(target, holder, name, raw):
    if target.is_ours(raw):
        return
    for other in _all:
        if other is not target and other.is_ours(raw):
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


def _hook_getattr(target, module):
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


def not_found(target, problem, known):
    """The event, once per reason; near: those of the known names that may have been meant."""
    reason = str(problem)
    if reason not in target.reasons:
        target.reasons.append(reason)
        events.write("not_found", target=target.name, reason=reason,
                     near=_near(target.qualname, list(known)))


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


def _tell_calls():
    for target in _all:
        counted = target.same_as or target
        if not counted.made and not target.reasons:
            _never_imported(target)
            continue
        every, wanted = counted.totals()
        if not every and events.is_silent():
            continue
        members = {"calls": every}
        if counted.phase:
            members.update(phase=counted.phase, phase_calls=wanted)
        if not every:
            members["overridden_by"] = _overrides(counted)
        members["replaced"] = any(not _still(counted, *made[1:]) for made in counted.made[-1:])
        events.write("calls", target=target.name, **members)


def _never_imported(target):
    if events.is_silent() or target.module == "__main__":
        return
    import difflib
    last = target.module.rpartition(".")[2]
    near = difflib.get_close_matches(target.module, list(sys.modules), 5, 0.8)
    near += [name for name in sorted(sys.modules)
             if name.rpartition(".")[2] == last and name not in near]
    events.write("not_found", target=target.name, near=near[:8],
                 reason="module %s was not imported in this process" % target.module)


def _still(target, holder, name):
    """Is our wrapper still what the name stands for?"""
    try:
        return target.is_ours(_get(holder, name))
    except Missing:
        return False


def _overrides(target):
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
