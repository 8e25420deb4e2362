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

from . import events, processes
from .find import Names

NEWLOCALS = 0x2  # of a code object: a function, not the body of a class

_NAMES = ("<module>", "_bootstrap")

_targets = []
_calls = {}  # target: its attempt and its not_found


def install(targets, attempt, not_found):
    """Watch for these: attempt(target, names) gives None or the problem, which not_found() tells.

    May be called again, for others; a target has module, qualname and what not_found() wants.
    """
    for target in targets:
        _calls[target] = attempt, not_found
    _targets.extend(target for target in targets if _can_be(target.module))
    if _targets and sys.gettrace() is None:
        sys.settrace(_on_call)


def _can_be(module):
    """May this module be the program?"""
    argv = getattr(sys, "argv", None) or [""]
    if module == "__main__" or processes.is_spawned():
        return True
    if argv[0] == "-m":
        names = [module, module.rpartition(".")[0]]  # -m pkg runs pkg.__main__
        return any(name and name in processes.command_line() for name in names)
    return _is_file_of(argv[0], module)


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
    """The trace function: of all frames, picks the program's. What it raised would end the program."""
    if frame.f_code.co_name not in _NAMES:  # all but a few
        return None
    try:
        return _pick(frame)
    except Exception as error:
        events.failed("trace of the program", error)
        _end()
        return None


def _pick(frame):
    code = frame.f_code
    if code.co_name == "_bootstrap" and code.co_filename.endswith("process.py"):
        _end()  # a child of multiprocessing whose parent's program cannot be run again
        return None
    if code.co_name != "<module>":
        return None
    name = frame.f_globals.get("__name__")
    if name != "__mp_main__" and (name != "__main__" or processes.is_spawned()):
        return None
    waiting = {target: _last_line(code, target.qualname) for target in _wanted(frame)}
    for target in [target for target, last in waiting.items() if last is None]:
        del waiting[target]
        with events.guard("trace of the program"):
            _calls[target][1](target, None, "the program defines no %s"
                              % target.qualname.partition(".")[0], _defined(code, "", 3))
    if not waiting:
        _end()
        return None
    return _Lines(waiting).on_line


def _last_line(code, qualname):
    """The last line of the program that can define this name; None: there is none."""
    import dis
    first, last = qualname.partition(".")[0], qualname.rpartition(".")[2]
    starts = dict(dis.findlinestarts(code))
    line = found = None
    for one in dis.get_instructions(code):
        line = starts.get(one.offset) or line
        if (one.opname == "STORE_NAME" and one.argval == first) or "IMPORT_STAR" in one.opname + \
                str(one.argrepr) or (one.opname == "STORE_ATTR" and one.argval == last):
            found = max(found or 0, line)
    return found


def _defined(code, prefix, depth):
    """Names of the functions in the code of the program, before it has run."""
    for one in code.co_consts:
        if isinstance(one, type(code)) and not one.co_name.startswith("<"):
            if one.co_flags & NEWLOCALS:
                yield prefix + one.co_name
            elif depth:
                yield from _defined(one, prefix + one.co_name + ".", depth - 1)


class _Lines:
    """The local trace function of the program's frame."""

    def __init__(self, waiting):
        self.waiting = waiting  # target: the last line that can define it
        self.problems = {}

    def on_line(self, frame, event, arg):
        with events.guard("trace of the program"):
            for target, last in list(self.waiting.items()):
                if target.qualname.partition(".")[0] in frame.f_globals:
                    self._try(target, frame.f_globals)
                if target in self.waiting and (event == "return" or frame.f_lineno > last):
                    del self.waiting[target]
                    problem = self.problems.get(target, "the program did not define it")
                    _calls[target][1](target, None, problem, _defined(frame.f_code, "", 3))
        if self.waiting:
            return self.on_line
        frame.f_trace = None
        _end()
        return None

    def _try(self, target, names):
        problem = _calls[target][0](target, Names(names))
        if problem is None:
            del self.waiting[target]
        else:
            self.problems[target] = problem


def _end():
    # A bound method of nobody else's: leave alone what a debugger has put there since.
    if sys.gettrace() is _on_call:
        sys.settrace(None)
