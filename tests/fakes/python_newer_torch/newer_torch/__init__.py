"""What torch 2 has and torch 1.13 lacks, as far as the recorder of collectives meets it.

`import newer_torch` changes the torch that is installed: parameters group_src and group_dst,
objects from one rank to another, functions behind a decorator, the tables of groups in `_world`,
torch.compiler.is_compiling(), and the module torch.distributed._functional_collectives. Signatures
are those of torch 2.4; what happens inside is the shortest that works with gloo and one rank.
"""
import functools
import os
import types

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

compiling = False


def _logged(function):
    """As torch's _exception_logger: the name is bound to a closure, in other global names."""
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)
    return wrapper


def _public(function):
    function.__module__ = "torch.distributed.distributed_c10d"
    function = _logged(function)
    setattr(c10d, function.__name__, function)
    setattr(dist, function.__name__, function)


_old_broadcast = getattr(c10d.broadcast, "__wrapped__", c10d.broadcast)  # without its hook


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    return _old_broadcast(tensor, group_src if src is None else src, group, async_op)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None):
    for one in object_list:
        c10d.all_reduce(c10d._object_to_tensor(one, torch.device("cpu"))[0], group=group)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None):
    return group_src


class DeviceMesh:
    def __init__(self, *groups):
        self._groups = groups

    def get_group(self, mesh_dim=None):
        return self._groups[mesh_dim or 0]


class _World:
    pg_group_ranks = property(lambda self: _ranks)
    pg_names = property(lambda self: _names)


_ranks, _names = c10d._pg_group_ranks, c10d._pg_names
c10d._world = _World()
for _function in (broadcast, send_object_list, recv_object_list):
    _public(_function)
c10d._resolve_process_group = lambda name: next(
    group for group, known in _names.items() if known == name)
torch.compiler = types.SimpleNamespace(is_compiling=lambda: compiling)
dist.__path__.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "distributed"))
