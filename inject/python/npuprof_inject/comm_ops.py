"""What each function of torch.distributed sends: docs/formats/comm_ops.md in code.

A method of Ops has the parameters of the function that it describes, those of other versions of
torch too, and returns what Recorder.record() takes, or None when this process is not in the
group (torch then warns and does nothing):

    (op, group, tensors, payload bytes, send bytes, recv bytes, reduction, peer, flags)

tensors are the payload: their elements, shapes and type are recorded. peer is a rank in the
group, as `rank` is; -1 none.
"""
from .comm_groups import UNKNOWN
from .comm_log import ASYNC, COALESCED, NO_U64, OBJECT

(ALL_REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, ALL_TO_ALL_V, REDUCE, SCATTER,
 GATHER, SEND, RECV, BATCH, BARRIER, ALL_GATHER_V, REDUCE_SCATTER_V) = range(1, 16)
ALL_GATHER_OBJECT, BROADCAST_OBJECT, GATHER_OBJECT, SCATTER_OBJECT = 17, 18, 19, 20

SUM, NO_REDUCTION, AVG = 0, 255, 254
_REDUCTIONS = {"sum": SUM, "prod": 1, "product": 1, "max": 2, "min": 3, "avg": AVG}

_DTYPES = {
    "int8": 0, "int16": 1, "int32": 2, "float16": 3, "float32": 4, "int64": 5, "uint64": 6,
    "uint8": 7, "uint16": 8, "uint32": 9, "float64": 10, "bfloat16": 11, "float8_e4m3fn": 15,
    "float8_e5m2": 16, "float8_e8m0fnu": 17, "bool": 254, "complex64": 253, "complex128": 252,
}
UNKNOWN_DTYPE, UINT8 = 255, 7


def dtypes(torch):
    """torch's element types, as far as this torch has them, to those of the log."""
    return {getattr(torch, name): number for name, number in _DTYPES.items()
            if hasattr(torch, name)}


def reductions(c10d):
    """(object, number) of this torch's ReduceOp."""
    names = {"SUM": SUM, "PRODUCT": 1, "MAX": 2, "MIN": 3, "AVG": AVG}
    return [(getattr(c10d.ReduceOp, name), number) for name, number in names.items()
            if hasattr(c10d.ReduceOp, name)]


def size(tensor):
    return tensor.numel() * tensor.element_size()


def sizes(tensors):
    return sum([tensor.numel() * tensor.element_size() for tensor in tensors])


def _parts(tensors):
    """(bytes, are there several sizes?) of tensors of one type, one for each rank."""
    if not tensors:
        return 0, False
    counts = [tensor.numel() for tensor in tensors]
    return sum(counts) * tensors[0].element_size(), counts.count(counts[0]) != len(counts)


def _async(async_op):
    return ASYNC if async_op else 0


class Ops:
    def __init__(self, c10d, groups):
        self._c10d = c10d
        self._find = groups.find
        self._reductions = reductions(c10d)

    def reduction(self, op):
        """Of a ReduceOp, or of a functional collective's word."""
        if op is None:
            return SUM
        if isinstance(op, str):
            return _REDUCTIONS.get(op.lower(), NO_REDUCTION)
        for known, number in self._reductions:
            if op is known:
                return number
        for known, number in self._reductions:
            if op == known:
                return number
        return NO_REDUCTION

    def unknown(self, describe):
        """For a call that describe() does not understand."""
        op = _OPS.get(describe.__name__, 0)
        return (op, UNKNOWN, (), NO_U64, NO_U64, NO_U64, NO_REDUCTION, -1, 0)

    # one tensor in, the same out

    def all_reduce(self, tensor, op=None, group=None, async_op=False, **_):
        group = self._find(group)
        n = size(tensor)
        return group and (ALL_REDUCE, group, (tensor,), n, n, n, self.reduction(op), -1,
                          ASYNC if async_op else 0)

    def all_reduce_list(self, tensors, op=None, group=None, async_op=False, **_):
        group = self._find(group)
        n = sizes(tensors)
        return group and (ALL_REDUCE, group, tensors, n, n, n, self.reduction(op), -1,
                          COALESCED | _async(async_op))

    def broadcast(self, tensor, src=None, group=None, async_op=False, group_src=None, **_):
        return self._broadcast((tensor,), src, group, async_op, group_src)

    def broadcast_list(self, tensor_list, src, group=None, async_op=False, src_tensor=0, **_):
        return self._broadcast(tensor_list, src, group, async_op, None)

    def _broadcast(self, tensors, src, group, async_op, group_src):
        group = self._find(group)
        if group is None:
            return None
        root = group.peer(src) if group_src is None else group_src
        n = sizes(tensors)
        mine = root == group.rank
        return (BROADCAST, group, tensors, n, n if mine else 0, 0 if mine else n, NO_REDUCTION,
                root, _async(async_op))

    def reduce(self, tensor, dst=None, op=None, group=None, async_op=False, group_dst=None, **_):
        return self._reduce((tensor,), dst, op, group, async_op, group_dst)

    def reduce_list(self, tensor_list, dst, op=None, group=None, async_op=False, dst_tensor=0,
                    **_):
        return self._reduce(tensor_list, dst, op, group, async_op, None)

    def _reduce(self, tensors, dst, op, group, async_op, group_dst):
        group = self._find(group)
        if group is None:
            return None
        root = group.peer(dst) if group_dst is None else group_dst
        n = sizes(tensors)
        return (REDUCE, group, tensors, n, n, n if root == group.rank else 0,
                self.reduction(op), root, _async(async_op))

    # gather and scatter

    def all_gather(self, tensor_list, tensor, group=None, async_op=False, **_):
        group = self._find(group)
        n = size(tensor)
        got, uneven = _parts(tensor_list)
        return group and (ALL_GATHER_V if uneven else ALL_GATHER, group, (tensor,), n, n, got,
                          NO_REDUCTION, -1, _async(async_op))

    def all_gather_into(self, output_tensor, input_tensor, group=None, async_op=False, **_):
        group = self._find(group)
        n = size(input_tensor)
        return group and (ALL_GATHER, group, (input_tensor,), n, n, size(output_tensor),
                          NO_REDUCTION, -1, _async(async_op))

    def all_gather_list(self, output_tensor_lists, input_tensor_list, group=None, async_op=False,
                        **_):
        group = self._find(group)
        n = sizes(input_tensor_list)
        out = sum([sizes(tensors) for tensors in output_tensor_lists])
        return group and (ALL_GATHER, group, input_tensor_list, n, n, out, NO_REDUCTION, -1,
                          COALESCED | _async(async_op))

    def gather(self, tensor, gather_list=None, dst=None, group=None, async_op=False,
               group_dst=None, **_):
        group = self._find(group)
        if group is None:
            return None
        root = group.peer(dst or 0) if group_dst is None else group_dst
        n = size(tensor)
        out = sizes(gather_list) if gather_list and root == group.rank else 0
        return (GATHER, group, (tensor,), n, n, out, NO_REDUCTION, root, _async(async_op))

    def scatter(self, tensor, scatter_list=None, src=None, group=None, async_op=False,
                group_src=None, **_):
        group = self._find(group)
        if group is None:
            return None
        root = group.peer(src or 0) if group_src is None else group_src
        n = size(tensor)
        given = sizes(scatter_list) if scatter_list and root == group.rank else 0
        return (SCATTER, group, (tensor,), n, given, n, NO_REDUCTION, root, _async(async_op))

    def reduce_scatter(self, output, input_list, op=None, group=None, async_op=False, **_):
        group = self._find(group)
        n, uneven = _parts(input_list)
        return group and (REDUCE_SCATTER_V if uneven else REDUCE_SCATTER, group, input_list, n, n,
                          size(output), self.reduction(op), -1, _async(async_op))

    def reduce_scatter_tensor(self, output, input, op=None, group=None, async_op=False, **_):
        group = self._find(group)
        n = size(input)
        return group and (REDUCE_SCATTER, group, (input,), n, n, size(output),
                          self.reduction(op), -1, _async(async_op))

    def reduce_scatter_list(self, output_tensor_list, input_tensor_lists, op=None, group=None,
                            async_op=False, **_):
        group = self._find(group)
        given = [tensor for tensors in input_tensor_lists for tensor in tensors]
        n = sizes(given)
        return group and (REDUCE_SCATTER, group, given, n, n, sizes(output_tensor_list),
                          self.reduction(op), -1, COALESCED | _async(async_op))

    # all to all

    def all_to_all(self, output_tensor_list, input_tensor_list, group=None, async_op=False, **_):
        group = self._find(group)
        n, uneven = _parts(input_tensor_list)
        got, too = _parts(output_tensor_list)
        return group and (ALL_TO_ALL_V if uneven or too else ALL_TO_ALL, group,
                          input_tensor_list, n, n, got, NO_REDUCTION, -1, _async(async_op))

    def all_to_all_single(self, output, input, output_split_sizes=None, input_split_sizes=None,
                          group=None, async_op=False, **_):
        group = self._find(group)
        n = size(input)
        even = not output_split_sizes and not input_split_sizes
        return group and (ALL_TO_ALL if even else ALL_TO_ALL_V, group, (input,), n, n,
                          size(output), NO_REDUCTION, -1, _async(async_op))

    # point to point

    def send(self, tensor, dst=None, group=None, tag=0, group_dst=None, **_):
        group = self._find(group)
        n = size(tensor)
        return group and (SEND, group, (tensor,), n, n, 0, NO_REDUCTION,
                          group.peer(dst) if group_dst is None else group_dst, 0)

    def recv(self, tensor, src=None, group=None, tag=0, group_src=None, **_):
        group = self._find(group)
        n = size(tensor)
        return group and (RECV, group, (tensor,), n, 0, n, NO_REDUCTION,
                          group.peer(src) if group_src is None else group_src, 0)

    def isend(self, *args, **kwargs):
        call = self.send(*args, **kwargs)
        return call and call[:-1] + (ASYNC,)

    def irecv(self, *args, **kwargs):
        call = self.recv(*args, **kwargs)
        return call and call[:-1] + (ASYNC,)

    def batch_isend_irecv(self, p2p_op_list):
        group = self._find(p2p_op_list[0].group)
        given = got = 0
        for p2p in p2p_op_list:
            if getattr(p2p.op, "__name__", "").endswith("send"):
                given += size(p2p.tensor)
            else:
                got += size(p2p.tensor)
        return group and (BATCH, group, [p2p.tensor for p2p in p2p_op_list], given + got, given,
                          got, NO_REDUCTION, -1, ASYNC | COALESCED)

    def monitored_barrier(self, group=None, timeout=None, wait_all_ranks=False):
        return self.barrier(group)

    def barrier(self, group=None, async_op=False, device_ids=None, **_):
        group = self._find(group)
        return group and (BARRIER, group, (), 0, 0, 0, NO_REDUCTION, -1, _async(async_op))

    # Python objects: the bytes are those of the collectives inside, which Recorder adds up

    def _object(self, op, group, root, group_root=None):
        group = self._find(group)
        if group is None:
            return None
        peer = group.peer(root) if group_root is None else group_root
        return (op, group, (), NO_U64, NO_U64, NO_U64, NO_REDUCTION, peer, OBJECT)

    def all_gather_object(self, object_list, obj, group=None, **_):
        return self._object(ALL_GATHER_OBJECT, group, None)

    def broadcast_object_list(self, object_list, src=None, group=None, device=None,
                              group_src=None, **_):
        return self._object(BROADCAST_OBJECT, group, src or 0, group_src)

    def gather_object(self, obj, object_gather_list=None, dst=None, group=None, group_dst=None,
                      **_):
        return self._object(GATHER_OBJECT, group, dst or 0, group_dst)

    def scatter_object_list(self, scatter_object_output_list, scatter_object_input_list=None,
                            src=None, group=None, group_src=None, **_):
        return self._object(SCATTER_OBJECT, group, src or 0, group_src)

    def send_object_list(self, object_list, dst=None, group=None, device=None, group_dst=None,
                         **_):
        return self._object(SEND, group, dst, group_dst)

    def recv_object_list(self, object_list, src=None, group=None, device=None, group_src=None,
                         **_):
        return self._object(RECV, group, src, group_src)


# function of torch.distributed: method of Ops
FUNCTIONS = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce_list",
    "all_reduce_multigpu": "all_reduce_list",
    "broadcast": "broadcast",
    "broadcast_multigpu": "broadcast_list",
    "reduce": "reduce",
    "reduce_multigpu": "reduce_list",
    "all_gather": "all_gather",
    "all_gather_into_tensor": "all_gather_into",
    "_all_gather_base": "all_gather_into",
    "all_gather_coalesced": "all_gather_list",
    "all_gather_multigpu": "all_gather_list",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_tensor": "reduce_scatter_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_multigpu": "reduce_scatter_list",
    "all_to_all": "all_to_all",
    "all_to_all_single": "all_to_all_single",
    "send": "send",
    "recv": "recv",
    "isend": "isend",
    "irecv": "irecv",
    "batch_isend_irecv": "batch_isend_irecv",
    "barrier": "barrier",
    "monitored_barrier": "monitored_barrier",
    "all_gather_object": "all_gather_object",
    "broadcast_object_list": "broadcast_object_list",
    "gather_object": "gather_object",
    "scatter_object_list": "scatter_object_list",
    "send_object_list": "send_object_list",
    "recv_object_list": "recv_object_list",
}

_OPS = {
    "all_reduce": ALL_REDUCE, "all_reduce_list": ALL_REDUCE, "broadcast": BROADCAST,
    "broadcast_list": BROADCAST, "reduce": REDUCE, "reduce_list": REDUCE,
    "all_gather": ALL_GATHER, "all_gather_into": ALL_GATHER, "all_gather_list": ALL_GATHER,
    "gather": GATHER, "scatter": SCATTER, "reduce_scatter": REDUCE_SCATTER,
    "reduce_scatter_tensor": REDUCE_SCATTER, "reduce_scatter_list": REDUCE_SCATTER,
    "all_to_all": ALL_TO_ALL, "all_to_all_single": ALL_TO_ALL, "send": SEND, "isend": SEND,
    "recv": RECV, "irecv": RECV, "batch_isend_irecv": BATCH, "barrier": BARRIER,
    "monitored_barrier": BARRIER,
    "all_gather_object": ALL_GATHER_OBJECT, "broadcast_object_list": BROADCAST_OBJECT,
    "gather_object": GATHER_OBJECT, "scatter_object_list": SCATTER_OBJECT,
    "send_object_list": SEND, "recv_object_list": RECV,
    # of comm_functional
    "all_reduce_coalesced": ALL_REDUCE, "all_gather_tensor": ALL_GATHER,
    "all_gather_into_tensor_coalesced": ALL_GATHER,
    "reduce_scatter_tensor_coalesced": REDUCE_SCATTER,
}
