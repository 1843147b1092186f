# SPDX-License-Identifier: Apache-2.0
"""streampool: any number of threads run ONNX models on one device at the same time.

    model = streampool.load("model.onnx")
    y = model(x)                # from any thread
    future = model.submit(x)    # future.result(), or await future
"""
import _thread
import typing

# _core tells by itself before Python 3.13, which runs the entry of an extension in the main interpreter.
if hasattr(_thread, "_is_main_interpreter") and not _thread._is_main_interpreter():
    raise ImportError("streampool does not work in a subinterpreter: import it in the main one")

from . import _core
from ._errors import Error, Status
from ._core import (Device, Event, Stream, Tensor, current_allocated_memory, current_stream,
                    default_stream, device, device_count, driver_allocated_memory, empty_cache,
                    is_available, max_memory_allocated, memory_stats, recommended_max_memory,
                    release_current_thread_slot, reset_peak_memory_stats,
                    set_per_process_memory_fraction, stream, synchronize)
from ._lifetime import futures as _futures, prepare_threads as _prepare_threads
from ._convert import from_dlpack
from ._model import Model, Port, load
from ._batch import BatchQueue, batch_inference, configure_batch_queue
from ._tensor import tensor
from . import ops

_prepare_threads()

if typing.TYPE_CHECKING:
    from ._future import Future

__version__: str = _core.version()

__all__ = [
    "BatchQueue", "Device", "Error", "Event", "Future", "Model", "Port", "Status", "Stream", "Tensor",
    "batch_inference", "configure_batch_queue", "current_allocated_memory", "current_stream",
    "default_stream", "device", "device_count", "driver_allocated_memory", "empty_cache",
    "from_dlpack", "is_available", "load", "max_memory_allocated", "memory_stats", "ops",
    "recommended_max_memory", "release_current_thread_slot", "reset_peak_memory_stats",
    "set_per_process_memory_fraction", "stream", "synchronize", "tensor",
]


def __getattr__(name):
    if name == "Future":
        return _futures().Future
    raise AttributeError(f"module 'streampool' has no attribute '{name}'")
