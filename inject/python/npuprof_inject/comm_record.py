"""The recorder: what a hook in torch.distributed does around the user's call."""
import os
import threading
import time
import weakref

from . import comm_log, comm_ops, events
from .comm_groups import Groups
from .comm_log import NO_U32, NO_U64
from .comm_stages import NONE

CALLING, RECORDING = 1, 2  # what a thread is in the midst of
SHAPES = 8  # of a list of tensors are written out
_now, _clock = time.time_ns, time.perf_counter_ns


class Totals:
    """calls, bytes of a stage, and how many of them after the first request."""
    __slots__ = ("calls", "bytes", "later_calls", "unknown")

    def __init__(self):
        self.calls = self.bytes = self.later_calls = self.unknown = 0

    def add(self, other):
        for member in self.__slots__:
            setattr(self, member, getattr(self, member) + getattr(other, member))


class _Thread(threading.local):
    """What a thread has of its own."""

    def __init__(self, all_totals):
        self.depth = 0  # CALLING: what torch itself calls meanwhile is no call of the user's
        self.inside = None  # of a collective of objects: [payload, send, recv] of its parts
        self.coalescing = 0
        self.log = None
        self.refused = False  # there can be no log
        self.shapes = {}
        self.totals = {}
        all_totals.append(self.totals)


class Recorder:
    def __init__(self, config):
        self._directory = config["dir"]
        self._capacity = config.get("capacity") or comm_log.CAPACITY
        self.stages = None  # set by its maker
        self.ops = self.groups = self._torch = None
        self._dtypes = {}
        self._c_mark = None  # of the recorder at the C API; False: there is none
        self.first = self.look_again = None  # called before the 1st, 2nd, 4th, 8th … collective
        self._calls = 0
        self._look_at = 1
        self._start_process()

    def _start_process(self):
        self._all_totals = []
        self._logs = []
        self._thread = _Thread(self._all_totals)
        self.lost = 0
        self.undescribed = 0
        self._refused = self._failed = False

    def after_fork(self):
        """The child has files of its own; those of its parent it only lets go."""
        self._start_process()
        if self.stages is not None:
            self.stages.after_fork()

    def bind(self, torch, c10d):
        self._torch = torch
        self._dtypes = comm_ops.dtypes(torch)
        self.groups = Groups(c10d)
        self.ops = comm_ops.Ops(c10d, self.groups)
        self._c10d = c10d

    # hooks

    def hook(self, original, describe):
        """What takes (args, kwargs) of a call of original, and records it."""
        def hook(args, kwargs):
            thread = self._thread
            if thread.depth:
                if thread.depth == RECORDING:  # in a signal handler
                    self._lose(thread)
                elif thread.inside is not None:
                    self._part(thread, describe, args, kwargs)
                return original(*args, **kwargs)
            result = call = None
            failed = comm_log.FAILED
            start = begin = 0
            try:
                thread.depth = CALLING
                call = self._describe(thread, describe, args, kwargs)
                stage = self.stages.current()
                step, request = self.stages.step, self.stages.request
                start, begin = _now(), _clock()
                result = original(*args, **kwargs)
                failed = 0
                return result
            finally:
                took = _clock() - begin
                try:
                    thread.depth = RECORDING
                    if call is not None and begin:
                        self._record(thread, call, start, took, failed, stage, step, request,
                                     result)
                finally:
                    thread.depth = 0
        return hook

    def coalescing(self, original):
        """The hook of a context manager in which calls are given as one."""
        def hook(args, kwargs):
            return _Coalescing(original(*args, **kwargs), self._thread)
        return hook

    def _describe(self, thread, describe, args, kwargs):
        """None: nothing to record. Never raises."""
        self._calls += 1
        if self._calls >= self._look_at:
            self._look_at *= 2
            if self.look_again is not None:
                self.look_again()
        try:
            call = describe(*args, **kwargs)
            parts = call is not None and call[8] & comm_log.OBJECT
            thread.inside = [0, 0, 0] if parts else None
            return call
        except Exception:  # the user's call will say what is wrong with it, or it is a newer one
            self.undescribed += 1
            thread.inside = None
            return self.ops.unknown(describe)

    def _part(self, thread, describe, args, kwargs):
        """A collective of tensors, inside of one of objects."""
        try:
            call = describe(*args, **kwargs)
            for i in range(3):
                if call is not None and call[3 + i] != NO_U64:
                    thread.inside[i] += call[3 + i]
        except Exception:
            self.undescribed += 1

    # records

    def _record(self, thread, call, start, took, failed, stage, step, request, result):
        try:
            op, group, tensors, n, given, got, reduction, peer, flags = call
            if thread.inside is not None:
                (n, given, got), thread.inside = thread.inside, None
                dtype, count, shape = comm_ops.UINT8, n, None
            else:
                dtype, count, shape = self._payload(tensors, n)
            if peer < 0 and op == comm_ops.RECV and type(result) is int:
                peer = group.peer(result)  # from whom it came
            flags |= failed
            if thread.coalescing:
                flags |= comm_log.COALESCED
            log = thread.log or self._open(thread)
            if log is None:
                self._lose(thread)
                return
            if log.rank < 0 and group.rank >= 0:  # begun by a mark, before the group was made
                log.set_rank(*self._rank())
            device = -1
            if tensors and not tensors[0].is_cpu:
                device, captured = self._device(log, tensors[0])
                flags |= captured
            string = log.string
            written = log.write(start, took, count, given, got, n, next(group.seq), group.hash,
                                string(group.name), string(stage.name), string(stage.path),
                                self._shape(thread, log, shape), step, request, group.rank,
                                group.world, peer, -1, device, 0, flags, op, dtype, reduction)
            if written:
                self._total(thread, stage.name, n, request)
            else:
                self.lost += 1
        except Exception as error:
            self._failure(thread, error)

    def _payload(self, tensors, n):
        """(type, elements, key of the shapes)"""
        if len(tensors) == 1:
            tensor = tensors[0]
            return self._dtypes.get(tensor.dtype, 255), tensor.numel(), tensor.shape
        if not tensors:
            return comm_ops.UNKNOWN_DTYPE, n, None
        count = sum([tensor.numel() for tensor in tensors])
        shapes = tuple([tuple(tensor.shape) for tensor in tensors[:SHAPES]])
        return self._dtypes.get(tensors[0].dtype, 255), count, (shapes, len(tensors))

    def _shape(self, thread, log, shape):
        if shape is None:
            return 0
        at = thread.shapes.get(shape)
        if at is None:
            if isinstance(shape, self._torch.Size):
                text = str(list(shape))
            else:
                text = ";".join([str(list(one)) for one in shape[0]])
                text += ";…" if shape[1] > SHAPES else ""
            at = log.string(text)
            if at != comm_log.NO_ROOM:
                thread.shapes[shape] = at
        return at

    def _device(self, log, tensor):
        """(index, the flag CAPTURE or 0)"""
        device = tensor.device
        backend = getattr(self._torch, device.type, None)
        capturing = getattr(backend, "is_current_stream_capturing", None)
        index = -1 if device.index is None else device.index
        if index != log.device:
            log.set_device(index)
        return index, comm_log.CAPTURE if capturing is not None and capturing() else 0

    def _open(self, thread):
        if thread.refused:
            return None
        try:
            thread.log = comm_log.Log(self._directory, self._capacity, *self._rank())
        except Exception as error:
            thread.refused = True
            if not self._refused:
                self._refused = True
                events.failed("collective log in %s" % self._directory, error)
            return None
        thread.shapes.clear()
        self._logs.append(weakref.ref(thread.log))
        return thread.log

    def _rank(self):
        """(rank, world) of the process, -1 where torch does not know yet."""
        try:
            if self._torch is not None and self._torch.distributed.is_initialized():
                return self._c10d.get_rank(), self._c10d.get_world_size()
        except Exception:  # it is being destroyed
            pass
        return -1, -1

    def _total(self, thread, name, n, request):
        total = thread.totals.get(name)
        if total is None:
            total = thread.totals[name] = Totals()
        total.calls += 1
        if n != NO_U64:
            total.bytes += n
        else:
            total.unknown += 1
        if request != NO_U32 and request > 1:
            total.later_calls += 1

    def _lose(self, thread):
        self.lost += 1
        if thread.log is not None:
            thread.log.count_lost()

    def _failure(self, thread, error):
        self._lose(thread)
        if not self._failed:
            self._failed = True
            events.failed("record of a collective", error)

    # stages

    def mark(self, stage, after, ends, failed, took):
        """A stage begins or ends; `after` is the one that is open from now on."""
        thread = self._thread
        before = thread.depth
        if before == RECORDING:
            self._lose(thread)
            return
        try:
            thread.depth = RECORDING
            step, request = self.stages.step, self.stages.request
            self._mark_c(after, step, request)
            log = thread.log or self._open(thread)
            if log is None:
                return
            flags = (comm_log.STAGE_END if ends else 0) | (comm_log.FAILED if failed else 0)
            log.write(_now(), took, 0, 0, 0, 0, 0, 0, 0, log.string(stage.name),
                      log.string(stage.path), 0, step, request, -1, -1, -1, -1, -1, 0, flags,
                      comm_log.MARK, comm_ops.UNKNOWN_DTYPE, comm_ops.NO_REDUCTION)
        except Exception as error:
            self._failure(thread, error)
        finally:
            thread.depth = before

    def _mark_c(self, stage, step, request):
        if self._c_mark is None:
            self._c_mark = _find_c_mark()
        if self._c_mark:
            self._c_mark(stage.path.encode() if stage is not NONE else None, step, request)

    # the end

    def totals(self):
        """{stage: Totals} of all threads of this process."""
        sums = {}
        for totals in list(self._all_totals):
            for name, total in list(totals.items()):
                sums.setdefault(name, Totals()).add(total)
        return sums

    def close(self):
        """How many logs there were: at the end of the process."""
        for log in [reference() for reference in self._logs]:
            if log is not None:  # that of a thread that has ended is closed
                log.mark_closed()
        return len(self._logs)


class _Coalescing:
    def __init__(self, manager, thread):
        self._manager, self._state = manager, thread

    def __enter__(self):
        result = self._manager.__enter__()
        self._state.coalescing += 1
        return result

    def __exit__(self, *error):
        self._state.coalescing -= 1
        return self._manager.__exit__(*error)


def _find_c_mark():
    """npuprof_comm_mark() of libnpuprof_collectives.so, when it was loaded in front."""
    if "npuprof_collectives" not in os.environ.get("LD_PRELOAD", ""):
        return False
    try:
        import ctypes
        mark = ctypes.PyDLL(None).npuprof_comm_mark
        mark.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32]
        mark.restype = None
        return mark
    except Exception:
        return False
