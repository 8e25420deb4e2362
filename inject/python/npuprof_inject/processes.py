"""What kind of process this is."""
import sys

_words = None


def command_line():
    """The words of the command, options of Python included (sys.argv has only what follows them)."""
    global _words
    if _words is None:
        try:
            with open("/proc/self/cmdline", "rb") as file:
                _words = file.read().decode("utf-8", "replace").split("\0")
        except OSError:
            _words = []
    return _words


def _is_python_code(word):
    """Was it started by multiprocessing, as python -c '… word …'?"""
    argv = getattr(sys, "argv", None) or [""]
    return argv[0] == "-c" and any(word in one for one in command_line()[1:])


def is_servant():
    """One of multiprocessing's own, that never runs the user's code?"""
    return _is_python_code("multiprocessing.resource_tracker")


def is_spawned():
    """A child of multiprocessing that runs the program a second time, as __mp_main__?"""
    return _is_python_code("multiprocessing.spawn") or \
        _is_python_code("multiprocessing.forkserver")
