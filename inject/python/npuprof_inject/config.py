"""inject.json: what the launcher wants (docs/formats/inject.md)."""
from . import light

VERSION = 1
PHASES = ("both", "prefill", "decode")


class Config:
    """The members of inject.json, with the defaults of what may be left out."""

    def __init__(self, members):
        get = members.get
        if get("version") != VERSION:
            raise ValueError("inject.json has version %r, not %d" % (get("version"), VERSION))
        self.run_dir = members["run_dir"]
        self.prof_dir = members["prof_dir"]
        self.events_dir = members["events_dir"]
        self.targets = [(item["module"], item["qualname"]) for item in get("targets") or []]
        self.warmup = _whole(members, "warmup", 5, 0)
        self.call = _whole(members, "call", self.warmup + 1, 1)
        self.active = _whole(members, "active", 1, 1)
        self.ranks = get("ranks")  # None: all
        self.level = get("level") or "Level1"
        self.aic_metrics = get("aic_metrics") or "PipeUtilization"
        self.with_stack = bool(get("with_stack"))
        self.record_shapes = bool(get("record_shapes"))
        self.profile_memory = bool(get("profile_memory"))
        self.export_type = get("export_type") or ["text"]
        self.phase = get("phase") or "both"
        if self.phase not in PHASES:
            raise ValueError("phase %r is none of %s" % (self.phase, ", ".join(PHASES)))
        self.collectives = get("collectives")


def _whole(members, name, default, least):
    value = members.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError("%s is %r, not a whole number of at least %d" % (name, value, least))
    return value


def load(path):
    with open(path, encoding="utf-8") as file:
        return Config(light.loads(file.read()))
