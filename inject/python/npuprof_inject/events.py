"""events/<pid>.jsonl: one JSON object per line, one write() per line (docs/formats/inject.md).

The file is opened for each line: a program that closes all its descriptors, or that becomes a daemon,
neither loses events nor gets one of ours into a socket of its own. A line is complete or absent, also
after kill -9. A process made by fork() writes nothing before it has something to tell.
"""
import atexit
import os
import sys
import time

from . import light, processes, ranks

_directory = None
_method = None  # how this process came to be, once told: None
_exit_callbacks = []
_ended = False


def start(directory):
    global _directory, _method
    _directory = directory
    _method = "spawn" if processes.is_spawned() else "exec"
    _tell_start()
    os.register_at_fork(after_in_child=_after_fork)
    atexit.register(_at_exit)
    from . import imports
    imports.after("multiprocessing.util", _in_multiprocessing)


def write(event, **members):
    """Append one event. Never raises: a directory that cannot be written costs the events only."""
    if _directory is None:
        return
    if _method is not None:
        _tell_start()
    _append(event, members)


def failed(where, error, tell=True):
    """The event hook_failed, and one line on stderr. Never raises."""
    try:
        import traceback
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        write("hook_failed", where=where, error="%s: %s" % (type(error).__name__, error),
              traceback=text)
        if tell:
            say("%s failed, the program goes on: %s: %s" % (where, type(error).__name__, error))
    except Exception:  # the stack is full, an error has no text, …
        pass


def say(text):
    """One line on stderr."""
    try:
        sys.stderr.write("npuprof: %s\n" % text)
        sys.stderr.flush()
    except Exception:  # closed, or not there at all
        pass


class guard:
    """with guard("where"): an exception inside becomes hook_failed."""

    def __init__(self, where):
        self.where = where

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None and isinstance(error, Exception):
            failed(self.where, error)
            return True
        return False


def is_silent():
    """Has this process nothing told so far, being a child of fork()?"""
    return _method is not None


def at_exit(callback):
    """callback() before `end` is written; also in a child of fork() that registers it."""
    _exit_callbacks.append(callback)


def on_exit(callback):
    """callback() early at the exit, before what was imported by now shuts down."""
    atexit.register(_guarded, callback)
    process = sys.modules.get("multiprocessing.process")
    util = sys.modules.get("multiprocessing.util")
    if util is not None and process is not None and process.parent_process() is not None:
        util.Finalize(None, _guarded, args=(callback,), exitpriority=100)


def _guarded(callback):
    with guard("exit"):
        callback()


def _tell_start():
    global _method
    method, _method = _method, None
    _append("start", {"argv": list(getattr(sys, "argv", None) or []),
                      "python": sys.version.split()[0], "executable": sys.executable,
                      "method": method})


def _append(event, members):
    record = {"time": time.time(), "pid": os.getpid(), "ppid": os.getppid(),
              "rank": ranks.rank(), "event": event}
    record.update(members)
    try:
        line = (light.dumps(record) + "\n").encode("ascii")
        descriptor = os.open(os.path.join(_directory, "%d.jsonl" % os.getpid()),
                             os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
    except Exception:  # no room, no right, no directory: the program goes on
        pass


def _after_fork():
    global _method, _ended
    _method = "fork"
    _ended = False


def _in_multiprocessing(util):
    """Children of multiprocessing end by os._exit(): atexit does not run there, Finalize does."""
    util.register_after_fork(sys.modules[__name__], lambda _: util.Finalize(
        None, _at_exit, exitpriority=-100))


def _at_exit():
    global _ended
    if _ended or ranks.is_loader_worker():
        return
    _ended = True
    for callback in _exit_callbacks:
        with guard("exit"):
            callback()
    if _method is None:  # a fork() that never came near a target stays silent
        kind = getattr(sys, "last_type", None)
        write("end", exit=kind.__name__ if kind else None)
