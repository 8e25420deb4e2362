"""What npuprof run does inside the user's process: docs/formats/inject.md, docs/guide/inject.md.

    sitecustomize ─▶ start() ─▶ config     inject.json
                             ─▶ events     events/<pid>.jsonl
                             ─▶ targets ─▶ imports   a callback once a module was imported
                                        ─▶ mainmod   the same for the program itself, __main__
                                        ─▶ attach    find the target (find), wrap it (wrap)
                                             └▶ step     the profiler around the chosen call
                             ─▶ collectives          the recorder at torch.distributed

Nothing here may raise into the user's program. What fails is an event `hook_failed`.
"""
import os

_started = False  # sitecustomize may be reloaded


def start():
    """Once per interpreter, from sitecustomize. May raise; sitecustomize tells it."""
    global _started
    from . import processes
    if _started or processes.is_servant():
        return
    _started = True
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
