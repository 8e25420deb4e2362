"""A stand-in for torch_npu.profiler.dynamic_profile, which behaves as the real one does
from outside: who makes the shared memory, what the monitor notices, when a rank starts, what
the logs say. Standard library only; importable without the rest of the fake torch_npu.

    NPUPROF_FAKE_DP_POLL     seconds between two looks of the monitor (the real one: 2)
    NPUPROF_SHM_DIR          where the shared memory is (the real one: /dev/shm)
    NPUPROF_FAKE_DP_SET      a result of `npuprof synth`: the dump of a rank is a copy of its
                             capture there. Else the profiler of the fake torch_npu makes it.
    NPUPROF_FAKE_DP_ANALYSE  seconds that analysing takes (default 0)
"""
import atexit
import glob
import json
import logging
import logging.handlers
import mmap
import os
import shutil
import signal
import socket
import struct
import threading
import time

SIZE = 1 << 20
PREFIX = "DynamicProfileNpuShm"
STALE_SECONDS = 900
LOG_BYTES = 200 * 1024
LEVELS = ("Level_none", "Level0", "Level1", "Level2")
TEMPLATE = {
    "activities": ["CPU", "NPU"], "prof_dir": "./", "analyse": False, "async_mode": False,
    "record_shapes": False, "profile_memory": False, "with_stack": False, "with_flops": False,
    "with_modules": False, "active": 1, "warmup": 0, "start_step": 0, "is_rank": False,
    "rank_list": [],
    "experimental_config": {
        "profiler_level": "Level0", "aic_metrics": "AiCoreNone", "l2_cache": False,
        "op_attr": False, "gc_detect_threshold": None, "data_simplification": True,
        "record_op_args": False, "export_type": ["text"], "msprof_tx": False, "mstx": False,
        "host_sys": [], "mstx_domain_include": [], "mstx_domain_exclude": [], "sys_io": False,
        "sys_interconnection": False},
    "metadata": {},
}


def _rank():
    try:
        return int(os.environ.get("RANK", "-1"))
    except ValueError:
        return -1


def _logger(directory, prefix):
    os.makedirs(directory, mode=0o750, exist_ok=True)
    name = f"{prefix}_{socket.gethostname()}_{os.getpid()}_rank_{_rank()}.log"
    logger = logging.getLogger(name)
    handler = logging.handlers.RotatingFileHandler(
        os.path.join(directory, name), maxBytes=LOG_BYTES, backupCount=1)
    handler.setFormatter(logging.Formatter(
        "[%(asctime)s] [%(levelname)s] [%(process)d] %(filename)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    return logger


def _shm_path():
    directory = os.environ.get("NPUPROF_SHM_DIR") or "/dev/shm"
    return os.path.join(directory, time.strftime(PREFIX + "%Y%m%d%H", time.localtime()))


def _process_start():
    with open("/proc/self/stat", encoding="utf-8") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/stat", encoding="utf-8") as file:
        boot = next(int(line.split()[1]) for line in file if line.startswith("btime"))
    return boot + ticks / os.sysconf("SC_CLK_TCK")


class _Config:
    """The configuration as the real one reads it: what is invalid is reset."""

    def __init__(self, data, rank, logger):
        def typed(key, check, default):
            value = data.get(key, default)
            return value if check(value) else default

        self.data = data
        self.prof_dir = data.get("prof_dir", "./")
        self.analyse = data.get("analyse", False)
        if not isinstance(self.analyse, bool):  # the handler's default
            self.analyse = True
        self.async_mode = typed("async_mode", lambda v: isinstance(v, bool), False)
        self.active = typed("active", lambda v: isinstance(v, int) and v > 0, 1)
        self.warmup = typed("warmup", lambda v: isinstance(v, int) and v >= 0, 0)
        self.start_step = typed("start_step", lambda v: isinstance(v, int) and v >= -1, 0)
        if self.start_step != data.get("start_step"):
            logger.warning("Start step is not valid, will be reset to %d.", self.start_step)
        self.is_rank = typed("is_rank", lambda v: isinstance(v, bool), False)
        ranks = data.get("rank_list")
        self.rank_list = [r for r in ranks if isinstance(r, int) and r >= 0] \
            if isinstance(ranks, list) else []
        self.valid = True
        if self.is_rank and rank not in self.rank_list:
            logger.warning("Rank %d not in valid rank_list %s!", rank, self.rank_list)
            self.valid = False
        elif self.is_rank and not self.async_mode:
            logger.warning("Rank %d is in rank_list %s and async_mode is false, analyse will "
                           "not take effect.", rank, self.rank_list)
            self.analyse = False


class _SetProfiler:
    """A profiler whose dump is a copy of a synth capture."""

    def __init__(self, config, rank):
        self.config, self.rank = config, rank
        now = time.time()
        name = f"{socket.gethostname()}_{os.getpid()}_" + \
            time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + \
            f"{int(now * 1000) % 1000:03d}_ascend_pt"
        self.path = os.path.join(config.prof_dir, name)
        self.left = config.active + config.warmup

    def start(self):
        os.makedirs(os.path.join(self.path, "FRAMEWORK"), mode=0o750)
        with open(os.path.join(self.path, "FRAMEWORK", "torch.op_range"), "wb") as file:
            file.write(bytes(64))

    def step(self):
        self.left -= 1
        if self.left == 0:
            self._dump()

    def stop(self):
        pass

    def _dump(self):
        source = os.path.dirname(glob.glob(os.path.join(
            os.environ["NPUPROF_FAKE_DP_SET"], "*_ascend_pt",
            f"profiler_info_{max(self.rank, 0)}.json"))[0])
        for name in os.listdir(source):
            if name.startswith("profiler_"):
                shutil.copyfile(os.path.join(source, name), os.path.join(self.path, name))
        if not self.config.analyse:
            return
        if self.config.async_mode:
            threading.Thread(target=self._analyse, args=(source,)).start()
        else:
            self._analyse(source)

    def _analyse(self, source):
        time.sleep(float(os.environ.get("NPUPROF_FAKE_DP_ANALYSE", "0")))
        output = os.path.join(self.path, "ASCEND_PROFILER_OUTPUT")
        shutil.copytree(os.path.join(source, "ASCEND_PROFILER_OUTPUT"), output,
                        copy_function=shutil.copyfile)
        with open(os.path.join(output, "analyse.done"), "w", encoding="utf-8"):
            pass


def _real_profiler(config):
    from torch_npu import profiler as api
    data = config.data
    inner = data.get("experimental_config") or {}
    known = {key: inner[key] for key in ("l2_cache", "data_simplification", "record_op_args")
             if key in inner}
    if inner.get("profiler_level") in LEVELS:
        known["profiler_level"] = getattr(api.ProfilerLevel, inner["profiler_level"])
    if hasattr(api.AiCMetrics, str(inner.get("aic_metrics"))):
        known["aic_metrics"] = getattr(api.AiCMetrics, inner["aic_metrics"])
    if "export_type" in inner:
        known["export_type"] = inner["export_type"]
    return api.profile(
        schedule=api.schedule(wait=0, warmup=config.warmup, active=config.active, repeat=1),
        on_trace_ready=api.tensorboard_trace_handler(
            config.prof_dir, analyse_flag=config.analyse, async_mode=config.async_mode),
        record_shapes=data.get("record_shapes", False),
        profile_memory=data.get("profile_memory", False),
        with_stack=data.get("with_stack", False),
        experimental_config=api._ExperimentalConfig(**known))


class _Dynamic:
    def __init__(self):
        self.ready = False
        self.prof = self.pending = None
        self.cur_step = self.left = 0

    # ── init ──
    def init(self, path):
        if self.ready:
            print("Init dynamic profiling repeatedly")
            return
        if not path or not os.path.isdir(path):
            print(f"The path '{path}' is invalid, and profiler will not be enabled.")
            return
        self.path = os.path.realpath(path)
        self.file = os.path.join(self.path, "profiler_config.json")
        self.rank = _rank()
        self.cur_time = int(time.time())
        self.log = _logger(os.path.join(self.path, "log"), "dp")
        self.creator = self._open_memory()
        if self.creator:
            if not os.path.exists(self.file):
                with open(self.file, "w", encoding="utf-8") as file:
                    json.dump(TEMPLATE, file, indent=4)
                os.chmod(self.file, 0o640)
                self.log.info("Create profiler_config.json default.")
            self._start_monitor()
        else:
            self.log.info("Rank %d no need to create process.", self.rank)
        self.last_step_at = time.monotonic()
        self.ready = True
        atexit.register(self._end)

    def _open_memory(self):
        self.shm_path = _shm_path()
        try:
            fd = os.open(self.shm_path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            fd = os.open(self.shm_path, os.O_RDWR)
            if _process_start() - os.fstat(fd).st_mtime > STALE_SECONDS:
                os.close(fd)
                text = ("There may exist shared memory before this task, if you kill the last "
                        f"task, dynamic profiling will not be valid. Please remove: {self.shm_path}")
                self.log.error(text)
                raise RuntimeError(text) from None
            # the creator may not have come to its size
            for _ in range(1000):
                if os.fstat(fd).st_size >= SIZE:
                    break
                time.sleep(0.002)
            self.memory = mmap.mmap(fd, SIZE)
            os.close(fd)
            self.log.info("Rank %d shared memory is connected.", self.rank)
            return False
        os.ftruncate(fd, SIZE)
        self.memory = mmap.mmap(fd, SIZE)
        os.close(fd)
        self.log.info("Rank %d shared memory is created.", self.rank)
        return True

    # ── the monitor ──
    def _start_monitor(self):
        last = int(os.stat(self.file).st_mtime)
        parent = os.getpid()
        self.monitor = os.fork()
        if self.monitor == 0:
            try:
                self._watch(parent, last)
            finally:
                os._exit(0)
        self.log.info("Dynamic monitor process has been created by rank %d.", self.rank)

    def _watch(self, parent, last):
        done = []
        signal.signal(signal.SIGTERM, lambda *_: done.append(1))
        log = _logger(os.path.join(self.path, "log"), "monitor_dp")
        poll = float(os.environ.get("NPUPROF_FAKE_DP_POLL") or 2)
        while not done and os.getppid() == parent:
            time.sleep(poll)
            try:
                mtime = int(os.stat(self.file).st_mtime)
            except OSError:
                log.warning("Dynamic profiler cfg json not exists")
                continue
            if mtime == last:
                continue
            last = mtime
            try:
                with open(self.file, encoding="utf-8") as file:
                    data = json.load(file)
            except (OSError, ValueError) as error:
                log.error("Dynamic profiler process load json failed, %s has occur!", error)
                continue
            text = json.dumps(data).encode()
            if len(text) > SIZE - 4:
                log.error("Load json failed, because cfg bytes size over %d bytes", SIZE - 4)
                continue
            self.memory[4:SIZE] = text.ljust(SIZE - 4)
            self.memory[0:4] = struct.pack("<I", mtime)
            log.info("Dynamic profiler process load json success")
        log.info("Dynamic profiler process done")

    # ── steps ──
    def _look(self):
        when = struct.unpack("<I", self.memory[0:4])[0]
        if when <= self.cur_time:
            return
        self.cur_time = when
        try:
            data = json.loads(self.memory[4:SIZE])
        except ValueError as error:
            self.log.error("Share memory bytes to json error: %s", error)
            return
        config = _Config(data, self.rank, self.log)
        if config.valid:
            self.pending = config

    def step(self):
        if not self.ready:
            return
        self.cur_step += 1
        if self.prof:
            self.prof.step()
            self.left -= 1
            if self.left == 0:
                self.prof.stop()
                self.prof = None
                self.log.info("Stop Dynamic Profiler at %d step.", self.cur_step)
        self._look()
        if self.prof or not self.pending:
            return
        config = self.pending
        if config.start_step == -1:
            config.start_step = self.cur_step
            self.log.info("Start step will be set to %d.", self.cur_step)
        if self.cur_step > config.start_step:
            if config.start_step:
                self.log.warning("Dynamic Profiler config is not effective. The start_step=%d, "
                                 "current_step=%d", config.start_step, self.cur_step)
            self.pending = None
        elif self.cur_step == config.start_step:
            self.pending = None
            self._start(config)

    def _start(self, config):
        if os.environ.get("NPUPROF_FAKE_DP_SET"):
            self.prof = _SetProfiler(config, self.rank)
        else:
            self.prof = _real_profiler(config)
        self.left = config.active + config.warmup
        self.prof.start()
        self.log.info("Start Dynamic Profiler at %d step.", self.cur_step)

    def start(self, config_path=None):
        if not self.ready:
            return
        if self.prof:
            self.log.error("Profiler already started. Cannot call start interface while the "
                           "profiler is active.")
            return
        path = config_path
        if not path or not os.path.isfile(path):
            self.log.error("The provided config_path is invalid: %s", path)
            path = self.file
        self.log.info("The start interface profiler enable config path is set to %s", path)
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if not data:
            self.log.error("The config data is empty from: %s", path)
            return
        self._start(_Config({**data, "is_rank": False}, self.rank, self.log))

    def set_state(self, state):
        if isinstance(state, dict) and isinstance(state.get("cur_step"), int) \
                and state["cur_step"] >= 0:
            self.cur_step = state["cur_step"]
        else:
            print("[ERROR] set_state: cur_step has to be an integer of at least 0")

    def _end(self):
        if self.prof:
            self.prof.stop()
            self.log.warning("Profiler stop when process exit, check cfg json active whether "
                             "over all step!")
        if not self.creator or not self.monitor:
            return
        os.kill(self.monitor, signal.SIGTERM)
        os.waitpid(self.monitor, 0)
        if os.path.exists(self.shm_path):
            os.unlink(self.shm_path)
            self.log.info("Rank %d unlink shm", self.rank)


_dynamic = _Dynamic()


def init(path):
    _dynamic.init(path)


def step():
    _dynamic.step()


def start(config_path=None):
    _dynamic.start(config_path)


def set_state(state):
    _dynamic.set_state(state)
