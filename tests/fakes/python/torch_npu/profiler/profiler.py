"""profile(), its state machine, the trace handler, and analyse()."""
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time

from .. import npu
from . import _dump, _log
from ._config import ProfilerActivity, _ExperimentalConfig, clean_export_type, supported_activities
from ._schedule import ProfilerAction, always

NONE, WARMUP, RECORD, SAVE = (ProfilerAction.NONE, ProfilerAction.WARMUP, ProfilerAction.RECORD,
                              ProfilerAction.RECORD_AND_SAVE)
EXIT = None

W1 = "Incorrect schedule: WARMUP followed by NONE"
W2 = "Incorrect schedule: RECORD followed by NONE"
W3 = "Incorrect schedule: RECORD followed by WARMUP"
W4 = ("Incorrect schedule: Stop profiler while current state is WARMUP "
      "which will result in empty parsed data.")
W5 = ("Incorrect schedule: Stop profiler while current state is RECORD "
      "which may result in incomplete parsed data.")
W6 = ("Stop profiler while current state is RECORD_AND_SAVE, "
      "perhaps the scheduling cycle has not yet completed.")

# (from, to) → warning, actions
TRANSITIONS = {
    (NONE, WARMUP): (None, "init warmup"),
    (NONE, RECORD): (None, "init start"),
    (NONE, SAVE): (None, "init start"),
    (WARMUP, NONE): (W1, "start stop finalize"),
    (WARMUP, RECORD): (None, "start"),
    (WARMUP, SAVE): (None, "start"),
    (WARMUP, EXIT): (W4, "finalize del"),
    (RECORD, NONE): (W2, "stop finalize"),
    (RECORD, WARMUP): (W3, "stop finalize"),
    (RECORD, EXIT): (W5, "stop finalize ready"),
    (SAVE, NONE): (None, "stop finalize ready"),
    (SAVE, WARMUP): (None, "stop finalize ready init warmup"),
    (SAVE, RECORD): (None, "stop finalize ready init start"),
    (SAVE, SAVE): (None, "stop finalize ready init start"),
    (SAVE, EXIT): (W6, "stop finalize ready"),
}


class _PathCreator:
    """One per process: the handler that is made last decides for all."""
    dir_name = worker_name = None
    export_only = False


class _Dump:
    """One recording: from init to finalize."""
    current = None

    def __init__(self, owner):
        work = os.environ.get("ASCEND_WORK_PATH")
        parent = _PathCreator.dir_name or (work and os.path.join(work, "profiling_data")) or \
            os.getcwd()
        self.export_only = not owner.on_trace_ready and not work
        if self.export_only:
            parent = os.path.join(os.getcwd(), "export_only_prof_dir")
        self.path = os.path.join(parent, _dump.dir_name(_PathCreator.worker_name))
        while os.path.exists(self.path):  # two within a millisecond: only a stand-in can
            time.sleep(0.001)
            self.path = os.path.join(parent, _dump.dir_name(_PathCreator.worker_name))
        os.makedirs(self.path, mode=0o750)
        self.steps = []
        self.start_info = {}


class _KinetoProfile:
    def __init__(self, activities=None, record_shapes=False, profile_memory=False,
                 with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, custom_trace_id_callback=None):
        wanted = [one for one in activities or [] if one in supported_activities()]
        if activities and len(wanted) < len(list(activities)):
            _log.warn("Unsupported activities are dropped.")
        self.activities = set(wanted) or supported_activities()
        flags = {"record_shapes": record_shapes, "profile_memory": profile_memory,
                 "with_stack": with_stack, "with_flops": with_flops,
                 "with_modules": with_modules}
        for name, value in flags.items():
            if not isinstance(value, bool):
                _log.warn(f"Invalid parameter {name}, reset it to False.")
                flags[name] = False
        self.flags = flags
        if experimental_config and ProfilerActivity.NPU not in self.activities:
            _log.warn("Experimental config will not be used while "
                      "ProfilerActivity.NPU is not set.")
            experimental_config = None
        self.experimental_config = experimental_config or _ExperimentalConfig()
        self.on_trace_ready = None
        self.schedule = always
        self.metadata = {}
        self.actions = []
        self.dump = None
        self.step_num = 0

    def _disabled(self):
        if os.environ.get("PROFILER_SAMPLECONFIG"):
            _log.warn("If performance data is collected using the 'msprof' tool. torch_npu "
                      "profiler api is not effective.")
            return True
        return bool(os.environ.get("PROFILING_MODE"))

    def _do(self, action):
        self.actions.append(action)
        trace = os.environ.get("FAKE_NPU_TRACE")
        if trace:
            with open(trace, "a") as out:
                out.write(action + "\n")
        if not self._disabled():
            getattr(self, "_" + action)()

    def _init(self):
        self.dump = _Dump(self)

    def _warmup(self):
        pass

    def _start(self):
        if self.dump:
            self.dump.start_info = {"syscnt_enable": False, "freq": 100,
                                    "start_cnt": time.monotonic_ns() // 10,
                                    "start_monotonic": time.monotonic_ns()}

    def _stop(self):
        npu.synchronize()

    def _finalize(self):
        if not self.dump:
            return
        names = sorted(one.name for one in self.activities)
        plan = self.schedule.as_dict() if hasattr(self.schedule, "as_dict") else {}
        info = {"config": {"common_config": {
            "activities": ["ProfilerActivity." + name for name in names],
            "schedule": plan, **self.flags},
            "experimental_config": self.experimental_config.as_dict()},
            "start_info": self.dump.start_info,
            "end_info": {"collectionTimeEnd": time.time_ns(),
                         "MonotonicTimeEnd": time.monotonic_ns()},
            "torch_npu_version": "2.7.1", "cann_version": "8.3.RC1"}
        _dump.write_raw(self.dump.path, info, self.metadata, self.dump.steps, names)

    def _ready(self):
        if self.on_trace_ready:
            self.on_trace_ready(self)

    def _del(self):
        shutil.rmtree(self.dump.path, ignore_errors=True)
        self.dump = None

    def _transit(self, before, after):
        if before is EXIT or (before, after) not in TRANSITIONS:
            return
        warning, actions = TRANSITIONS[before, after]
        if warning:
            _log.warn(warning)
        for action in actions.split():
            self._do(action)

    @_log.no_exception_func()
    def start(self):
        self._do("init")
        self._do("start")

    @_log.no_exception_func()
    def stop(self):
        self._do("stop")
        self._do("finalize")

    @_log.no_exception_func()
    def export_chrome_trace(self, output_path):
        if not self.dump:
            raise RuntimeError("nothing was recorded")
        _dump.export(self.dump.path, ["text"])
        shutil.copyfile(os.path.join(self.dump.path, "ASCEND_PROFILER_OUTPUT/trace_view.json"),
                        output_path)

    @_log.no_exception_func()
    def add_metadata(self, key, value):
        if not isinstance(key, str) or not isinstance(value, str):
            raise ValueError("metadata must be strings")
        self.metadata[key] = value

    @_log.no_exception_func()
    def add_metadata_json(self, key, value):
        self.metadata[key] = json.loads(value)

    def prof_path(self):
        return self.dump.path if self.dump else None


class profile(_KinetoProfile):
    def __init__(self, activities=None, schedule=None, on_trace_ready=None, record_shapes=False,
                 profile_memory=False, with_stack=False, with_flops=False, with_modules=False,
                 experimental_config=None, use_cuda=None, custom_trace_id_callback=None):
        super().__init__(activities, record_shapes, profile_memory, with_stack, with_flops,
                         with_modules, experimental_config, custom_trace_id_callback)
        if use_cuda is not None:
            _log.warn("use_cuda is deprecated and ignored.")
        if schedule is not None and not callable(schedule):
            _log.warn("schedule is not Callable, set by default.")
            schedule = None
        self.record_steps = schedule is not None
        self.schedule = schedule or always
        self.on_trace_ready = on_trace_ready
        self.current_action = self.schedule(0)
        self.stopped = False
        self._step_open = False
        self._offset = 0  # dynamic profiling counts from the step that it began at

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *what):
        self.stop()

    def __del__(self):
        if not getattr(self, "stopped", True):
            self.stop()
        dump = getattr(self, "dump", None)
        if dump and dump.export_only:
            shutil.rmtree(dump.path, ignore_errors=True)

    def _open_step(self):
        self._step_open = True

    def _close_step(self, action):
        """The step is in the data when it was recorded."""
        if self._step_open and self.record_steps and self.dump and action in (RECORD, SAVE):
            self.dump.steps.append(self.step_num + self._offset)
        self._step_open = False

    @_log.no_exception_func()
    def start(self):
        self.stopped = False
        self._transit(NONE, self.current_action)
        self._open_step()

    @_log.no_exception_func()
    def step(self):
        if self.stopped:
            _log.warn("Profiler is stopped, step takes no effect!")
            return
        before = self.current_action
        self._close_step(before)
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit(before, self.current_action)
        self._open_step()

    @_log.no_exception_func()
    def stop(self):
        self._close_step(self.current_action)
        self._transit(self.current_action, EXIT)
        self.stopped = True

    @classmethod
    def enable_profiler_in_child_thread(cls, **flags):
        return None

    @classmethod
    def disable_profiler_in_child_thread(cls):
        npu.synchronize()


def tensorboard_trace_handler(dir_name=None, worker_name=None, analyse_flag=True,
                              async_mode=False):
    if worker_name is not None and not (isinstance(worker_name, str) and
                                        0 < len(worker_name) < 226):
        _log.warn("Invalid parameter worker_name, reset it to default.")
        worker_name = None
    if not isinstance(analyse_flag, bool):
        _log.warn("analyse_flag is not bool, set by default.")
        analyse_flag = True
    if not isinstance(async_mode, bool):
        _log.warn("async_mode is not bool, set by default.")
        async_mode = False
    _PathCreator.worker_name = worker_name
    _PathCreator.dir_name = None
    if dir_name is not None:
        _PathCreator.dir_name = os.path.realpath(dir_name)
        os.makedirs(_PathCreator.dir_name, mode=0o750, exist_ok=True)

    def handler(prof):
        path = prof.prof_path()
        if not path or not analyse_flag:
            return
        if async_mode:
            code = "import sys; from torch_npu.profiler.profiler import analyse; analyse(sys.argv[1])"
            subprocess.Popen([sys.executable, "-c", code, path])
        else:
            analyse(path)

    return handler


def _analyse(path, export_type):
    mode = os.environ.get("FAKE_NPU_ANALYSE", "")
    _log.info(f"Start parsing profiling data in sync mode at: {path}")
    while mode == "hang":
        time.sleep(1)
    if mode == "fail":
        raise RuntimeError("Export CANN Profiling data failed, please verify that the "
                           "ascend-toolkit is installed and set_env.sh is sourced.")
    if mode == "mindstudio":
        _dump.export(path, export_type, "mindstudio")
        _log.info("Export all data in PROF_000001 done.")
    elif mode != "lie":
        _dump.export(path, export_type)
    if mode == "lie":
        print("analyse() returned OK", flush=True)
        return
    _dump.done(path)


@_log.no_exception_func()
def analyse(profiler_path, max_process_number=os.cpu_count() // 2 or 1, export_type=None):
    if not isinstance(max_process_number, int) or max_process_number <= 0:
        _log.warn("Invalid parameter max_process_number, reset it to default.")
    if multiprocessing.current_process().daemon:
        _log.error("The profiling data cannot be parsed during the daemon process, "
                   "please use offline analyse.")
        return
    if not os.path.exists(profiler_path):
        raise RuntimeError(f"The path does not exist: {profiler_path}")
    if export_type is not None:
        export_type = clean_export_type(export_type, None)
    found = _dump.candidates(os.path.realpath(profiler_path))
    for path in found:
        output = os.path.join(path, "ASCEND_PROFILER_OUTPUT")
        shutil.rmtree(output, ignore_errors=True)
        os.makedirs(output, mode=0o750)
    for path in found:
        try:
            _analyse(path, export_type)
        except Exception as err:  # a worker's exception is never fetched
            _log.error(f"Task [CANNExportParser] run failed. {err}")
