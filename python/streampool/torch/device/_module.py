# SPDX-License-Identifier: Apache-2.0
"""The calls of torch.cuda that code for any device makes. There is one device, of index 0."""
import os

import streampool
import torch

_PID = os.getpid()


def is_available():
    """Whether the device can be used."""
    return True


def is_initialized():
    """Whether the device is in use; it needs no call before the first one."""
    return True


def _is_in_bad_fork():
    """Whether this is a forked child, in which calls of the device fail."""
    return os.getpid() != _PID


def device_count():
    """The number of devices."""
    return 1


def current_device():
    """The index of the current device."""
    return 0


def set_device(device):
    """Makes a device the current one."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, -1, 0):
        raise RuntimeError(f"streampool has one device, of index 0; given: {device}")


class device:
    """A scope in which a device is the current one."""

    def __init__(self, device):
        set_device(device)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def synchronize(device=None):
    """Waits until all work of all threads that was queued before has completed."""
    set_device(device if device is not None else 0)
    streampool.synchronize()


def host_kernel_count():
    """Calls of PyTorch's kernels for the host so far, by all threads: of operators without a kernel here."""
    return torch.ops.streampool.host_kernel_count()


def memory_allocated(device=None):
    """Bytes in live tensors, but for results of kernels of the host, which are in its memory."""
    return streampool.current_allocated_memory()


def memory_reserved(device=None):
    """Bytes that the allocator has: in use, and cached for reuse."""
    return streampool.driver_allocated_memory()


def max_memory_allocated(device=None):
    """The highest memory_reserved(), since reset_peak_memory_stats()."""
    return streampool.max_memory_allocated()


max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device=None):
    """The maxima begin again at what is allocated now."""
    streampool.reset_peak_memory_stats()


def memory_stats(device=None):
    """The counters of the allocator, by name."""
    return streampool.memory_stats()


def empty_cache():
    """Returns unused cached memory to the system."""
    streampool.empty_cache()


def manual_seed(seed):
    """Seeds the generator that the device and the host share."""
    torch.default_generator.manual_seed(int(seed))


def seed():
    """Seeds it with a random number."""
    torch.default_generator.seed()


def initial_seed():
    """The seed of that generator."""
    return torch.default_generator.initial_seed()


def get_rng_state(device=None):
    """Its state."""
    return torch.default_generator.get_state()


def set_rng_state(state, device=None):
    """Sets its state."""
    torch.default_generator.set_state(state)


manual_seed_all = manual_seed


def get_rng_state_all():
    """The states of all devices."""
    return [get_rng_state()]


def set_rng_state_all(states):
    """Sets the states of all devices."""
    for state in states:
        set_rng_state(state)


def get_amp_supported_dtype():
    """The dtypes of torch.autocast("sp")."""
    return [torch.float16, torch.bfloat16]
