"""First on PYTHONPATH: brings npuprof_inject into every Python process (docs/formats/inject.md).

Python imports the first `sitecustomize` of sys.path at start-up. This one starts the package, then
runs the one that would have been found without it, under the same name and with the same failures.
"""
import os
import sys


def _start():
    if not os.environ.get("NPUPROF_INJECT") or os.environ.get("NPUPROF_INJECT_OFF"):
        return
    try:
        import npuprof_inject
        npuprof_inject.start()
    except Exception as error:  # whatever it is, the user's program runs
        sys.stderr.write("npuprof: not active in process %d: %s: %s\n"
                         % (os.getpid(), type(error).__name__, error))


def _is_ours(entry):
    """A directory of this package, also that of another run around this one."""
    return os.path.isdir(os.path.join(entry or ".", "npuprof_inject"))


def _previous():
    """The spec of the sitecustomize that this one hides, or None."""
    saved = sys.path[:]
    sys.path[:] = [entry for entry in saved if not _is_ours(entry)]
    try:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find("sitecustomize", None) if find else None
            if spec is not None:
                return spec
    finally:
        sys.path[:] = saved
    return None


def _chain():
    spec = _previous()
    if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
        return
    from _frozen_importlib import module_from_spec  # as importlib.util's, without its 2 ms
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module  # what the import of this file returns, too
    spec.loader.exec_module(module)  # what it raises is told by site, as ever


_start()
_chain()
