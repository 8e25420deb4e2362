"""Stand-in, see newer_torch: the functions of torch 2.4 for one rank."""
import torch


def all_reduce(self: torch.Tensor, reduceOp: str, group, tag: str = ""):
    return self.clone()


def broadcast(self: torch.Tensor, src: int, group, tag: str = ""):
    return self.clone()


def all_gather_tensor(self: torch.Tensor, gather_dim: int, group, tag: str = ""):
    return self.clone()


def reduce_scatter_tensor(self: torch.Tensor, reduceOp: str, scatter_dim: int, group,
                          tag: str = ""):
    return self.clone()


def all_reduce_coalesced(self, reduceOp: str, group, tag: str = ""):
    return [one.clone() for one in self]


def all_gather_into_tensor_coalesced(self, group, tag: str = ""):
    return [one.clone() for one in self]


def reduce_scatter_tensor_coalesced(inputs, reduceOp: str, scatter_dim, group, tag: str = ""):
    return [one.clone() for one in inputs]


def all_to_all_single(self: torch.Tensor, output_split_sizes, input_split_sizes, group,
                      tag: str = ""):
    return self.clone()


def all_gather_tensor_inplace(output_tensor, input_tensor, group, async_op=False, tag="",
                              gather_dim=0):
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim, group, tag))
