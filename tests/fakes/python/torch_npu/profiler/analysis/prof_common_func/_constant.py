"""Names of handlers; the misspelt one is the real one."""


class Constant:
    TENSORBORAD_TRACE_HANDLER = "tensorboard_trace_handler"
    EXPORT_CHROME_TRACE = "export_chrome_trace"
