"""Process groups, as records name them: rank, world, "0,1,2,3".

A group is never kept alive by us: its destructor closes its connections.
"""
import itertools
import weakref


class Group:
    """One group of this process. seq: numbers of the calls on it."""

    def __init__(self, rank=-1, world=-1, ranks=(), name=""):
        self.rank, self.world = rank, world
        self.name = ",".join(map(str, ranks))
        self.hash = name_hash(name)
        self.seq = itertools.count()
        self._index = {global_rank: i for i, global_rank in enumerate(ranks)}

    def peer(self, global_rank):
        """The number in the group of a rank as torch's functions take it; -1 none."""
        return -1 if global_rank is None else self._index.get(global_rank, -1)


def name_hash(name):
    """The hash by which CANN names a communicator; 0 without a name (docs/formats/comm_ops.md)."""
    low = high = 0
    for byte in name.encode("utf-8", "replace"):
        high = (high * 29 + byte) & 0xFFFFFFFF
        low = (low * 131 + byte) & 0xFFFFFFFF
    return high << 32 | low


UNKNOWN = Group()


class Groups:
    def __init__(self, c10d):
        self._c10d = c10d
        self._known = {}  # id: (weak reference, Group)

    def find(self, group):
        """The Group; None when this process is not in it: then the call does nothing."""
        if group is None:
            try:
                group = self._c10d._get_default_group()
            except Exception:  # not initialised: the user's call says so
                return UNKNOWN
        known = self._known.get(id(group))
        if known is not None and known[0]() is group:
            return known[1]
        return self._learn(group)

    def _learn(self, group):
        c10d = self._c10d
        if isinstance(group, str):
            return self.find(c10d._resolve_process_group(group))
        if hasattr(group, "get_group"):  # a DeviceMesh of one dimension
            return self.find(group.get_group())
        if isinstance(group, tuple) and len(group) == 2 and hasattr(group[0], "get_group"):
            return self.find(group[0].get_group(group[1]))
        if isinstance(group, (list, tuple)) and group:
            return self._of_ranks(group)
        if c10d._rank_not_in_group(group):
            return None
        if not isinstance(group, c10d.ProcessGroup):
            return UNKNOWN
        found = Group(group.rank(), group.size(), self._ranks(group), self._name(group))
        key = id(group)
        self._known[key] = (weakref.ref(group, lambda _: self._known.pop(key, None)), found)
        return found

    def _of_ranks(self, ranks):
        """Functional collectives take a list of ranks, too, or a list of such groups."""
        me = self._c10d._get_default_group().rank()
        if isinstance(ranks[0], (list, tuple)):
            ranks = next((one for one in ranks if me in one), ())
        ranks = tuple(ranks)
        if me not in ranks:
            return None
        known = self._known.get(ranks)
        if known is None:
            known = self._known[ranks] = (None, Group(ranks.index(me), len(ranks), ranks))
        return known[1]

    def _table(self, name):
        world = getattr(self._c10d, "_world", None)  # torch 2
        return getattr(world, name, None) if world is not None else getattr(self._c10d, "_" + name)

    def _ranks(self, group):
        try:
            table = self._table("pg_group_ranks")[group]
            return sorted(table, key=table.get)
        except Exception:
            return ()

    def _name(self, group):
        try:
            return str(self._table("pg_names")[group])
        except Exception:
            return ""
