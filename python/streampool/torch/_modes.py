# SPDX-License-Identifier: Apache-2.0
"""What a module must be like while it is exported, and is not afterwards."""
import contextlib
import threading

import torch

from ._symbolic import floor_division

# The exporter has state of the process.
_lock = threading.RLock()


@contextlib.contextmanager
def exporting(module):
    """As _prepared(), one at a time in the process."""
    with _lock, _prepared(module) as state:
        yield state


@contextlib.contextmanager
def _prepared(module):
    """In eval mode with gradients; the flags and buffers of the module and the flags of the thread are
    restored. The value restores the buffers in between.

    PyTorch replaces attention and encoder layers by fused operators, which have no ONNX form, unless
    gradients are enabled and a parameter requires one.
    """
    training = [(part, part.training) for part in module.modules()]
    state = State(module)
    frozen = [parameter for parameter in module.parameters() if _can_require_grad(parameter)]
    try:
        with torch.inference_mode(False), torch.enable_grad():
            for parameter in frozen:
                parameter.requires_grad_(True)
            module.eval()
            with floor_division():
                yield state
    finally:
        state.restore()
        for part, flag in training:
            part.training = flag
        for parameter in frozen:
            parameter.requires_grad_(False)


class State:
    """The buffers of a module, which its forward may change."""

    def __init__(self, module):
        self._buffers = [(part, dict(part._buffers)) for part in module.modules()]
        self._values = [(buffer, buffer.detach().clone()) for _, buffers in self._buffers
                        for buffer in buffers.values() if buffer is not None]

    def restore(self):
        """Other tensors in their places, and other values in them, are as they were."""
        for part, buffers in self._buffers:
            part._buffers.clear()
            part._buffers.update(buffers)
        with torch.no_grad():
            for buffer, value in self._values:
                if not torch.equal(buffer, value):
                    buffer.copy_(value)


def _can_require_grad(parameter):
    return (not parameter.requires_grad and parameter.is_floating_point() and parameter.is_leaf
            and not parameter.is_inference())
