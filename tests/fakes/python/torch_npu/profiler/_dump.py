"""The raw dump, and what an export makes of it."""
import atexit
import csv
import json
import os
import random
import re
import shutil
import socket
import string
import subprocess
import tempfile
import time

from . import _log

SEED = "seed.json"  # what the export needs, in the place of the device's data


def dir_name(worker):
    now = time.time()
    stamp = time.strftime("%Y%m%d%H%M%S", time.localtime(now)) + f"{int(now * 1000) % 1000:03d}"
    return f"{worker or socket.gethostname()}_{os.getpid()}_{stamp}_ascend_pt"


def rank_of_process():
    """As torch_npu finds it: RANK as a string, else torch.distributed, else None."""
    if os.environ.get("RANK") is not None:
        return os.environ["RANK"]
    try:
        import torch.distributed as dist
        if dist.is_available() and dist.is_initialized():
            return dist.get_rank()
    except Exception:
        pass
    return None


def world_size():
    try:
        return max(1, int(os.environ.get("WORLD_SIZE", "1")))
    except ValueError:
        return 1


def _save(path, text):
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    with open(path, "w") as out:
        out.write(text)
    os.chmod(path, 0o640)


def write_raw(path, info, metadata, steps, activities):
    """FRAMEWORK, PROF_*, profiler_info and profiler_metadata."""
    if os.environ.get("FAKE_NPU_NO_DUMP"):
        return
    rank = rank_of_process()
    if rank is not None:
        info["rank_id"] = rank
        metadata.setdefault("parallel_group_info", {"group_name_0": {
            "group_name": "default_group", "group_rank": int(rank),
            "global_ranks": list(range(world_size()))}})
    if "CPU" in activities:
        ranges = "".join(f"ProfilerStep#{step}\n" for step in steps)
        _save(f"{path}/FRAMEWORK/torch.op_range", ranges)
        _save(f"{path}/FRAMEWORK/torch.op_mark", "enqueue dequeue\n")
    if "NPU" in activities:
        number = "".join(random.choice(string.ascii_uppercase) for _ in range(16))
        prof = f"{path}/PROF_000001_{time.strftime('%Y%m%d%H%M%S')}000_{number}"
        device = int(os.environ.get("LOCAL_RANK", "0"))
        seed = {"steps": steps, "world": world_size(), "rank": int(rank or 0),
                "faults": os.environ.get("FAKE_NPU_FAULTS", "")}
        _save(f"{prof}/host/info.json", json.dumps({"rank_id": int(rank or -1), "pid":
                                                    str(os.getpid())}))
        _save(f"{prof}/host/data/aging.api_event.data.slice_0", "host")
        _save(f"{prof}/device_{device}/info.json.{device}", "{}")
        _save(f"{prof}/device_{device}/data/stars_soc.data.{device}.slice_0", "device")
        _save(f"{prof}/device_{device}/data/{SEED}", json.dumps(seed))
    name = "profiler_info.json" if rank is None else f"profiler_info_{rank}.json"
    _save(f"{path}/{name}", json.dumps(info, indent=4))
    _save(f"{path}/profiler_metadata.json", json.dumps(metadata))


def is_dump(path):
    return os.path.isdir(path) and any(
        name == "FRAMEWORK" or name.startswith("PROF_") for name in os.listdir(path))


def candidates(path):
    """The directory itself when it is a dump, and those directly below it that are."""
    found = [path] if is_dump(path) else []
    return found + [os.path.join(path, name) for name in sorted(os.listdir(path))
                    if is_dump(os.path.join(path, name))]


def read_info(path):
    for name in sorted(os.listdir(path)):
        if re.fullmatch(r"profiler_info(_\d+)?\.json", name):
            with open(os.path.join(path, name)) as text:
                return json.load(text)
    raise RuntimeError(f"no profiler_info in {path}")


def _seed(path):
    for top in sorted(os.listdir(path)):
        for device in sorted(os.listdir(os.path.join(path, top))) \
                if top.startswith("PROF_") else []:
            file = os.path.join(path, top, device, "data", SEED)
            if os.path.exists(file):
                with open(file) as text:
                    return json.load(text)
    return None


def _synth(words):
    """The directory of a set of captures with these properties, made once per cache."""
    program = os.environ.get("NPUPROF") or shutil.which("npuprof")
    if not program:
        raise RuntimeError("the stand-in for torch_npu wants NPUPROF=/path/to/npuprof")
    cache = os.environ.get("FAKE_NPU_CACHE")
    if not cache:
        cache = tempfile.mkdtemp(prefix="fake-npu-")
        atexit.register(shutil.rmtree, cache, ignore_errors=True)
    os.makedirs(cache, exist_ok=True)
    key = re.sub(r"[^0-9A-Za-z]+", "_", " ".join(words))
    target = os.path.join(cache, key)
    if not os.path.isdir(target):
        temp = tempfile.mkdtemp(dir=cache)
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        subprocess.run([program, "synth", os.path.join(temp, "set"), *words], check=True,
                       stdout=subprocess.DEVNULL, env=env)
        try:
            os.rename(os.path.join(temp, "set"), target)
        except OSError:  # another process was faster
            pass
        shutil.rmtree(temp, ignore_errors=True)
    return target


def _drop_metrics(file):
    with open(file, newline="") as text:
        rows = list(csv.reader(text))
    keep = [i for i, name in enumerate(rows[0])
            if not re.match(r"ai[cv]_|aicore_|cube_", name)]
    with open(file, "w", newline="") as out:
        csv.writer(out, lineterminator="\n").writerows([[row[i] for i in keep if i < len(row)]
                                                        for row in rows])


def _unwanted(config, seed):
    """Names that this configuration does not produce."""
    level = config["experimental_config"]["_profiler_level"]
    common = config["common_config"]
    names = set()
    if level == "Level_none":
        names |= {"kernel_details.csv", "step_trace_time.csv"}
    if level in ("Level0", "Level_none"):
        names |= {"op_statistic.csv", "api_statistic.csv"}
    if level in ("Level0", "Level_none") or seed is None or seed["world"] < 2:
        names |= {"communication.json", "communication_matrix.json"}
    if not common["profile_memory"]:
        names |= {"operator_memory.csv", "memory_record.csv", "npu_module_mem.csv"}
    if "ProfilerActivity.CPU" not in common["activities"]:
        names |= {"operator_details.csv"}
    if seed is None:
        names |= {"kernel_details.csv", "step_trace_time.csv", "op_statistic.csv",
                  "api_statistic.csv"}
    return names


def _words(info, seed, export_type):
    config = info["config"]
    level = {"Level1": "1", "Level2": "2"}.get(
        config["experimental_config"]["_profiler_level"], "0")
    seed = seed or {"world": 1, "steps": [0], "faults": "host-only"}
    words = ["--ranks", str(seed["world"]), "--steps", str(max(1, len(seed["steps"]))),
             "--layers", "2", "--level", level, "-f", ",".join(export_type),
             # the gate compares clocks within the hour; one set serves ten minutes
             "--start-epoch", str(info["end_info"]["collectionTimeEnd"] // 10**9 // 600 * 600)]
    for fault in filter(None, seed["faults"].split(",")):
        words += ["--fault", fault]
    return words


def export(path, export_type=None, layout="torch"):
    """Write ASCEND_PROFILER_OUTPUT of a dump; layout "mindstudio": only what msprof writes."""
    info = read_info(path)
    config = info["config"]
    seed = _seed(path)
    types = export_type or config["experimental_config"]["_export_type"]
    types = [types] if isinstance(types, str) else types
    rank = seed["rank"] if seed else 0
    source = _of_rank(_synth(_words(info, seed, types)), rank)
    target = os.path.join(path, "ASCEND_PROFILER_OUTPUT")
    if layout == "mindstudio":
        prof = next(name for name in os.listdir(path) if name.startswith("PROF_"))
        target = os.path.join(path, prof, "mindstudio_profiler_output")
    os.makedirs(target, mode=0o750, exist_ok=True)
    unwanted = _unwanted(config, seed)
    names = sorted(os.listdir(source))
    if os.environ.get("FAKE_NPU_SLOW"):  # the real one writes side by side: in no order
        random.shuffle(names)
    for name in names:
        if name in unwanted:
            continue
        as_name = "op_summary_20250601080000.csv" if layout == "mindstudio" and \
            name == "kernel_details.csv" else name
        if layout == "mindstudio" and not as_name.startswith("op_summary"):
            continue
        _copy(os.path.join(source, name), os.path.join(target, as_name))
        experimental = config["experimental_config"]
        if name == "kernel_details.csv" and experimental["_aic_metrics"] == "ACL_AICORE_NONE" \
                and experimental["_profiler_level"] != "Level0":
            _drop_metrics(os.path.join(target, as_name))


def _copy(source, target):
    """FAKE_NPU_SLOW: seconds per file, which is written in pieces, some of whole lines."""
    slow = float(os.environ.get("FAKE_NPU_SLOW", "0"))
    if not slow:
        shutil.copyfile(source, target)
        return
    with open(source, "rb") as text:
        data = text.read()
    with open(target, "wb", 0) as out:
        at = 0
        for piece in range(8):
            end = len(data) * (piece + 1) // 8
            if piece % 2 == 0:  # as a buffer is flushed after a row
                end = data.rfind(b"\n", at, end) + 1 or end
            out.write(data[at:end])
            at = end
            time.sleep(slow / 8)
        out.write(data[at:])


def _of_rank(root, rank):
    for name in sorted(os.listdir(root)):
        out = os.path.join(root, name, "ASCEND_PROFILER_OUTPUT")
        if os.path.exists(os.path.join(root, name, f"profiler_info_{rank}.json")) and \
                os.path.isdir(out):
            return out
    raise RuntimeError(f"synth made nothing for rank {rank}")


def done(path):
    _save(os.path.join(path, "ASCEND_PROFILER_OUTPUT", "analyse.done"), "")
    _log.info(f"All profiling data parsed in a total time of 0:00:00.{random.randrange(10**6):06d}")
