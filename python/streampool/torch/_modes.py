# SPDX-License-Identifier: Apache-2.0
"""What a module must be like while it is exported, and is not afterwards."""
import contextlib

import torch


@contextlib.contextmanager
def exporting(module):
    """In eval mode with gradients; the flags of the module and of the thread are restored.

    PyTorch replaces attention and encoder layers by fused operators, which have no ONNX form, unless
    gradients are enabled and a parameter requires one.
    """
    training = [(part, part.training) for part in module.modules()]
    frozen = [parameter for parameter in module.parameters() if _can_require_grad(parameter)]
    try:
        with torch.inference_mode(False), torch.enable_grad():
            for parameter in frozen:
                parameter.requires_grad_(True)
            module.eval()
            yield
    finally:
        for part, flag in training:
            part.training = flag
        for parameter in frozen:
            parameter.requires_grad_(False)


def _can_require_grad(parameter):
    return (not parameter.requires_grad and parameter.is_floating_point() and parameter.is_leaf
            and not parameter.is_inference())
