"""Functional collectives of torch 2 (torch.distributed._functional_collectives).

They go to the dispatcher, not through torch.distributed's functions. Inside of torch.compile the
compiler sees the original code, and what it compiles is not recorded (docs/formats/comm_ops.md).
"""
import functools

from . import comm_ops, comm_redirect
from .comm_log import ASYNC, COALESCED
from .comm_ops import NO_REDUCTION, size, sizes


class Functional:
    """As comm_ops.Ops, for functions that take the input first and return the output."""

    def __init__(self, ops, groups):
        self._ops, self._find = ops, groups.find

    def all_reduce(self, tensor, reduceOp, group, tag="", **_):
        return self._ops.all_reduce(tensor, reduceOp, group, True)

    def all_reduce_coalesced(self, tensors, reduceOp, group, tag="", **_):
        return self._ops.all_reduce_list(tensors, reduceOp, group, True)

    def broadcast(self, tensor, src, group, tag="", **_):
        return self._ops.broadcast(tensor, None, group, True, group_src=src)

    def all_gather_tensor(self, tensor, gather_dim, group, tag="", **_):
        return self._gather((tensor,), group, ASYNC)

    def all_gather_into_tensor_coalesced(self, tensors, group, tag="", **_):
        return self._gather(tensors, group, ASYNC | COALESCED)

    def _gather(self, tensors, group, flags):
        group = self._find(group)
        n = sizes(tensors)
        return group and (comm_ops.ALL_GATHER, group, tensors, n, n, n * max(group.world, 0),
                          NO_REDUCTION, -1, flags)

    def reduce_scatter_tensor(self, tensor, reduceOp, scatter_dim, group, tag="", **_):
        return self._scatter((tensor,), reduceOp, group, ASYNC)

    def reduce_scatter_tensor_coalesced(self, inputs, reduceOp, scatter_dim, group, tag="", **_):
        return self._scatter(inputs, reduceOp, group, ASYNC | COALESCED)

    def _scatter(self, tensors, reduction, group, flags):
        group = self._find(group)
        n = sizes(tensors)
        return group and (comm_ops.REDUCE_SCATTER, group, tensors, n, n,
                          n // max(group.world, 1), self._ops.reduction(reduction), -1, flags)

    def all_to_all_single(self, tensor, output_split_sizes, input_split_sizes, group, tag="",
                          **_):
        group = self._find(group)
        n = got = size(tensor)
        even = output_split_sizes is None and input_split_sizes is None
        if output_split_sizes is not None and len(tensor):
            got = int(sum(output_split_sizes)) * (n // len(tensor))
        return group and (comm_ops.ALL_TO_ALL if even else comm_ops.ALL_TO_ALL_V, group,
                          (tensor,), n, n, got, NO_REDUCTION, -1, ASYNC)


FUNCTIONS = {
    "all_reduce": "all_reduce",
    "all_reduce_coalesced": "all_reduce_coalesced",
    "broadcast": "broadcast",
    "all_gather_tensor": "all_gather_tensor",
    "all_gather_tensor_autograd": "all_gather_tensor",
    "all_gather_into_tensor_coalesced": "all_gather_into_tensor_coalesced",
    "reduce_scatter_tensor": "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd": "reduce_scatter_tensor",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced",
    "all_to_all_single": "all_to_all_single",
    "all_to_all_single_autograd": "all_to_all_single",
}


def hook_all(recorder, module, compiling):
    """Names of what was hooked, as functional.NAME."""
    functional = Functional(recorder.ops, recorder.groups)
    hooked = []
    for name, method in FUNCTIONS.items():
        make = functools.partial(recorder.hook, describe=getattr(functional, method))
        if comm_redirect.redirect(getattr(module, name, None), make, compiling):
            hooked.append("functional." + name)
    return hooked
