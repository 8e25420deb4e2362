"""torch_npu.npu, also reached as torch.npu."""
import os

calls = {"synchronize": 0}


def synchronize(device=None):
    calls["synchronize"] += 1


def is_available():
    return device_count() > 0


def device_count():
    return int(os.environ.get("FAKE_NPU_DEVICES", "8"))


def current_device():
    return int(os.environ.get("LOCAL_RANK", "0"))


def set_device(device):
    return None
