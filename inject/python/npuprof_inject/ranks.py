"""Which rank this process is, and whether it only serves another one."""
import os
import sys


def rank():
    """RANK, else what torch.distributed says once it is initialised, else None."""
    try:
        return int(os.environ["RANK"])
    except (KeyError, ValueError):
        pass
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except Exception:  # half imported, or being destroyed
        pass
    return None


def is_loader_worker():
    """Is this a worker of a DataLoader? It runs the user's code, but no model."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    return getattr(worker, "_worker_info", None) is not None
