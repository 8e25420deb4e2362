#!/usr/bin/env python3
"""The injected hook in programs of the real torch: models, DDP, torchrun, spawn, servers."""
import os
import sys

from collect_lib import Skip, Suite, torch_python
from hook_lib import Run, holds, same

NET = """
    import torch
    from torch import nn

    class DiT(nn.Module):
        def __init__(self, width=16):
            super().__init__()
            layer = nn.TransformerEncoderLayer(width, 2, 32, batch_first=True)
            self.blocks = nn.TransformerEncoder(layer, 2)
            self.out = nn.Linear(width, width)

        def forward(self, x, scale: float = 1.0):
            "a small denoiser"
            return self.out(self.blocks(x)) * scale

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.Conv2d(3, 8, 3, 2, 1)
            self.up = nn.ConvTranspose2d(8, 3, 4, 2, 1)

        def forward(self, x: torch.Tensor):
            return self.up(torch.relu(self.down(x))) + x
    """
GROUP = """
    import os, torch, torch.distributed as dist, net
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(net.UNet())
    best = torch.optim.SGD(model.parameters(), 0.01)
    for step in range(5):
        best.zero_grad()
        model(torch.ones(1, 3, 8, 8)).sum().backward()
        best.step()
    dist.barrier()
    dist.destroy_process_group()
    """
# -r and -t: Python 3.11 has changed enumerations that the defaults of torch 1.13 rest on
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "-r", "1", "-t", "1",
            "--log_dir", "log")


def real(tmp, files, *targets, **config):
    return Run(tmp, {"net.py": NET, **files}, targets or ("net:DiT.forward",),
               python=torch_python(), **config)


def denoise(tmp):
    """A pipeline of steps: the same output as without us, one step profiled, synchronised."""
    run = real(tmp, {"main.py": """
        import sys, torch
        assert "torch_npu" not in sys.modules
        import net
        torch.manual_seed(0)
        model, x = net.DiT().eval(), torch.ones(1, 4, 16)
        with torch.no_grad():
            for step in range(8):
                x = model(x, scale=0.5)
        print(x.double().sum().item())
        if "npuprof_inject" in sys.modules:
            assert sys.modules["torch_npu"].npu.calls["synchronize"] >= 2
            assert not torch.autograd._profiler_enabled()
        """})
    plain = run.run(torch=True, NPUPROF_INJECT=None).stdout
    got = run.run(torch=True).stdout.splitlines()
    same(got[-1] + "\n", plain, "result")
    run.profiled()
    same(run.one("calls")["calls"], 8, "calls")


def before_torch(tmp):
    """The target's module is imported before torch, and torch lazily by it."""
    run = real(tmp, {"pipe.py": """
        import sys
        assert "torch" not in sys.modules
        def infer(n):
            import torch
            return int(torch.ones(n).sum())
        """, "main.py": """
        import pipe
        assert [pipe.infer(n) for n in range(6)] == list(range(6))
        """}, "pipe:infer")
    run.run(torch=True)
    run.profiled()


def model_tools(tmp):
    """jit.script, jit.trace, fx, state_dict, deepcopy, hooks, signature, checkpoint of a module."""
    run = real(tmp, {"main.py": """
        import copy, inspect, io, pickle, torch, torch.fx, net
        from torch.utils.checkpoint import checkpoint
        assert str(inspect.signature(net.DiT.forward)) == "(self, x, scale: float = 1.0)"
        assert net.DiT.forward.__doc__ == "a small denoiser"
        model, x = net.UNet(), torch.ones(1, 3, 8, 8)
        want = model(x)
        close = lambda got: torch.allclose(got, want)
        assert close(torch.jit.script(model)(x)), "script"
        assert close(torch.jit.trace(model, x)(x)), "trace"
        assert close(torch.fx.symbolic_trace(model)(x)), "fx"
        assert close(copy.deepcopy(model)(x)), "deepcopy"
        assert close(pickle.loads(pickle.dumps(model))(x)), "pickle"
        file = io.BytesIO(); torch.save(model, file); file.seek(0)
        assert close(torch.load(file)(x)), "save"
        seen = []
        model.register_forward_pre_hook(lambda m, a: seen.append(1))
        assert close(model(x)) and seen == [1], "hook"
        assert close(checkpoint(model, x.requires_grad_())), "checkpoint"
        class Sub(net.UNet): pass
        assert Sub.forward is net.UNet.forward and close(Sub().__class__.forward(model, x))
        """}, "net:UNet.forward", "net:DiT.forward", call=50)
    run.run(torch=True)
    run.none("hook_failed", "not_found")
    holds(run.one("calls", target="net:UNet.forward")["calls"] > 7, "counted")


def decorated(tmp):
    """no_grad on the target, a wrapped forward of an object, autocast."""
    run = real(tmp, {"pipe.py": """
        import torch, net
        class Pipe:
            def __init__(self): self.transformer = net.UNet()
            @torch.no_grad()
            def __call__(self, x):
                return self.transformer(x)
        pipe = Pipe()
        """, "main.py": """
        import torch, pipe
        for _ in range(4):
            out = pipe.pipe(torch.ones(1, 3, 8, 8))
            assert not out.requires_grad and torch.is_grad_enabled()
        """}, "pipe:pipe.transformer.forward", "pipe:Pipe.__call__")
    run.run(torch=True)
    # both are called as often; the inner one is reached after the outer one
    run.profiled(target="pipe:Pipe.__call__")
    same([one["calls"] for one in run.events("calls")], [4, 4], "calls")


def decode(tmp):
    """A language model's loop: the third decode step, after any number of prefills."""
    run = real(tmp, {"main.py": """
        import torch
        class LM(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.emb, self.out = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8)
            def forward(self, input_ids, cache=None):
                return self.out(self.emb(input_ids))
        model = LM()
        for request in range(2):
            ids = torch.zeros(1, 5, dtype=torch.long)
            for _ in range(4):
                ids = model(input_ids=ids)[:, -1:].argmax(-1)
        """}, "__main__:LM.forward", phase="decode", active=3)
    run.run(torch=True)
    run.profiled(steps=3)
    same(run.one("calls")["phase_calls"], 6, "decode calls")


def torchrun(tmp):
    """torchrun with 4 ranks of gloo and DDP: two are chosen, the others say that they are not."""
    run = real(tmp, {"main.py": GROUP}, "net:UNet.forward", ranks=[0, 2], active=2)
    run.run(*TORCHRUN, "--nproc_per_node=4", "main.py", torch=True)
    done = run.events("profiled")
    same(sorted(one["rank"] for one in done), [0, 2], "ranks")
    same({(one["call"], one["steps"], one["state"], one["early"]) for one in done},
         {(3, 2, "NONE", None)}, "windows")
    same(sorted(os.path.basename(one["dir"]) for one in done), run.dumps(), "dumps")
    same(sorted(one["rank"] for one in run.events("skipped_rank")), [1, 3], "skipped")
    same([one["calls"] for one in run.events("calls")], [5] * 4, "calls")
    same(len(run.events("end")), 5, "the agent and four ranks")
    run.none("hook_failed")


def with_recorder(tmp):
    """One function is profiled, and a stage of the recorder of collectives."""
    comm = os.path.join(tmp, "comm")
    os.makedirs(comm)
    stage = {"name": "unet", "module": "net", "qualname": "UNet.forward"}
    run = real(tmp, {"main.py": """
        import os, torch, torch.distributed as dist, net
        dist.init_process_group("gloo", init_method="file://" + os.path.abspath("meet"), rank=0,
                                world_size=1)
        class Mine(torch.nn.ReLU):
            def forward(self, x):
                dist.all_reduce(x.detach())
                return x
        model = net.UNet()
        model.down = torch.nn.Sequential(model.down, Mine())
        for _ in range(5):
            model(torch.ones(1, 3, 8, 8))
        """}, "net:UNet.forward", collectives={"dir": comm, "capacity": 64, "stages": [stage],
                                               "step": "unet", "request": None})
    run.run(torch=True)
    run.profiled()
    same((run.one("calls")["calls"], run.one("calls")["replaced"]), (5, False), "calls")
    same(run.one("collectives_end")["calls"], 5, "collectives")
    run.one("collectives_stage")
    same(run.events("collectives_other"), [], "outside of a stage")


def mp_spawn(tmp):
    """torch.multiprocessing.spawn without RANK: the rank comes from torch.distributed."""
    run = real(tmp, {"main.py": """
        import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
        def infer(rank):
            return torch.ones(2).mul_(rank)
        def work(rank, port):
            dist.init_process_group("gloo", init_method=f"file://{port}", rank=rank, world_size=2)
            for _ in range(5):
                dist.all_reduce(infer(rank))
            dist.barrier()
        if __name__ == "__main__":
            mp.spawn(work, (os.path.abspath("rendezvous"),), nprocs=2)
        """}, "__main__:infer", ranks=[1])
    run.run(torch=True)
    same(run.profiled()["rank"], 1, "rank")
    same(run.one("skipped_rank")["rank"], 0, "rank that was skipped")


def loader(tmp):
    """Workers of a DataLoader, forked and spawned: never profiled, not counted, not told."""
    for method, epochs, workers in (("fork", 2, 2), ("spawn", 1, 1)):
        run = real(os.path.join(tmp, method), {"data.py": """
            import torch, net
            def f(n): return torch.full((2,), float(n))
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 12
                def __getitem__(self, i): return f(i)
            """, "main.py": f"""
            import torch, data, net
            if __name__ == "__main__":
                loader = torch.utils.data.DataLoader(data.Data(), 2, num_workers={workers},
                                                     multiprocessing_context="{method}")
                model = torch.nn.Linear(2, 2)
                total = sum(float(batch.sum()) for _ in range({epochs}) for batch in loader)
                assert total == {epochs} * 2 * sum(range(12)), total
                for n in range(3): data.f(n)
            """}, "data:f")
        run.run(torch=True)
        end = run.profiled()
        same(end["pid"], run.one("start", method="exec")["pid"], "the program itself")
        same([one["calls"] for one in run.events("calls")], [3], "calls")


def server(tmp):
    """An HTTP server, warmed by requests: R12. One thread per request."""
    run = real(tmp, {"main.py": """
        import http.server, threading, urllib.request, torch, net
        model = net.UNet().eval()
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                with torch.no_grad():
                    body = str(tuple(model(torch.ones(1, 3, 8, 8)).shape)).encode()
                self.send_response(200); self.end_headers(); self.wfile.write(body)
            def log_message(self, *args): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1/images/generations"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(5):
            assert opener.open(url).read() == b"(1, 3, 8, 8)"
        server.shutdown()
        """}, "net:UNet.forward")
    run.run(torch=True)
    run.profiled()


def shell(tmp):
    """sh -c around a torch program that forks its model worker."""
    run = real(tmp, {"main.py": """
        import multiprocessing, torch, net
        def child(queue):
            torch.set_num_threads(1)
            model = net.UNet()
            for _ in range(4): queue.put(model(torch.ones(1, 3, 8, 8)).shape[1])
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            queue = context.Queue()
            worker = context.Process(target=child, args=(queue,), daemon=True)
            worker.start()
            assert [queue.get() for _ in range(4)] == [3] * 4
            worker.join()
        """}, "net:UNet.forward")
    run.command(["sh", "-c", f"OMP_NUM_THREADS=1 {run.python} main.py; exit $?"],
                env=run.env(torch=True))
    end = run.profiled()
    same(run.one("start", pid=end["pid"])["method"], "fork", "in the worker")


def compiled(tmp):
    """torch.compile (torch 2): compiles the user's function, which is counted all the same."""
    run = real(tmp, {"main.py": """
        import torch, net
        model = torch.compile(net.UNet(), backend="eager")
        for _ in range(5): model(torch.ones(1, 3, 8, 8))
        """, "has.py": "import torch, sys; sys.exit(not hasattr(torch, 'compile'))"},
        "net:UNet.forward")
    try:
        run.run("has.py", torch=True, NPUPROF_INJECT=None)
    except AssertionError:
        raise Skip("this torch has no compile") from None
    run.run(torch=True)
    run.profiled()


CASES = [denoise, before_torch, model_tools, decorated, decode, torchrun, with_recorder, mp_spawn,
         loader, server, shell, compiled]


if __name__ == "__main__":
    suite = Suite(__doc__)
    for case in CASES:
        suite.run(case.__name__, case)
    sys.exit(suite.finish())
