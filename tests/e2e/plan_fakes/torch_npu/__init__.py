"""torch_npu.profiler as a snippet sees it; what it records goes to $PLAN_RESULT as JSON."""
import atexit
import json
import os

import plan_reference

WORK = []  # what has run since the last step(), filled by the test's functions
CAPTURES = []


class ProfilerLevel:
    Level1, Level2 = "Level1", "Level2"


class AiCMetrics:
    PipeUtilization, ArithmeticUtilization, Memory = "PipeUtilization", "ArithmeticUtilization", \
        "Memory"
    MemoryL0, MemoryUB, L2Cache = "MemoryL0", "MemoryUB", "L2Cache"
    ResourceConflictRatio, MemoryAccess = "ResourceConflictRatio", "MemoryAccess"
    AiCoreNone = "AiCoreNone"


class ExportType:
    Text, Db = "text", "db"


class ProfilerActivity:
    CPU, NPU = "CPU", "NPU"


class Profile:
    def __init__(self, *, activities, with_stack, record_shapes, profile_memory,
                 experimental_config, schedule, on_trace_ready):
        self.machine = plan_reference.Profiler(schedule)
        self.result = {"config": experimental_config, "activities": activities,
                       "flags": [with_stack, record_shapes, profile_memory],
                       "handler": on_trace_ready, "work": {}}
        CAPTURES.append(self.result)

    def start(self):
        WORK.clear()
        self.machine.start()

    def close_step(self):
        if WORK:
            self.result["work"][self.machine.number] = list(WORK)
        WORK.clear()

    def step(self):
        self.close_step()
        self.machine.step()

    def stop(self):
        self.close_step()
        self.machine.stop()
        machine = self.machine
        self.result.update(directories=machine.directories, warnings=machine.warnings,
                           oddities=machine.oddities, exit=machine.exit_state,
                           ready=machine.ready_calls)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        return False


def handler(dir_name, worker_name=None, analyse_flag=True, async_mode=False):
    return {"dir": dir_name, "worker": worker_name, "analyse": analyse_flag, "async": async_mode}


class profiler:  # pylint: disable=invalid-name
    ProfilerLevel, AiCMetrics, ExportType = ProfilerLevel, AiCMetrics, ExportType
    ProfilerActivity = ProfilerActivity
    profile = Profile
    tensorboard_trace_handler = staticmethod(handler)
    schedule = plan_reference.Schedule

    @staticmethod
    def _ExperimentalConfig(**words):  # pylint: disable=invalid-name
        return words


@atexit.register
def tell():
    with open(os.environ["PLAN_RESULT"], "w", encoding="utf-8") as file:
        json.dump(CAPTURES, file)
