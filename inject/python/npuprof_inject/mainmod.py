"""Targets in the program itself, which no import finds: `python train.py`, `python -m pkg.train`.

Its code runs from the top, and what it defines may be called before it ends; there is no moment after an
import. So the frame of the program, and only this one, is traced line by line until the target is
defined, which is before the first line that can call it. Then tracing ends, for good. A function of the
program is thus wrapped as a decorator above it would. Where something traces already (a debugger),
nothing is done.

In a child of multiprocessing's spawn the program runs a second time, as `__mp_main__`.
"""
import os
import sys

from . import events

_targets = []
_attempt = _not_found = None
_problems = {}


class Names:
    """The global names of a running program, as an object with attributes."""

    def __init__(self, names):
        self.__dict__ = names


def install(targets, attempt, not_found):
    global _attempt, _not_found
    _attempt, _not_found = attempt, not_found
    _targets.extend(target for target in targets if _can_be(target.module))
    if _targets and sys.gettrace() is None:
        sys.settrace(_on_call)


def _can_be(module):
    """May this module be the program?"""
    argv = getattr(sys, "argv", None) or [""]
    if module == "__main__" or "--multiprocessing-fork" in argv:
        return True
    if argv[0] == "-m":
        return _is_module_run(module)
    return _is_file_of(argv[0], module)


def _is_module_run(module):
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    names = [module.encode(), module.rpartition(".")[0].encode()]  # -m pkg runs pkg.__main__
    return any(name and name in words for name in names)


def _is_file_of(path, module):
    return ("/" + os.path.abspath(path)).endswith("/" + module.replace(".", "/") + ".py")


def _wanted(frame):
    """The targets that this frame, of a module that runs as the program, may define."""
    names = frame.f_globals
    spec = names.get("__spec__")
    name = getattr(spec, "name", None)
    path = frame.f_code.co_filename
    return [target for target in _targets
            if target.module in ("__main__", name) or _is_file_of(path, target.module)]


def _on_call(frame, event, arg):
    code = frame.f_code
    if code.co_name == "_bootstrap" and code.co_filename.endswith("process.py"):
        _end()  # a child of multiprocessing whose parent's program cannot be run again
        return None
    if code.co_name != "<module>":
        return None
    name = frame.f_globals.get("__name__")
    spawned = "--multiprocessing-fork" in sys.argv
    if name != "__mp_main__" and (name != "__main__" or spawned):
        return None
    waiting = _wanted(frame)
    unknown = [target for target in waiting
               if target.qualname.partition(".")[0] not in code.co_names]
    stars = b"import *" in _source_of(code) if unknown else False
    if not waiting or (len(unknown) == len(waiting) and not stars):
        _end()
        for target in waiting:
            _tell(target, frame, "the program defines no %s" % target.qualname.partition(".")[0])
        return None
    return _Lines(waiting).on_line


def _source_of(code):
    try:
        with open(code.co_filename, "rb") as file:
            return file.read()
    except OSError:
        return b""


class _Lines:
    """The local trace function of the program's frame."""

    def __init__(self, waiting):
        self.waiting = waiting
        self.problems = {}

    def on_line(self, frame, event, arg):
        with events.guard("trace of the program"):
            names = frame.f_globals
            for target in list(self.waiting):
                if target.qualname.partition(".")[0] in names:
                    self._try(target, names)
            if event == "return":
                for target in self.waiting:
                    _tell(target, frame, self.problems.get(target, "the program did not define it"))
                self.waiting = []
        if self.waiting:
            return self.on_line
        frame.f_trace = None
        _end()
        return None

    def _try(self, target, names):
        problem = _attempt(target, Names(names))
        if problem is None:
            self.waiting.remove(target)
        else:
            self.problems[target] = problem


def _tell(target, frame, problem):
    with events.guard("trace of the program"):
        _not_found(target, Names(frame.f_globals), problem)


def _end():
    # A bound method of nobody else's: leave alone what a debugger has put there since.
    if sys.gettrace() is _on_call:
        sys.settrace(None)
