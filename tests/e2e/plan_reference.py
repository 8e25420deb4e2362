"""torch_npu's profiler as a state machine that is stepped, one event at a time.

Written from the description of schedule() and of the transitions, not from npuprof: what
npuprof works out in one go is here what is left after K calls of step() and a stop().
"""

NONE, WARMUP, RECORD, SAVE = "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"

WARNINGS = {
    WARMUP: "Incorrect schedule: Stop profiler while current state is WARMUP which will result "
            "in empty parsed data.",
    RECORD: "Incorrect schedule: Stop profiler while current state is RECORD which may result in "
            "incomplete parsed data.",
    SAVE: "Stop profiler while current state is RECORD_AND_SAVE, perhaps the scheduling cycle "
          "has not yet completed.",
}

# from → to: what happens, in order
TRANSITIONS = {
    (NONE, NONE): [],
    (NONE, WARMUP): ["init", "warmup"],
    (NONE, RECORD): ["init", "start"],
    (NONE, SAVE): ["init", "start"],
    (NONE, None): [],
    (WARMUP, NONE): ["W1", "start", "stop", "finalize"],
    (WARMUP, WARMUP): [],
    (WARMUP, RECORD): ["start"],
    (WARMUP, SAVE): ["start"],
    (WARMUP, None): ["warn", "finalize", "delete"],
    (RECORD, NONE): ["W2", "stop", "finalize"],
    (RECORD, WARMUP): ["W3", "stop", "finalize"],
    (RECORD, RECORD): [],
    (RECORD, SAVE): [],
    (RECORD, None): ["warn", "stop", "finalize", "ready"],
    (SAVE, NONE): ["stop", "finalize", "ready"],
    (SAVE, WARMUP): ["stop", "finalize", "ready", "init", "warmup"],
    (SAVE, RECORD): ["stop", "finalize", "ready", "init", "start"],
    (SAVE, SAVE): ["stop", "finalize", "ready", "init", "start"],
    (SAVE, None): ["warn", "stop", "finalize", "ready"],
}


def is_int(value):
    return isinstance(value, int)


class Schedule:
    def __init__(self, *, wait, active, warmup=0, repeat=0, skip_first=0, skip_first_wait=0):
        self.resets = []
        self.wait = self.sane("wait", wait, is_int(wait) and wait >= 0, 0)
        self.warmup = self.sane("warmup", warmup, is_int(warmup) and warmup >= 0, 0)
        self.active = self.sane("active", active, is_int(active) and active > 0, 1)
        self.repeat = self.sane("repeat", repeat, is_int(repeat) and repeat >= 0, 0)
        self.skip_first = self.sane("skip_first", skip_first,
                                    is_int(skip_first) and skip_first >= 0, 0)
        self.skip_first_wait = self.sane("skip_first_wait", skip_first_wait,
                                         is_int(skip_first_wait), 0)

    def sane(self, name, value, good, instead):
        if not good:
            self.resets.append(f"Invalid parameter {name}, reset it to {instead}.")
        return value if good else instead

    def __call__(self, step):
        if step < self.skip_first:
            return NONE
        step -= self.skip_first
        if self.skip_first_wait != 0:
            step += self.wait
        cycle = self.wait + self.warmup + self.active
        if self.repeat > 0 and step / cycle >= self.repeat:
            return NONE
        place = step % cycle
        if place < self.wait:
            return NONE
        if place < self.wait + self.warmup:
            return WARMUP
        return RECORD if place < cycle - 1 else SAVE


class Profiler:
    """step() and stop(); what they leave is in the lists."""

    def __init__(self, schedule):
        self.schedule = schedule
        self.number = 0
        self.action = schedule(0)
        self.warnings, self.oddities = [], []
        self.directories = []  # a dict per init
        self.ready_calls = []  # number of the step() call, "stop" for stop()
        self.actions = [self.action]
        self.exit_state = None

    def go(self, old, new, call):
        for event in TRANSITIONS[old, new]:
            if event == "init":
                self.directories.append({"steps": [], "ready": False, "deleted": False})
            elif event == "ready":
                self.ready_calls.append(call)
                self.directories[-1]["ready"] = True
            elif event == "delete":
                self.directories[-1]["deleted"] = True
            elif event == "warn":
                self.warnings.append(WARNINGS[old])
            elif event.startswith("W"):
                self.oddities.append(event)
        if new in (RECORD, SAVE):
            self.directories[-1]["steps"].append(self.number)

    def start(self):
        self.go(NONE, self.action, 0)

    def step(self):
        old = self.action
        self.number += 1
        self.action = self.schedule(self.number)
        self.actions.append(self.action)
        self.go(old, self.action, self.number)

    def stop(self):
        self.exit_state = self.action
        self.go(self.action, None, "stop")

    def complete(self):
        """Directories with all active steps that reached their reader."""
        return [d for d in self.directories
                if d["ready"] and len(d["steps"]) == self.schedule.active]


def run(schedule, steps):
    profiler = Profiler(schedule)
    profiler.start()
    for _ in range(steps):
        profiler.step()
    profiler.stop()
    return profiler


def ranges(numbers):
    """[5, 6, 7, 12] → "5-7, 12"."""
    parts = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in parts)
