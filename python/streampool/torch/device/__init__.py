# SPDX-License-Identifier: Apache-2.0
"""A device of PyTorch whose operators run on streampool's streams, in its memory.

    import streampool.torch.device
    model.to("sp")              # and model(x.to("sp")) from any thread

The import compiles the bridge to PyTorch if no earlier one did. In PyTorch 2 this module is `torch.sp`.
"""
import sys

import torch

from . import _build, _names

_path = _build.library()
_names.claim()
torch.ops.load_library(_path)

from ._module import (current_device, device, device_count, empty_cache, get_amp_supported_dtype,  # noqa: E402
                      get_rng_state, get_rng_state_all, host_kernel_count, initial_seed, is_available, is_initialized,
                      manual_seed, manual_seed_all, max_memory_allocated, max_memory_reserved,
                      memory_allocated, memory_reserved, memory_stats, reset_peak_memory_stats, seed,
                      set_device, set_rng_state, set_rng_state_all, synchronize, _is_in_bad_fork)

_names.install(sys.modules[__name__])
