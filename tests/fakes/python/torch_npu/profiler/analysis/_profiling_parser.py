"""The parser below analyse(), which no decorator protects."""
import os

from .. import _dump


class ProfilingParser:
    def __init__(self, profiler_path, analysis_type, output_path, kwargs):
        self._path = profiler_path
        self._export_type = kwargs.get("export_type")

    def analyse_profiling_data(self):
        if os.environ.get("FAKE_NPU_PARSER") == "fail":
            raise RuntimeError("msprof is not there")
        _dump.export(self._path, self._export_type)
        _dump.done(self._path)
