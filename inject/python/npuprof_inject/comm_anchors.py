"""Puts the stages at their anchors, once the modules of these are there (R24, R25)."""
import sys

from . import events


class _Anchor:
    """module, qualname: as of a target, since mainmod handles both."""

    def __init__(self, stage):
        self.stage, self.module, self.qualname = stage["name"], stage["module"], stage["qualname"]
        self.name = "%s:%s" % (self.module, self.qualname)
        self.done = False
        self.reasons = []  # what was told by not_found


class Anchors:
    def __init__(self, stages, make_recorder):
        self._anchors = [_Anchor(stage) for stage in stages]
        self._make_recorder = make_recorder

    def install(self, imports):
        if not self._anchors:
            return
        from . import find, mainmod
        for anchor in self._anchors:
            if anchor.module != "__main__":
                imports.after(anchor.module, self._callback(anchor), every=True)
        mainmod.install(self._anchors, self._attempt, find.not_found)

    def found(self):
        """{stage: is one of its anchors in place?}, in the order of the configuration."""
        found = {}
        for anchor in self._anchors:
            found[anchor.stage] = found.get(anchor.stage, False) or anchor.done
        return found

    def look_again(self):
        for anchor in self._anchors:
            module = sys.modules.get(anchor.module)
            if anchor.done or module is None:
                continue
            if anchor.module == "__main__":  # it goes on, and may define it yet
                self._attempt(anchor, module)
            else:
                self._try(anchor, module)

    def _callback(self, anchor):
        return lambda module: self._try(anchor, module)

    def _try(self, anchor, module):
        from . import find
        problem = self._attempt(anchor, module)
        if problem is not None:
            find.not_found(anchor, module, problem)

    def _attempt(self, anchor, module):
        """None, or the exception that says why not."""
        from . import find, wrap
        try:
            holder, name, raw = find.find(module, anchor.qualname)
            new = self._rewrap(anchor.stage, raw)
            setattr(holder, name, new)
        except (find.Missing, wrap.Refused, AttributeError, TypeError) as problem:
            return problem
        if not isinstance(holder, type):
            find.everywhere(raw, new)
        anchor.done = True
        events.write("collectives_stage", stage=anchor.stage, target=anchor.name)
        return None

    def _rewrap(self, stage, raw):
        import functools
        from . import comm_stages, step, wrap
        kind = type(raw)
        if kind in (staticmethod, classmethod):
            return kind(self._rewrap(stage, raw.__func__))
        if kind in (functools.partial, functools.partialmethod):
            return kind(self._rewrap(stage, raw.func), *raw.args, **raw.keywords)
        if isinstance(raw, type):
            raise wrap.Refused("it is a class; name one of its methods")
        if not callable(raw):
            raise wrap.Refused("it is a %s, which cannot be called" % kind.__name__)
        wrapper = comm_stages.wrap(self._make_recorder().stages, stage, raw)
        step.skip_compiler(wrapper)
        return wrapper
