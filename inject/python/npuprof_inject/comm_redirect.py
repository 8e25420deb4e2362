"""Puts a hook into functions of torch, whoever has bound them already.

A name that another module, a default argument or a table holds is the function itself, so the
function stays the object that it is and gets other code: that calls hook(args, kwargs). The
original code moves to a new function, which the hook calls. torch compares these functions by
identity (P2POp, torch.compile), and goes on doing so.
"""
import functools
import inspect
import itertools
import types

_SOURCE = """\
def make({cells}):
    def {name}(*args, **kwargs):
        {use}{compiling}return {hook}(args, kwargs)
    return {name}
"""
_numbers = itertools.count()
_done = "_npuprof_hooked"


def hooked(function):
    return hasattr(function, _done)


def redirect(function, make_hook, compiling=None):
    """make_hook(original) is the hook. compiling(): torch.compile looks at the code; it is to
    see the original. False for what is no Python function of torch or torch_npu (a wrapper of the
    user's calls torch's in the end), or has a hook."""
    if not isinstance(function, types.FunctionType) or hooked(function):
        return False
    if not str(function.__module__).startswith("torch"):
        return False
    original = _copy(function)
    number = next(_numbers)
    names = {part: "_npuprof_%s_%d" % (part, number) for part in ("hook", "original", "compiling")}
    code = _code(function, names, compiling is not None)
    signature = inspect.signature(function)
    function.__globals__[names["original"]] = original
    function.__globals__[names["hook"]] = make_hook(original)
    if compiling is not None:
        function.__globals__[names["compiling"]] = compiling
    function.__code__ = code
    function.__signature__ = signature
    function.__wrapped__ = original
    setattr(function, _done, True)
    return True


def _copy(function):
    copy = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                              function.__defaults__, function.__closure__)
    copy = functools.update_wrapper(copy, function)
    copy.__kwdefaults__ = function.__kwdefaults__
    if "__wrapped__" in function.__dict__:
        copy.__wrapped__ = function.__wrapped__
    else:
        del copy.__wrapped__
    return copy


def _code(function, names, compiling):
    """A function's code may be replaced by one with as many free variables only."""
    cells = ["_npuprof_cell_%d" % i for i in range(len(function.__code__.co_freevars))]
    source = _SOURCE.format(
        cells=", ".join(cells), name=function.__name__, hook=names["hook"],
        use="".join(cell + "\n        " for cell in cells),
        compiling="if %s(): return %s(*args, **kwargs)\n        "
                  % (names["compiling"], names["original"]) if compiling else "")
    scope = {}
    exec(compile(source, "<npuprof: %s>" % function.__name__, "exec"), scope)
    return scope["make"](*cells).__code__
