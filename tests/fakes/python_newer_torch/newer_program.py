"""Calls of torch 2, and what their records must say:
[op, elements, bytes, bytes received, peer, flags, ranks]."""
import pickle

ASYNC, COALESCED, OBJECT = 1, 2, 4


def run(dist, fc, torch):
    import newer_torch
    world = dist.distributed_c10d._get_default_group()
    name = newer_torch._names[world]
    mesh = newer_torch.DeviceMesh(None, world)
    one, two = torch.ones(6), [torch.ones(2), torch.ones(3, 2)]
    expected = []

    def expect(op, count, nbytes, received, peer=-1, flags=ASYNC):
        expected.append([op, count, nbytes, received, peer, flags, "0"])

    for group in (world, name, [0], [[0], [1]], mesh, (mesh, 1)):
        assert torch.equal(fc.all_reduce(one, "sum", group), one)
        expect("all_reduce", 6, 24, 24)
    fc.all_reduce(one, "avg", [3, 4])  # a group of others
    fc.broadcast(one, 0, world)
    expect("broadcast", 6, 24, 0, 0)
    fc.all_gather_tensor(one, gather_dim=0, group=world)
    expect("all_gather", 6, 24, 24)
    fc.reduce_scatter_tensor(one, "max", 0, world)
    expect("reduce_scatter", 6, 24, 24)
    fc.all_reduce_coalesced(two, "sum", world)
    expect("all_reduce", 8, 32, 32, flags=ASYNC | COALESCED)
    fc.all_gather_into_tensor_coalesced(two, world)
    expect("all_gather", 8, 32, 32, flags=ASYNC | COALESCED)
    fc.reduce_scatter_tensor_coalesced(two, "sum", [0, 0], world)
    expect("reduce_scatter", 8, 32, 32, flags=ASYNC | COALESCED)
    fc.all_to_all_single(one, None, None, world)
    expect("all_to_all", 6, 24, 24)
    fc.all_to_all_single(one, [4], [6], world)
    expect("all_to_all_v", 6, 24, 16)
    fc.all_gather_tensor_inplace(torch.empty(6), one, world)
    expect("all_gather", 6, 24, 24)
    newer_torch.compiling = True  # what torch.compile looks at is not recorded
    assert torch.equal(fc.all_reduce(one, "sum", world), one)
    dist.broadcast(one, group_src=0)
    newer_torch.compiling = False
    dist.broadcast(one, group_src=0)
    expect("broadcast", 6, 24, 0, 0, flags=0)
    dist.send_object_list(["x" * 9], group_dst=0)
    n = len(pickle.dumps("x" * 9))
    expect("send", n, n, n, 0, flags=OBJECT)
    assert dist.recv_object_list([None], group_src=0) == 0
    expect("recv", 0, 0, 0, 0, flags=OBJECT)
    return expected
