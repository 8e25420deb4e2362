"""The recorder of collectives at torch.distributed: docs/formats/comm_ops.md.

    install() ─▶ after `import torch` ─▶ comm_redirect   hooks in torch's functions
                                           └▶ comm_record     what a hook does around a call
                                                ├▶ comm_ops       what the call sends
                                                ├▶ comm_groups    in which group
                                                ├▶ comm_stages    in which stage of the model
                                                └▶ comm_log       the record
              ─▶ after the modules of the anchors ─▶ comm_stages

torch.distributed is loaded while torch is being imported, so torch itself is waited for (R25).
"""
import os
import sys

from . import events
from .comm_anchors import Anchors

OTHER_SHARE = 0.2  # of the bytes, from which on an anchor is probably wrong (R24)
TEXT_STAGES = ("text", "prompt", "t5", "clip")  # in the names of such stages

_installed = None


class _Collectives:
    def __init__(self, config, imports):
        self.config, self.imports = config, imports
        self.anchors = Anchors(config.get("stages") or [], self._make_recorder)
        self.recorder = self.stages = None
        self.hooked = []

    def start(self):
        self.anchors.install(self.imports)
        self.imports.after("torch", self._torch)
        self.imports.after("torch_npu", lambda _: self._hook_all())  # replaces some (7.6)

    def _make_recorder(self):
        """Not before it is needed: most Python processes never import torch."""
        if self.recorder is not None:
            return self.recorder
        from .comm_record import Recorder
        from .comm_stages import Stages
        recorder = Recorder(self.config)
        recorder.stages = self.stages = Stages(
            self.config.get("stages") or [], self.config.get("step"),
            self.config.get("request"), recorder.mark)
        recorder.look_again = self._look_again
        os.register_at_fork(after_in_child=recorder.after_fork)
        events.at_exit(self._at_exit)
        self.recorder = recorder
        return recorder

    # torch

    def _torch(self, torch):
        if not torch._C or not hasattr(torch._C, "_c10d_init"):
            events.write("collectives", dir=self.config["dir"], wrapped=[], library=False,
                         error="this torch is built without torch.distributed")
            return
        import torch.distributed
        import torch.distributed.distributed_c10d as c10d
        self._make_recorder().bind(torch, c10d)
        self._hook_all()
        self.imports.after("torch.distributed._functional_collectives", self._functional)
        self.imports.after("torch.nn.parallel.distributed", self._data_parallel)
        events.write("collectives", dir=self.config["dir"], wrapped=sorted(self.hooked),
                     library="npuprof_collectives" in os.environ.get("LD_PRELOAD", ""))

    def _hook_all(self):
        """All functions of both modules that have no hook yet: torch_npu replaces some."""
        from . import comm_ops, comm_redirect
        recorder, compiling = self.recorder, _compiling()
        if recorder is None or recorder.ops is None:
            return
        for where in ("torch.distributed.distributed_c10d", "torch.distributed"):
            module = sys.modules[where]
            for name, method in comm_ops.FUNCTIONS.items():
                with events.guard("hook of %s" % name):  # the others are hooked anyway
                    self._hook(getattr(module, name, None), name,
                               getattr(recorder.ops, method), compiling)
            with events.guard("hook of _coalescing_manager"):
                comm_redirect.redirect(getattr(module, "_coalescing_manager", None),
                                       recorder.coalescing, compiling)

    def _hook(self, function, name, describe, compiling):
        from . import comm_redirect
        if comm_redirect.redirect(
                function, lambda original: self.recorder.hook(original, describe), compiling):
            self.hooked.append(name)

    def _functional(self, module):
        from . import comm_functional
        self.hooked += comm_functional.hook_all(self.recorder, module, _compiling())

    def _data_parallel(self, module):
        """Its reducer is C++ and calls the group itself: nothing of it passes through Python."""
        import functools
        kind = module.DistributedDataParallel
        original = kind.__init__

        @functools.wraps(original)
        def __init__(self, *args, **kwargs):
            original(self, *args, **kwargs)
            with events.guard("DistributedDataParallel"):
                n = sum(p.numel() * p.element_size() for p in self.parameters()
                        if p.requires_grad)
                events.write("collectives_unseen", what="DistributedDataParallel", bytes=n,
                             reason="gradients are reduced in C++: only the recorder at the "
                                    "HCCL API sees them")
        kind.__init__ = __init__

    def _look_again(self):
        """In the first collective, and in some later ones: what came by other ways (R25)."""
        with events.guard("stages"):
            self._hook_all()
            self.anchors.look_again()

    # the end

    def _at_exit(self):
        logs, lost = self.recorder.close(), self.recorder.lost
        totals = self.recorder.totals()
        calls = sum(total.calls for total in totals.values())
        if not logs and not lost:
            return
        events.write("collectives_end", calls=calls, lost=lost,
                     undescribed=self.recorder.undescribed,
                     bytes=sum(total.bytes for total in totals.values()),
                     stages={name: {"found": found, "calls": self.stages.calls[name]}
                             for name, found in self.anchors.found().items()})
        if self.stages.names and calls:
            self._tell_other(totals, calls)
            self._tell_text(totals)
        if lost:
            events.say("%d collectives could not be recorded" % lost)

    def _tell_other(self, totals, calls):
        other = totals.get("")
        n = sum(total.bytes for total in totals.values())
        if other is None:
            return
        share = other.bytes / n if n else other.calls / calls
        if share < OTHER_SHARE:
            return
        events.write("collectives_other", calls=other.calls, bytes=other.bytes, share=share)
        if _is_first_here():
            events.say("%.0f %% of what the collectives sent (%d of %d calls) lies outside of "
                       "the stages %s: an anchor is missing, or is not the function that sends"
                       % (100 * share, other.calls, calls,
                          ", ".join(self.anchors.found())))

    def _tell_text(self, totals):
        """A prompt that was seen before is not encoded again (R26)."""
        requests = self.stages.calls.get(self.stages.request_name, 0)
        for name, total in sorted(totals.items()):
            if requests > 1 and _is_text(name) and not total.later_calls:
                events.write("collectives_text_once", stage=name, requests=requests,
                             calls=total.calls, bytes=total.bytes)
                if _is_first_here():
                    events.say("stage %s sent only in the first of %d requests: with the same "
                               "prompt its result comes from a cache; give each request "
                               "another prompt" % (name, requests))


def _is_text(name):
    return any(word in name.lower() for word in TEXT_STAGES)


def _is_first_here():
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _compiling():
    """torch's is_compiling(), which torch.compile evaluates while it looks at code; or None."""
    torch = sys.modules["torch"]
    for holder in (getattr(torch, "compiler", None), getattr(torch, "_utils", None)):
        function = getattr(holder, "is_compiling", None)
        if function is not None:
            return function
    return None


def install(config, imports):
    """Once per interpreter. config: `collectives` of inject.json."""
    global _installed
    if _installed is None:
        _installed = _Collectives(config, imports)
        _installed.start()
