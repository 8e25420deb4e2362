"""Reads collective logs: written from include/npuprof/comm_log.h, and from nothing else.

    for log in read_dir(directory): log.header, log.records, log.torn
"""
import glob
import os
import struct

OPS = {1: "all_reduce", 2: "broadcast", 3: "all_gather", 4: "reduce_scatter", 5: "all_to_all",
       6: "all_to_all_v", 7: "reduce", 8: "scatter", 9: "gather", 10: "send", 11: "recv",
       12: "batch_send_recv", 13: "barrier", 14: "all_gather_v", 15: "reduce_scatter_v",
       16: "all_to_all_vc", 17: "all_gather_object", 18: "broadcast_object",
       19: "gather_object", 20: "scatter_object", 40: "comm_init", 41: "comm_destroy",
       42: "mark"}
ASYNC, COALESCED, OBJECT, FAILED, STAGE_END, CAPTURE = 1, 2, 4, 8, 16, 32
NO_ROOM = NO_U32 = 0xFFFFFFFF
NO_U64 = 0xFFFFFFFFFFFFFFFF

HEADER = [("magic", "8s"), ("version", "I"), ("layer", "I"), ("header_bytes", "I"),
          ("record_bytes", "I"), ("string_capacity", "Q"), ("capacity", "Q"), ("written", "Q"),
          ("string_bytes", "Q"), ("lost", "Q"), ("start_ns", "q"), ("start_monotonic_ns", "q"),
          ("pid", "i"), ("tid", "i"), ("parent_pid", "i"), ("rank", "i"), ("world", "i"),
          ("local_rank", "i"), ("device", "i"), ("closed", "I"), ("host", "64s"),
          ("command", "256s"), ("recorder", "64s")]
RECORD = [("seq", "Q"), ("start_ns", "q"), ("call_ns", "Q"), ("count", "Q"), ("send_bytes", "Q"),
          ("recv_bytes", "Q"), ("tensor_bytes", "Q"), ("comm_seq", "Q"), ("comm_hash", "Q"),
          ("comm_name", "I"), ("stage", "I"), ("stage_path", "I"), ("shape", "I"), ("step", "I"),
          ("request", "I"), ("rank", "i"), ("world", "i"), ("peer", "i"), ("stream", "i"),
          ("device", "i"), ("rc", "i"), ("flags", "H"), ("op", "B"), ("dtype", "B"),
          ("reduce", "B"), ("reserved", "3s")]
STRINGS = ("comm_name", "stage", "stage_path", "shape")
HEADER_FORMAT = struct.Struct("<" + "".join(kind for _, kind in HEADER))
RECORD_FORMAT = struct.Struct("<" + "".join(kind for _, kind in RECORD))
assert RECORD_FORMAT.size == 128 and HEADER_FORMAT.size == 496


class Row(dict):
    __getattr__ = dict.__getitem__


def _text(data):
    return data.split(b"\0", 1)[0].decode()


class Log:
    def __init__(self, path):
        self.path = path
        # read(), no map: to look at a hole takes a page on tmpfs, and a full one has none
        with open(path, "rb") as file:
            data = file.read(4096)
            values = HEADER_FORMAT.unpack_from(data)
            _, _, _, _, _, strings, capacity, written = values[:8]
            size = os.fstat(file.fileno()).st_size
            # the slot behind the last may be begun; what lies beyond is a hole
            slots = min(capacity, written + 2)
            if values[0] == b"NPCOMM1\n":
                data += file.read(strings + slots * 128)
        self.header = header = Row(zip([name for name, _ in HEADER], values))
        if header.magic != b"NPCOMM1\n":
            raise ValueError(f"{path}: no collective log")
        for name in ("host", "command", "recorder"):
            header[name] = _text(header[name])
        first = header.header_bytes + header.string_capacity
        if size != first + header.capacity * header.record_bytes:
            raise ValueError(f"{path}: {size} bytes")
        self.records = []  # with strings in place, by seq; marks, too
        begin = max(1, header.written - header.capacity + 1)
        for number in range(begin, begin + header.capacity):
            slot = (number - 1) % header.capacity
            if slot >= slots:
                break
            values = RECORD_FORMAT.unpack_from(data, first + slot * header.record_bytes)
            row = Row(zip([name for name, _ in RECORD], values))
            if row.seq == 0 or (row.seq - 1) % header.capacity != slot:
                if number > header.written:
                    break
                continue
            for name in STRINGS:
                row[name] = self._string(data, row[name])
            row["op_name"] = OPS.get(row.op, f"op {row.op}")
            self.records.append(row)
        self.records.sort(key=lambda row: row.seq)

    def _string(self, data, at):
        if at == 0:
            return ""
        if at == NO_ROOM:
            return None
        header = self.header
        if at < 8 or at + 4 > header.string_bytes:
            raise ValueError(f"{self.path}: string {at} beyond {header.string_bytes}")
        length, = struct.unpack_from("<I", data, header.header_bytes + at)
        if at + 4 + length + 1 > header.string_bytes:
            raise ValueError(f"{self.path}: string {at} of {length} bytes")
        begin = header.header_bytes + at + 4
        if data[begin + length] != 0:
            raise ValueError(f"{self.path}: string {at} has no end")
        return data[begin:begin + length].decode()

    @property
    def calls(self):
        return [row for row in self.records if row.op_name != "mark"]

    @property
    def marks(self):
        return [row for row in self.records if row.op_name == "mark"]


def read_dir(directory):
    return [Log(path) for path in sorted(glob.glob(os.path.join(directory, "*.nplog")))]
