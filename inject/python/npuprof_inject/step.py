"""The profiler around the chosen calls, once per process (docs/guide/inject.md).

    calls of the target     1 … call-1 │ call … call+active-1      │ later
    what happens            pass       │ start, step() after each, │ pass
                                       │ stop after the last       │

The schedule has wait=0, warmup=0, repeat=1, so after exactly `active` step() calls the profiler is
in the state NONE and stop() is clean. Warm-up lies outside of it: it is the calls before. A window that
ends early (an exception, the end of the process) is drained: the missing step() calls are made, then
stop(). Only one thread is recorded, and only calls that are not inside of one another. Nothing is
parsed here; that takes a process of its own.
"""
import os
import sys
import time
from _thread import RLock, allocate_lock

from . import events, ranks

NEVER = float("inf")

targets = []  # all of them
_settings = None
_lock = allocate_lock()  # taken by the chosen call only, and never waited for
_capture = None
_over = False
_abandoned = []  # profilers of the parent, kept from being stopped in a child of fork()


def setup(settings, everyone):
    """Once; later calls do nothing."""
    global _settings
    if _settings is not None:
        return
    _settings = settings
    targets.extend(everyone)
    os.register_at_fork(after_in_child=_after_fork)


def reached(target, number, function, args, kwargs):
    """The user's call, profiled if it is to be."""
    capture = begin(target, number)
    if capture is None:
        return function(*args, **kwargs)
    with capture:
        return function(*args, **kwargs)


def begin(target, number):
    """The capture that this call belongs to, a context manager; None: just call. Never raises."""
    if _over:
        target.limit = NEVER
        return None
    if not _lock.acquire(False):
        return None
    try:
        return _begin(target, number)
    except Exception as error:
        events.failed("profiler", error)
        _retire()
        return None
    finally:
        _lock.release()


def _begin(target, number):
    global _capture
    if _over:
        return None
    capture = _capture
    if capture is not None:
        return capture if capture.again(target) else None
    if ranks.is_loader_worker():
        _retire()
        return None
    if _settings.ranks is not None and (ranks.rank() or 0) not in _settings.ranks:
        events.write("skipped_rank", target=target.name)
        _retire()
        return None
    try:
        import torch_npu
    except Exception as error:  # a library that it needs may be missing as well
        events.write("no_torch_npu", error="%s: %s" % (type(error).__name__, error))
        events.say("%s reached call %d, but torch_npu cannot be imported: %s"
                   % (target.name, number - target.base, error))
        _retire()
        return None
    capture = _Capture(target, number, torch_npu.profiler)
    capture.start()
    _capture = capture
    return capture


def _retire():
    """No call of this process is profiled any more."""
    global _over
    _over = True
    for target in targets:
        target.limit = NEVER


def _after_fork():
    """A child counts for itself, and leaves the profiler of its parent alone."""
    global _capture, _over, _lock
    _lock = allocate_lock()
    if _capture is not None:
        _capture.closed = True
        _abandoned.append(_capture)
    _capture, _over = None, False
    for target in targets:
        target.restart()


class _Capture:
    """One window. `with` it around each of its calls."""

    def __init__(self, target, number, profiler):
        self.target, self.call, self.profiler = target, number - target.base, profiler
        self.thread = _thread()
        self.mutex = RLock()
        self.inside = True
        self.closed = False
        self.steps = 0
        self.before = set()
        self.began = time.monotonic()
        self.prof = None

    def start(self):
        self.before = self._dumps()
        self.prof = _make(self.profiler, _settings)
        _synchronize()
        self.began = time.monotonic()
        self.prof.start()
        # After the import of torch_npu, so before its own shutdown.
        events.on_exit(lambda: self.close("the process ends"))
        events.write("profiling", target=self.target.name, call=self.call, dir=self._dump())

    def again(self, target):
        """Is this call the next one of the window?"""
        if not self.thread.is_alive():
            self.close("the thread that was recorded has ended")
        if self.closed or self.inside or target is not self.target \
                or self.thread is not _thread():
            return False
        self.inside = True
        return True

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        try:
            with self.mutex:
                self.inside = False
                if not self.closed:
                    self._step(kind)
        except Exception as failure:
            self.closed = True
            _retire()
            events.failed("profiler", failure)
        return False

    def _step(self, kind):
        """One of the window's calls has ended, kind: with this exception."""
        _synchronize()
        self.prof.step()
        self.steps += 1
        if self.steps >= _settings.active:
            self.close(None)
        elif kind is not None and not issubclass(kind, GeneratorExit):
            self.close("%s in the call" % kind.__name__)

    def close(self, why):
        """Drain and stop, once."""
        if not self.mutex.acquire(timeout=30):  # a device that hangs must not hold up the exit
            return
        try:
            if not self.closed:
                self.closed = True
                _retire()
                self._stop(why)
        finally:
            self.mutex.release()

    def _stop(self, why):
        done = self.steps
        if why is not None and self.inside:
            done += 1  # the call that is under way is in the data
        for _ in range(self.steps, _settings.active):
            self.prof.step()
        state = getattr(self.prof, "current_action", None)
        self.prof.stop()
        self._tell(why, done, getattr(state, "name", str(state)))

    def _tell(self, why, done, state):
        seconds = time.monotonic() - self.began
        dump = self._dump()
        if dump is None:
            set_ = [name for name in ("PROFILER_SAMPLECONFIG", "PROFILING_MODE")
                    if os.environ.get(name)]
            raise RuntimeError("the profiler wrote no *_ascend_pt to %s%s" % (
                _settings.prof_dir, "; %s is set, which switches it off" % set_[0] if set_ else ""))
        events.write("profiled", target=self.target.name, call=self.call, dir=dump,
                     seconds=round(seconds, 6), state=state, steps=done, early=why)

    def _dumps(self):
        try:
            return set(os.listdir(_settings.prof_dir))
        except OSError:
            return set()

    def _dump(self):
        """The *_ascend_pt of this process that was not there before, or None."""
        mine = "_%d_" % os.getpid()
        found = sorted(name for name in self._dumps() - self.before
                       if mine in name and name.endswith("_ascend_pt"))
        return os.path.join(_settings.prof_dir, found[-1]) if found else None


def _thread():
    import threading
    return threading.current_thread()


def _make(profiler, settings):
    level = getattr(profiler.ProfilerLevel, settings.level)
    metrics = settings.aic_metrics
    if settings.level in ("Level0", "Level_none"):  # has none, and says so in a warning
        metrics = "AiCoreNone"
    export = list(settings.export_type)
    config = profiler._ExperimentalConfig(
        profiler_level=level, aic_metrics=getattr(profiler.AiCMetrics, metrics),
        export_type=export if len(export) > 1 else export[0])  # older ones know no list
    os.makedirs(settings.prof_dir, mode=0o750, exist_ok=True)
    return profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=0, warmup=0, active=settings.active, repeat=1,
                                   skip_first=0),
        on_trace_ready=profiler.tensorboard_trace_handler(settings.prof_dir, analyse_flag=False),
        record_shapes=settings.record_shapes, profile_memory=settings.profile_memory,
        with_stack=settings.with_stack, experimental_config=config)


def _synchronize():
    npu = getattr(sys.modules.get("torch"), "npu", None)
    if npu is not None:
        with events.guard("synchronize"):
            npu.synchronize()


def skip_compiler(wrapper):
    """torch.compile shall compile the user's function, not the wrapper in front of it."""
    from . import imports

    def skip(module):
        skip_code = getattr(module, "skip_code", None)
        if skip_code is not None:
            skip_code(wrapper.__code__)
    imports.after("torch._dynamo.eval_frame", skip)
