# SPDX-License-Identifier: Apache-2.0
"""The exceptions of streampool.torch."""
from .._errors import Error, Status


class CompileError(Error):
    """A module cannot be compiled. Its cause (`__cause__`) is PyTorch's exception, or the library's."""

    def __init__(self, text: str, status: Status = Status.UNSUPPORTED):
        super().__init__(text)
        self.status = status


class BuildError(Error):
    """The bridge to PyTorch (streampool.torch.device) cannot be compiled; the text says what is missing."""

    status = Status.UNSUPPORTED
