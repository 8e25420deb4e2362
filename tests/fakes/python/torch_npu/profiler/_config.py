"""Activities, levels, metrics, and _ExperimentalConfig."""
from enum import Enum

from . import _log


class ProfilerActivity(Enum):
    CPU = 0
    NPU = 1


def supported_activities():
    return {ProfilerActivity.CPU, ProfilerActivity.NPU}


class ProfilerLevel:
    Level_none = "Level_none"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class AiCMetrics:
    PipeUtilization = "ACL_AICORE_PIPE_UTILIZATION"
    ArithmeticUtilization = "ACL_AICORE_ARITHMETIC_UTILIZATION"
    Memory = "ACL_AICORE_MEMORY_BANDWIDTH"
    MemoryL0 = "ACL_AICORE_L0B_AND_WIDTH"
    MemoryUB = "ACL_AICORE_MEMORY_UB"
    ResourceConflictRatio = "ACL_AICORE_RESOURCE_CONFLICT_RATIO"
    L2Cache = "ACL_AICORE_L2_CACHE"
    MemoryAccess = "ACL_AICORE_MEMORY_ACCESS"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType:
    Text = "text"
    Db = "db"


def _values(of):
    return [value for name, value in vars(of).items() if not name.startswith("_")]


def clean_export_type(value, default):
    """A list without duplicates, or `default` when something in it is unknown."""
    values = value if isinstance(value, list) else [value]
    if not values or any(one not in _values(ExportType) for one in values):
        _log.warn("Invalid parameter export_type, reset it to text.")
        return default
    return list(dict.fromkeys(values))


class _ExperimentalConfig:
    def __init__(self, profiler_level=ProfilerLevel.Level0,
                 aic_metrics=AiCMetrics.PipeUtilization, l2_cache=False, msprof_tx=False,
                 mstx=False, data_simplification=True, record_op_args=False, op_attr=False,
                 gc_detect_threshold=None, export_type=ExportType.Text, host_sys=None,
                 mstx_domain_include=None, mstx_domain_exclude=None, sys_io=False,
                 sys_interconnection=False):
        none = AiCMetrics.AiCoreNone
        if (profiler_level in (ProfilerLevel.Level0, ProfilerLevel.Level_none) and
                aic_metrics != none):
            _log.warn("Please use level1 or level2 if you want to collect aic metrics, "
                      "reset aic metrics to None!")
            aic_metrics = none
        if profiler_level not in _values(ProfilerLevel):
            _log.warn("Invalid parameter profiler_level, reset it to Level0.")
            profiler_level = ProfilerLevel.Level0
        if aic_metrics not in _values(AiCMetrics):
            _log.warn("Invalid parameter aic_metrics, reset it to default.")
            aic_metrics = none if profiler_level == "Level0" else AiCMetrics.PipeUtilization
        self.profiler_level, self.aic_metrics = profiler_level, aic_metrics
        self.export_type = clean_export_type(export_type, [ExportType.Text])
        self.l2_cache, self.msprof_tx, self.mstx = l2_cache, msprof_tx, mstx
        self.data_simplification, self.record_op_args = data_simplification, record_op_args
        self.op_attr = op_attr and ExportType.Db in self.export_type
        self.gc_detect_threshold = gc_detect_threshold
        self.host_sys = list(host_sys or [])
        self.mstx_domain_include = list(mstx_domain_include or [])
        self.mstx_domain_exclude = list(mstx_domain_exclude or [])
        self.sys_io, self.sys_interconnection = sys_io, sys_interconnection
        if profiler_level == ProfilerLevel.Level_none and not (mstx or msprof_tx):
            _log.warn("Level_none is for mstx only, set mstx to True.")
            self.mstx = True

    def as_dict(self):
        return {"_profiler_level": self.profiler_level, "_aic_metrics": self.aic_metrics,
                "_l2_cache": self.l2_cache, "_msprof_tx": self.msprof_tx, "_mstx": self.mstx,
                "_data_simplification": self.data_simplification,
                "record_op_args": self.record_op_args, "_export_type": self.export_type,
                "_host_sys": self.host_sys, "_op_attr": self.op_attr,
                "_gc_detect_threshold": self.gc_detect_threshold,
                "_mstx_domain_include": self.mstx_domain_include,
                "_mstx_domain_exclude": self.mstx_domain_exclude,
                "_sys_io": self.sys_io, "_sys_interconnection": self.sys_interconnection}
