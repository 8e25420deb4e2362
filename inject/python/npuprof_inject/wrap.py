"""The wrapper around a target: it counts, and hands the chosen calls to step.

A wrapper is of the same kind as what it wraps (function, coroutine function, generator function,
asynchronous generator function; inside a staticmethod, classmethod, partial or partialmethod), carries
its name, signature, documentation and attributes, and lives in its global names: who reads the
source or the globals of a function (torch.jit.script, typing) finds those of the user's.

The count is a C iterator, advanced in one step under the interpreter's lock: no call is counted twice
or lost, and no thread waits. The code of a wrapper uses nothing but its closure.
"""
import functools
import types

from . import step

COROUTINE, GENERATOR, ASYNC_GENERATOR, ITERABLE_COROUTINE = 0x80, 0x20, 0x200, 0x100


class Refused(Exception):
    """Why something cannot be wrapped without changing what the program sees."""


def rewrap(raw, target, in_class):
    """(what takes the place of raw, the original function, its kind); raises Refused."""
    kind = type(raw)
    if kind is staticmethod or kind is classmethod:
        new, function, _ = rewrap(raw.__func__, target, False)
        return kind(new), function, kind.__name__
    if kind is functools.partial or kind is functools.partialmethod:
        new, function, inner = rewrap(raw.func, target, in_class)
        return kind(new, *raw.args, **raw.keywords), function, inner
    if kind is types.FunctionType or kind.__name__ == "cython_function_or_method":
        return _wrapper(raw, target), raw, "method" if in_class else "function"
    if kind is types.MethodType or (kind is types.BuiltinFunctionType and not in_class):
        return _wrapper(raw, target), raw, "method" if kind is types.MethodType else "function"
    if isinstance(raw, type):
        raise Refused("it is a class; name one of its methods")
    if callable(raw):
        raise Refused("it is an object of type %s, not a function; name a method of its class"
                      % kind.__name__)
    raise Refused("it is a %s, which cannot be called" % kind.__name__)


def _wrapper(function, target):
    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & ITERABLE_COROUTINE:  # its wrapper would need the same flag
        make = _plain
    elif flags & ASYNC_GENERATOR:
        make = _async_generator
    elif flags & COROUTINE:
        make = _coroutine
    elif flags & GENERATOR:
        make = _generator
    else:
        make = _plain if target.phase is None else _phase
    wrapper = make(function, target, target.tick)
    names = getattr(function, "__globals__", None)
    if isinstance(names, dict):
        wrapper = types.FunctionType(wrapper.__code__, names, wrapper.__name__, None,
                                     wrapper.__closure__)
    functools.update_wrapper(wrapper, function)
    step.skip_compiler(wrapper)
    return wrapper


def _plain(function, target, tick):
    reached = step.reached

    def wrapper(*args, **kwargs):
        number = tick()
        if number < target.limit:
            return function(*args, **kwargs)
        return reached(target, number, function, args, kwargs)
    return wrapper


def _phase(function, target, _):
    reached, count = step.reached, target.count

    def wrapper(*args, **kwargs):
        number = count(args, kwargs)
        if number < target.limit:
            return function(*args, **kwargs)
        return reached(target, number, function, args, kwargs)
    return wrapper


def _coroutine(function, target, _):
    begin, count = step.begin, target.count

    async def wrapper(*args, **kwargs):
        number = count(args, kwargs)
        capture = begin(target, number) if number >= target.limit else None
        if capture is None:
            return await function(*args, **kwargs)
        with capture:
            return await function(*args, **kwargs)
    return wrapper


def _generator(function, target, _):
    begin, count = step.begin, target.count

    def wrapper(*args, **kwargs):
        number = count(args, kwargs)
        capture = begin(target, number) if number >= target.limit else None
        if capture is None:
            return (yield from function(*args, **kwargs))
        with capture:
            return (yield from function(*args, **kwargs))
    return wrapper


def _async_generator(function, target, _):
    begin, count, delegate, nothing = step.begin, target.count, _delegate, _Nothing()

    async def wrapper(*args, **kwargs):
        number = count(args, kwargs)
        capture = begin(target, number) if number >= target.limit else None
        with capture or nothing:
            inner = function(*args, **kwargs)
            following = inner.__anext__()
            while True:
                more, item = await delegate(following)
                if not more:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    following = inner.athrow(error)
                else:
                    following = inner.asend(sent)
    return wrapper


async def _delegate(following):
    try:
        return True, await following
    except StopAsyncIteration:
        return False, None


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *what):
        return False
