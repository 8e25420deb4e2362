"""What the tests of the preloaded library share: where it is, a strict reader of its logs
(comm_reader.py has the format), and the callers of tests/fakes/hccl."""
import glob
import os
import shlex
import struct
import subprocess

import comm_reader
from collect_lib import Skip

NO32, NO64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
ASYNC, FAILED = 1, 8
OPS = dict(HcclAllReduce=1, HcclBroadcast=2, HcclAllGather=3, HcclReduceScatter=4, HcclAlltoAll=5,
           HcclAlltoAllV=6, HcclReduce=7, HcclScatter=8, HcclSend=10, HcclRecv=11,
           HcclBatchSendRecv=12, HcclBarrier=13, HcclAllGatherV=14, HcclReduceScatterV=15,
           HcclAlltoAllVC=16)
COMM_INIT, COMM_DESTROY = 40, 41
HEADER, RECORD = comm_reader.HEADER_FORMAT, comm_reader.RECORD_FORMAT
HEADER_FIELDS = [name for name, _ in comm_reader.HEADER]
FIELDS = [name for name, _ in comm_reader.RECORD]


def library():
    path = os.environ.get("NPUPROF_COLLECTIVES", "")
    if not os.path.exists(path):
        raise Skip("NPUPROF_COLLECTIVES names no library")
    return os.path.abspath(path)


def fakes():
    return os.path.join(os.path.dirname(library()), "tests", "fakes", "hccl")


class Record:
    def __init__(self, values):
        self.__dict__.update(zip(FIELDS, values))

    def __repr__(self):
        return repr(self.__dict__)


class Log:
    """One file. Everything that must hold of any log is checked here, that of a killed process
    too: each slot is either the record that it should be, or none."""

    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.read(file)
        self.records.sort(key=lambda record: record.seq)
        if self.records:
            first, last = self.records[0].seq, self.records[-1].seq
            assert last - first + 1 == len(self.records), f"{path}: a record is missing inside"
            assert last - first < self.capacity and last in (self.written, self.written + 1), path
            if self.closed:
                assert first == max(1, last - self.capacity + 1), path
            else:  # the slot of the oldest may have been begun anew
                assert first <= max(1, last - self.capacity + 2), path

    def read(self, file):
        """read(), no map: to look at a hole takes a page on tmpfs, and a full one has none."""
        self.__dict__.update(zip(HEADER_FIELDS, HEADER.unpack_from(file.read(4096))))
        assert self.magic == b"NPCOMM1\n" and self.version == 1, self.path
        assert (self.header_bytes, self.record_bytes) == (4096, 128), self.path
        size = os.fstat(file.fileno()).st_size
        assert size == 4096 + self.string_capacity + 128 * self.capacity, (self.path, size)
        assert 8 <= self.string_bytes <= self.string_capacity
        self.strings = file.read(self.string_capacity)
        self.records = []
        for slot in range(self.capacity):
            data = file.read(128)
            if data[:8] == bytes(8):
                if slot > self.written:
                    assert not any(data[8:]), f"{self.path}: something beyond the last record"
                    break
                continue
            record = Record(RECORD.unpack(data))
            assert (record.seq - 1) % self.capacity == slot, (self.path, slot, record)
            for name in ("comm_name", "stage", "stage_path", "shape"):
                setattr(record, name, self.text(getattr(record, name)))
            self.records.append(record)

    def text(self, offset):
        if offset == 0:
            return None
        if offset == NO32:
            return "NO ROOM"
        length, = struct.unpack_from("<I", self.strings, offset)
        assert offset + 4 + length < self.string_bytes, (self.path, offset, length)
        assert self.strings[offset + 4 + length] == 0
        return self.strings[offset + 4:offset + 4 + length].decode()

    def calls(self):
        """Without the communicators' begin and end."""
        return [record for record in self.records if record.op < COMM_INIT]


def read_logs(directory):
    """All of a directory, but those of a process that was killed while it made the file."""
    return [Log(path) for path in sorted(glob.glob(os.path.join(directory, "*.nplog")))
            if not is_unborn(path)]


def is_unborn(path):
    with open(path, "rb") as file:
        return file.read(8) in (b"", bytes(8))  # before its size was set, or its header


# Of another machine's programs: "qemu-aarch64 -L SYSROOT" (tests/aarch64/preload.sh).
EMULATOR = shlex.split(os.environ.get("NPUPROF_EMULATOR", ""))


def emulated(command, env):
    """The command and the environment as the emulator takes them: the preloaded library is for
    the program in it, not for itself."""
    if not EMULATOR:
        return command, env
    own = {name: value for name, value in env.items() if not name.startswith("LD_")}
    theirs = [word for name, value in env.items() if name.startswith("LD_")
              for word in ("-E", f"{name}={value}")]
    return EMULATOR + theirs + command, own


def environment(comm, lib="new", **more):
    path = fakes()
    env = {**os.environ, "LD_PRELOAD": library(), "LC_ALL": "C.UTF-8",
           "LD_LIBRARY_PATH": f"{path}/{lib}:{path}"}
    for name in ("NPUPROF_COMM", "NPUPROF_INJECT_OFF", "RANK", "WORLD_SIZE", "LOCAL_RANK"):
        env.pop(name, None)
    if comm is not None:
        env["NPUPROF_COMM"] = comm
    env.update({name: str(value) for name, value in more.items()})
    return env


def caller(how):
    return os.path.join(fakes(), "hccl_caller_linked" if how == "linked" else "hccl_caller")


def run_caller(how, *words, comm, script=None, check=0, lib="new", preexec=None, **more):
    command, env = emulated([caller(how), how, *map(str, words)], environment(comm, lib, **more))
    done = subprocess.run(command, input=script, text=True, timeout=300, capture_output=True,
                          env=env, preexec_fn=preexec)
    if done.returncode != check:
        raise AssertionError(f"{how} {words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def comm_dir(tmp, name="comm"):
    path = os.path.join(tmp, name)
    os.mkdir(path)
    return path


def name_hash(name):
    """torch_npu's hash of a communicator's name."""
    high = low = 0
    for byte in name.encode():
        high, low = (high * 29 + byte) % 2**32, (low * 131 + byte) % 2**32
    return high << 32 | low
