# SPDX-License-Identifier: Apache-2.0
"""Operators whose ONNX form in PyTorch's exporter has other results than the operator."""
import contextlib

import torch
from torch.onnx import symbolic_opset10

# LayerNormalization, of opset 17, has no form without weights in PyTorch 1.13.
OPSET = 16
_FLOOR_DIVIDE = "aten::floor_divide"


def _floor_divide(graph, dividend, divisor):
    """The exporter's own form rounds toward zero, which the operator did before PyTorch 1.13."""
    return symbolic_opset10.div(graph, dividend, divisor, "floor")


@contextlib.contextmanager
def floor_division():
    """x // y rounds down in what is exported. Held under the exporter's lock: its table is the process's."""
    torch.onnx.register_custom_op_symbolic(_FLOOR_DIVIDE, _floor_divide, OPSET)
    try:
        yield
    finally:
        torch.onnx.unregister_custom_op_symbolic(_FLOOR_DIVIDE, OPSET)
