"""Callbacks once a module was imported, whoever imports it, and however late.

    after(name, callback)      callback(module) once, right after the module was imported;
                               at once if it is there already
    after(name, callback, every=True)    again whenever it is reloaded
    retry(function)            function() before each later import, until it returns True

A finder at the head of sys.meta_path lets the other finders search, and puts a loader of its own in
front of the one they found; that loader restores the original one, runs it, and then the callbacks.
So a module is told when its code has run to the end, but before who imports it goes on. A module
that came another way (its finder stands before ours, or it was being imported when after() was
called) is told at the next import of anything.
"""
import sys
from _thread import _local  # threading's own, without the rest of it

from . import events

_once = {}  # name: callbacks, not run yet
_every = {}  # name: callbacks, run at each execution
_told = set()  # names whose callbacks have run
_retries = []
_busy = _local()


def install():
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def after(name, callback, every=False):
    module = sys.modules.get(name)
    if module is not None and not _initialising(module):
        if every:
            _every.setdefault(name, []).append(callback)
            _told.add(name)
        _run(name, callback, module)
    else:
        (_every if every else _once).setdefault(name, []).append(callback)


def retry(function):
    _retries.append(function)


def _initialising(module):
    spec = getattr(module, "__spec__", None)
    return bool(getattr(spec, "_initializing", False))


def _run(name, callback, module):
    with events.guard("import of %s" % name):
        callback(module)


def _imported(name):
    """The code of a module has run: its callbacks."""
    module = sys.modules.get(name)
    if module is None:
        return
    _told.add(name)
    for callback in _once.pop(name, []):
        _run(name, callback, module)
    for callback in list(_every.get(name, [])):
        _run(name, callback, module)


def _look_again():
    """What was imported without our loader, and what waits for a name to appear."""
    for name in list(_once) + [name for name in _every if name not in _told]:
        module = sys.modules.get(name)
        if module is not None and not _initialising(module):
            _imported(name)
    for function in list(_retries):
        with events.guard("retry"):
            if function() and function in _retries:
                _retries.remove(function)


class _Finder:
    """Finds nothing itself."""

    def find_spec(self, name, path=None, target=None):
        busy = _busy.__dict__.setdefault("names", set())
        if name in busy:
            return None
        if not getattr(_busy, "looking", False):
            _busy.looking = True
            try:
                _look_again()
            finally:
                _busy.looking = False
        if name not in _once and name not in _every:
            return None
        busy.add(name)
        try:
            spec = _search(self, name, path, target)
        finally:
            busy.discard(name)
        if spec is not None and spec.loader is not None:
            kind = _Loader if hasattr(spec.loader, "exec_module") else _OldLoader
            spec.loader = kind(spec.loader)
        return spec

    def invalidate_caches(self):
        pass


def _search(self, name, path, target):
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if find and finder is not self else None
        if spec is not None:
            return spec
    return None


class _Loader:
    """In front of a loader until the module is executed; isinstance() sees the one behind it."""

    def __init__(self, loader):
        self._npuprof_loader = loader

    def __getattr__(self, name):  # get_code, get_data, path, is_package, …
        if name == "_npuprof_loader":  # a copy that is not initialised yet
            raise AttributeError(name)
        return getattr(self._npuprof_loader, name)

    @property
    def __class__(self):
        return type(self._npuprof_loader)

    def create_module(self, spec):
        create = getattr(self._npuprof_loader, "create_module", None)
        return create(spec) if create else None

    def exec_module(self, module):
        loader = self._npuprof_loader
        spec = getattr(module, "__spec__", None)
        if spec is not None and spec.loader is self:
            spec.loader = loader
        if getattr(module, "__loader__", None) is self:
            module.__loader__ = loader
        loader.exec_module(module)
        _imported(spec.name if spec is not None else module.__name__)


class _OldLoader:
    """The same for a loader without exec_module (zipimport before Python 3.10)."""

    def __init__(self, loader):
        self._npuprof_loader = loader

    def __getattr__(self, name):
        if name in ("_npuprof_loader", "exec_module", "create_module"):
            raise AttributeError(name)
        return getattr(self._npuprof_loader, name)

    def load_module(self, name):
        module = self._npuprof_loader.load_module(name)
        _imported(name)
        return module
