"""What npuprof run does inside the user's process: docs/formats/inject.md, docs/guide/inject.md.

    sitecustomize ─▶ start() ─▶ config     inject.json
                             ─▶ events     events/<pid>.jsonl
                             ─▶ targets ─▶ imports   a callback once a module was imported
                                        ─▶ main      the same for the program itself, __main__
                                        ─▶ wrap      the wrapper around a target
                                              └▶ step     the profiler around the chosen call
                             ─▶ collectives          the recorder at torch.distributed

Nothing here may raise into the user's program. What fails is an event `hook_failed`.
"""
import os
import sys


def start():
    """Once per interpreter, from sitecustomize. May raise; sitecustomize tells it."""
    if _is_servant():
        return
    from . import config, events, imports, targets
    settings = config.load(os.environ["NPUPROF_INJECT"])
    events.start(settings.events_dir)
    imports.install()
    if settings.targets:
        with events.guard("targets"):
            targets.install(settings)
    if settings.collectives:
        with events.guard("collectives"):
            from . import collectives
            collectives.install(settings.collectives, imports)


def _is_servant():
    """Is this one of multiprocessing's own processes, that never run the user's code?"""
    argv = getattr(sys, "argv", None) or [""]
    if argv[0] != "-c":
        return False
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return b"multiprocessing.resource_tracker" in file.read()
    except OSError:
        return False
