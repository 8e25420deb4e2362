"""Messages of the profiler: stdout, in the format that tools look for."""
import functools
import os
import sys
import time


def _say(level, text):
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    print(f"[{stamp}] [{level}] [{os.getpid()}] profiler.py: {text}", flush=True)


def info(text):
    _say("INFO", text)


def error(text):
    _say("ERROR", text)


def warn(text):
    if os.environ.get("RANK", "0") != "0":
        return
    if "1" in (os.environ.get("TORCH_NPU_WARNING_DISABLE"),
               os.environ.get("TORCH_NPU_DISABLED_WARNING")):
        return
    _say("WARNING", text)


def no_exception_func(result=None):
    """The decorator behind the false successes: what goes wrong becomes one line."""
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            try:
                return function(*args, **kwargs)
            except Exception as err:
                print(f"[ERROR] Call {function.__name__} failed. Exception: {err}", flush=True)
                sys.stdout.flush()
                return result
        return wrapper
    return decorate
