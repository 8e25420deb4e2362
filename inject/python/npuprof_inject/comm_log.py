"""Writes collective logs: include/npuprof/comm_log.h is the format, and says what is promised.

One thread writes one log. Nothing here may break the user's program: disk is allocated before
it is stored to (a store to a page without disk would be SIGBUS), a call that cannot be recorded
is counted in `lost`.
"""
import errno
import mmap
import os
import socket
import struct
import sys
import threading
import time

VERSION = 1
HEADER_BYTES = 4096
STRING_BYTES = 256 * 1024
FIRST_STRING = 8
CAPACITY = 1 << 18
NO_ROOM = NO_U32 = 0xFFFFFFFF
NO_U64 = 0xFFFFFFFFFFFFFFFF
LAYER_TORCH = 2
RECORDER = "npuprof_inject.collectives 1"

ASYNC, COALESCED, OBJECT, FAILED, STAGE_END, CAPTURE = 1, 2, 4, 8, 16, 32
MARK = 42

HEADER = struct.Struct("=8sIIIIQQQQQqqiiiiiiiI64s256s64s")
AT_WRITTEN, AT_STRING_BYTES, AT_LOST = 40, 48, 56
AT_RANK, AT_DEVICE, AT_CLOSED = 92, 104, 108
RECORD_BYTES = 128
BODY = struct.Struct("=qQQQQQQQIIIIIIiiiiiiHBBB3x")  # a record behind its seq
FIRST_BLOCK, BLOCK = 64, 2048  # records whose disk is allocated at a time: 8 to 256 KiB
STRING_BLOCK = 16 * 1024  # a short thread costs 28 KiB

if sys.byteorder != "little" or BODY.size != RECORD_BYTES - 8:
    raise ImportError("collective logs are little-endian")


def _environment(name):
    try:
        return int(os.environ[name])
    except (KeyError, ValueError):
        return -1


def _command():
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read(255).replace(b"\0", b" ").strip()
    except OSError:
        return b""


def host():
    return socket.gethostname()[:63] or "localhost"


class Log:
    """The log of the calling thread. rank, world: where RANK and WORLD_SIZE say nothing."""

    def __init__(self, directory, capacity, rank=-1, world=-1):
        self._pid = os.getpid()
        self._capacity = max(1, int(capacity))
        self._first = HEADER_BYTES + STRING_BYTES
        self._words = self._map = None
        self._written = self._allocated = 0
        self.lost = 0
        self._busy = False
        self._strings = {"": 0}
        self._string_bytes, self._string_room = FIRST_STRING, STRING_BLOCK
        self.device = -1
        # Two uncontended atomic operations between what must be stored in order: x86 keeps
        # the order of stores anyway, aarch64 does not.
        self._fence = threading.Lock()
        self._fence.acquire()
        size = self._first + self._capacity * RECORD_BYTES
        self._fd, self.path = self._create(directory)
        try:
            os.ftruncate(self._fd, size)
            self._allocate(0, HEADER_BYTES + STRING_BLOCK)
            self._map = mmap.mmap(self._fd, size, mmap.MAP_SHARED,
                                  mmap.PROT_READ | mmap.PROT_WRITE)
            self._words = memoryview(self._map).cast("Q")
            self._begin(rank, world)
        except BaseException:
            self._discard()
            raise

    def _create(self, directory):
        stem = "comm-torch-%s-%d-%d" % (host(), self._pid, threading.get_native_id())
        for again in range(1, 1000):  # ids are used again, in containers of one name, too
            path = os.path.join(directory, stem + ("-%d" % again if again > 1 else "") + ".nplog")
            try:
                return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640), path
            except FileExistsError:
                pass
        raise FileExistsError(errno.EEXIST, "no free name for a log", stem)

    def _allocate(self, offset, length):
        """Raises OSError when there is no room; a file system that cannot tell is believed."""
        try:
            os.posix_fallocate(self._fd, offset, length)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS, errno.ENODEV):
                raise

    def _begin(self, rank, world):
        environment_rank, environment_world = _environment("RANK"), _environment("WORLD_SIZE")
        self.rank = environment_rank if environment_rank >= 0 else rank
        header = HEADER.pack(
            b"", VERSION, LAYER_TORCH, HEADER_BYTES, RECORD_BYTES, STRING_BYTES, self._capacity,
            0, FIRST_STRING, 0, time.time_ns(), time.monotonic_ns(), self._pid,
            threading.get_native_id(), os.getppid(),
            self.rank, environment_world if environment_world >= 0 else world,
            _environment("LOCAL_RANK"), -1, 0,
            host().encode()[:63], _command()[:255], RECORDER.encode())
        self._map[:len(header)] = header
        self._order()
        self._map[:8] = b"NPCOMM1\n"

    def _order(self):
        self._fence.release()
        self._fence.acquire()

    def set_device(self, index):
        self.device = index
        struct.pack_into("=i", self._map, AT_DEVICE, index)

    def set_rank(self, rank, world):
        self.rank = rank
        struct.pack_into("=ii", self._map, AT_RANK, rank, world)

    def string(self, text):
        """Its name in the log; NO_ROOM when it does not fit any more."""
        at = self._strings.get(text)
        if at is None:
            at = self._add(text.encode("utf-8", "replace"))
            if at != NO_ROOM:
                self._strings[text] = at
        return at

    def _add(self, data):
        at = self._string_bytes
        end = at + (4 + len(data) + 1 + 3) // 4 * 4  # lengths stay aligned
        if end > STRING_BYTES or (end > self._string_room and not self._more_strings(end)):
            return NO_ROOM
        struct.pack_into("=I%dsB" % len(data), self._map, HEADER_BYTES + at, len(data), data, 0)
        self._order()
        self._string_bytes = self._words[AT_STRING_BYTES // 8] = end
        return at

    def _more_strings(self, end):
        begin, room = self._string_room, -(-end // STRING_BLOCK) * STRING_BLOCK
        try:
            self._allocate(HEADER_BYTES + begin, room - begin)
        except OSError:
            return False
        self._string_room = room
        return True

    def write(self, *body):
        """body: the members of struct np_comm_record behind seq, in their order. False: lost."""
        if self._busy or self._words is None:  # in a signal handler, in the midst of a record
            self.count_lost()
            return False
        self._busy = True
        try:
            return self._write(body)
        finally:
            self._busy = False

    def _write(self, body):
        number = self._written + 1
        slot = (number - 1) % self._capacity
        if number > self._allocated and self._allocated < self._capacity and not self._grow():
            self.count_lost()
            return False
        words, at = self._words, self._first + slot * RECORD_BYTES
        if number > self._capacity:  # nobody may take the old record for whole meanwhile
            words[at >> 3] = 0
            self._order()
        BODY.pack_into(self._map, at + 8, *body)
        self._order()
        words[at >> 3] = number
        self._written = number
        words[AT_WRITTEN // 8] = number
        return True

    def _grow(self):
        n = min(max(FIRST_BLOCK, self._allocated), BLOCK, self._capacity - self._allocated)
        try:
            self._allocate(self._first + self._allocated * RECORD_BYTES, n * RECORD_BYTES)
        except OSError:
            return False
        self._allocated += n
        return True

    def count_lost(self):
        self.lost += 1
        if self._words is not None:
            self._words[AT_LOST // 8] = self.lost

    def mark_closed(self):
        """The writer ends in order, unless this is the log of the process that forked it."""
        if self._words is not None and self._pid == os.getpid():
            struct.pack_into("=I", self._map, AT_CLOSED, 1)

    def _discard(self):
        words, mapping, fd = self._words, self._map, self._fd
        self._words = self._map = None
        self._fd = -1
        if words is not None:
            words.release()
        if mapping is not None:
            mapping.close()
        if fd >= 0:
            os.close(fd)

    def __del__(self):
        try:
            self.mark_closed()  # the thread has ended
            self._discard()
        except Exception:  # the interpreter goes down
            pass
