"""The targets: found once their module is there, wrapped, and accounted for at the exit.

A target that is not in its module when that has been imported may appear later: assigned by someone
else, or made on demand by the module's __getattr__. It is looked for again at each later import;
a module's __getattr__ is never called for that, since it might import half of the program earlier
than the user does. Events tell `not_found` first, and `wrapped` if it appears.
"""
import itertools
import os
import sys

from . import config, events, find, imports, mainmod, phase, step
from .find import not_found

_all = []
_settings = None


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


def install(settings):
    global _settings
    _settings = settings
    for module, qualname in settings.targets:
        _all.append(Target(module, qualname, settings))
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
        not_found(self.target, module, problem)
        if module is self.waiting:
            return
        attach().hook_getattr(self.target, module)
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
    return attach().attempt(target, module)


def attach():
    """The module that is needed only where a target is."""
    from . import attach as module
    step.setup(_settings, _all)
    return module


def _tell_calls():
    for target in _all:
        target.limit = step.NEVER  # what is called now is the end of the program
        with events.guard("exit"):
            if not target.same_as and not target.made and not target.reasons:
                _never_imported(target)
            else:
                _tell(target, target.same_as or target)


def _tell(target, counted):
    every, wanted = counted.totals()
    if not every and events.is_silent():
        return
    members = {"calls": every}
    if counted.phase:
        members.update(phase=counted.phase, phase_calls=wanted)
    if counted.made and not every:
        members["overridden_by"] = attach().overrides(counted)
    members["replaced"] = bool(counted.made) and not attach().is_in_place(counted)
    events.write("calls", target=target.name, **members)


def _never_imported(target):
    if events.is_silent() or target.module == "__main__":
        return
    events.write("not_found", target=target.name, near=find.near_modules(target)[:8],
                 reason="module %s was not imported in this process" % target.module)
