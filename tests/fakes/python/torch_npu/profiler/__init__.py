"""torch_npu.profiler."""
from ._config import (AiCMetrics, ExportType, ProfilerActivity, ProfilerLevel,
                      _ExperimentalConfig, supported_activities)
from ._schedule import ProfilerAction, schedule
from .profiler import _KinetoProfile, analyse, profile, tensorboard_trace_handler

__all__ = ["AiCMetrics", "ExportType", "ProfilerActivity", "ProfilerAction", "ProfilerLevel",
           "_ExperimentalConfig", "_KinetoProfile", "analyse", "profile", "schedule",
           "supported_activities", "tensorboard_trace_handler"]
