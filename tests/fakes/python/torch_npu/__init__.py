"""A stand-in for torch_npu on machines without an NPU, for tests.

It behaves as the profiler of torch_npu does: states, messages, directories, and a dump that
only an export turns into deliverables. Nothing is measured: what the export writes comes from
`npuprof synth`. Settings, all from the environment:

    NPUPROF              path of the program that makes the captures (default: in PATH)
    FAKE_NPU_CACHE       directory where results of synth are kept between processes
    FAKE_NPU_NO_TORCH    do not import torch (start-up is shorter)
    FAKE_NPU_DEVICES     what torch.npu.device_count() answers (default 8)
    FAKE_NPU_FAULTS      faults of synth to plant, separated by commas
    FAKE_NPU_ANALYSE     what analyse() does:
                           lie         says that all went well and writes nothing
                           mindstudio  writes PROF_*/mindstudio_profiler_output only
                           fail        raises inside, which the decorator swallows
                           hang        never comes back
    FAKE_NPU_PARSER      fail: ProfilingParser, below the decorator, raises too
    FAKE_NPU_NO_DUMP     recording writes nothing at all
    FAKE_NPU_TRACE       file to which each action of the state machine is appended
"""
import os

__version__ = "2.7.1"

if not os.environ.get("FAKE_NPU_NO_TORCH"):
    import torch

from . import npu  # noqa: E402
from . import profiler  # noqa: E402,F401

if not os.environ.get("FAKE_NPU_NO_TORCH"):
    torch.npu = npu
