# SPDX-License-Identifier: Apache-2.0
"""The operators that models use, on tensors, by their ONNX names."""
from typing import Any, Protocol

class _Operator(Protocol):
    def __call__(self, *inputs: Any, outputs: int | None = None, device: Any = None,
                 opset: int = 0, **attributes: Any) -> Any: ...

__all__: list[str]

def __getattr__(name: str) -> _Operator: ...
