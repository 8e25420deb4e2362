"""Stages of the model: which code a collective belongs to, and which step and request it is.

A stage is open while the function at its anchor runs. Stages nest ("request/dit"); a call of a
stage inside itself is part of it. Each thread has stages of its own, and each task of asyncio
(contextvars). A thread that Python did not start, as autograd's, has those of the one Python
thread that has stages open, if there is exactly one.
"""
import contextvars
import functools
import inspect
import threading
import time
import types

from .comm_log import NO_U32


DEFAULT_REQUEST = "request"  # the stage whose calls are requests, where none is named


class Stage:
    """A stage within those around it; the same object each time."""
    __slots__ = ("name", "path", "names", "_inner")

    def __init__(self, name="", outer=None):
        self.name = name
        self.path = outer.path + "/" + name if outer and outer.name else name
        self.names = (outer.names if outer else frozenset()) | ({name} if name else set())
        self._inner = {}

    def inner(self, name):
        stage = self._inner.get(name)
        if stage is None:
            stage = self._inner[name] = Stage(name, self)
        return stage


NONE = Stage()
_current = contextvars.ContextVar("npuprof_stage", default=NONE)


class Stages:
    """mark(stage, ends, failed, nanoseconds): called at each begin and end; must not raise."""

    def __init__(self, anchors, step, request, mark):
        self.anchors = list(anchors)
        self.names = {anchor["name"] for anchor in self.anchors}
        self.calls = {name: 0 for name in self.names}
        self._step = step if step in self.names else None
        self.request_name = request or DEFAULT_REQUEST
        self._request = self.request_name if self.request_name in self.names else None
        self._mark = mark
        self._lock = threading.Lock()
        self._open = {}  # thread: [stage, how many]; for threads without stages of their own

    @property
    def step(self):
        return self.calls[self._step] if self._step else NO_U32

    @property
    def request(self):
        return self.calls[self._request] if self._request else NO_U32

    def current(self):
        stage = _current.get()
        if stage is NONE and self._open and _is_foreign():
            return self._only_one()
        return stage

    def _only_one(self):
        try:
            opened = list(self._open.values())
        except RuntimeError:  # changed meanwhile
            return NONE
        return opened[0][-1] if len(opened) == 1 else NONE

    def after_fork(self):
        """The forking thread is the only one of the child; its stages go on."""
        self._lock = threading.Lock()
        mine = self._open.get(threading.get_ident())
        self._open = {threading.get_ident(): mine} if mine else {}

    def enter(self, name):
        """What leave() takes; None inside a stage of this name."""
        outer = self.current()
        if name in outer.names:
            return None
        stage = outer.inner(name)
        with self._lock:
            self.calls[name] += 1
            self._open.setdefault(threading.get_ident(), []).append(stage)
        token = _current.set(stage)
        self._mark(stage, stage, False, False, 0)
        return stage, token, outer, time.perf_counter_ns(), threading.get_ident()

    def leave(self, entered, failed=False):
        stage, token, outer, begin, thread = entered
        self._mark(stage, outer, True, failed, time.perf_counter_ns() - begin)
        self.pause(token)
        with self._lock:
            mine = self._open.get(thread)
            if mine and stage in mine:
                mine.remove(stage)
            if not mine:
                self._open.pop(thread, None)

    def pause(self, token):
        try:
            _current.reset(token)
        except ValueError:  # left in another context than entered: an abandoned generator
            pass

    def resume(self, stage):
        return _current.set(stage)


def _is_foreign():
    """Is this a thread that Python did not start?"""
    thread = threading._active.get(threading.get_ident())
    return thread is None or isinstance(thread, threading._DummyThread)


def wrap(stages, name, function):
    """function, within the stage; of the same kind: plain, coroutine, generator."""
    if inspect.iscoroutinefunction(function):
        wrapper = _wrap_coroutine(stages, name, function)
    elif inspect.isasyncgenfunction(function):
        wrapper = _wrap_async_generator(stages, name, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _wrap_generator(stages, name, function)
    else:
        wrapper = _wrap_plain(stages, name, function)
    names = getattr(function, "__globals__", None)
    if isinstance(names, dict):  # who looks for the globals of the function finds the user's
        wrapper = types.FunctionType(wrapper.__code__, names, wrapper.__name__, None,
                                     wrapper.__closure__)
    return functools.wraps(function)(wrapper)


def _wrap_plain(stages, name, function):
    def wrapper(*args, **kwargs):
        entered = stages.enter(name)
        if entered is None:
            return function(*args, **kwargs)
        failed = True
        try:
            result = function(*args, **kwargs)
            failed = False
            return result
        finally:
            stages.leave(entered, failed)
    return wrapper


def _wrap_coroutine(stages, name, function):
    async def wrapper(*args, **kwargs):
        entered = stages.enter(name)
        if entered is None:
            return await function(*args, **kwargs)
        failed = True
        try:
            result = await function(*args, **kwargs)
            failed = False
            return result
        finally:
            stages.leave(entered, failed)
    return wrapper


def _wrap_generator(stages, name, function):
    """The stage is open only while the generator runs, not while its caller does."""
    def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        entered = stages.enter(name)
        if entered is None:
            return (yield from generator)
        stage, token = entered[:2]
        sent = error = None
        failed = True
        try:
            while True:
                try:
                    item = generator.send(sent) if error is None else generator.throw(error)
                except StopIteration as stop:
                    failed = False
                    return stop.value
                stages.pause(token)
                sent = error = None
                try:
                    sent = yield item
                except GeneratorExit:
                    generator.close()
                    failed = False
                    raise
                except BaseException as thrown:
                    error = thrown
                finally:
                    token = stages.resume(stage)
        finally:
            stages.leave((stage, token) + entered[2:], failed)
    return wrapper


def _wrap_async_generator(stages, name, function):
    async def wrapper(*args, **kwargs):
        generator = function(*args, **kwargs)
        entered = stages.enter(name)
        if entered is None:
            async for item in generator:
                yield item
            return
        stage, token = entered[:2]
        sent = error = None
        failed = True
        try:
            while True:
                try:
                    item = await (generator.asend(sent) if error is None
                                  else generator.athrow(error))
                except StopAsyncIteration:
                    failed = False
                    return
                stages.pause(token)
                sent = error = None
                try:
                    sent = yield item
                except GeneratorExit:
                    await generator.aclose()
                    failed = False
                    raise
                except BaseException as thrown:
                    error = thrown
                finally:
                    token = stages.resume(stage)
        finally:
            stages.leave((stage, token) + entered[2:], failed)
    return wrapper
