"""When to record: schedule() and its actions."""
from enum import Enum

from . import _log


class ProfilerAction(Enum):
    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class Schedule:
    def __init__(self, wait, active, warmup, repeat, skip_first, skip_first_wait):
        self.wait = self._clean("wait", wait, 0, 0)
        self.active = self._clean("active", active, 1, 1)
        self.warmup = self._clean("warmup", warmup, 0, 0)
        self.repeat = self._clean("repeat", repeat, 0, 0)
        self.skip_first = self._clean("skip_first", skip_first, 0, 0)
        self.skip_first_wait = self._clean("skip_first_wait", skip_first_wait, None, 0)
        if self.warmup == 0:
            _log.warn("Profiler won't be using warmup, this can skew profiler results")

    @staticmethod
    def _clean(name, value, least, default):
        if isinstance(value, int) and (least is None or value >= least):
            return value
        _log.warn(f"Invalid parameter {name}, reset it to {default}.")
        return default

    def as_dict(self):
        out = {"wait": self.wait, "active": self.active, "warmup": self.warmup,
               "repeat": self.repeat, "skip_first": self.skip_first}
        if self.skip_first_wait:
            out["skip_first_wait"] = self.skip_first_wait
        return out

    def __call__(self, step):
        if step < 0:
            raise ValueError("Invalid parameter step, which must be not less than 0.")
        if step < self.skip_first:
            return ProfilerAction.NONE
        step -= self.skip_first
        if self.skip_first_wait != 0:
            step += self.wait
        cycle = self.wait + self.warmup + self.active
        if self.repeat > 0 and step / cycle >= self.repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < cycle - 1 else ProfilerAction.RECORD_AND_SAVE


def schedule(*, wait, active, warmup=0, repeat=0, skip_first=0, skip_first_wait=0):
    return Schedule(wait, active, warmup, repeat, skip_first, skip_first_wait)


def always(step):
    """No schedule: every step is recorded, and none has a number."""
    return ProfilerAction.RECORD
