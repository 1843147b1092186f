# SPDX-License-Identifier: Apache-2.0
"""The exception of compile()."""
from .._errors import Error, Status


class CompileError(Error):
    """A module cannot be compiled. Its cause (`__cause__`) is PyTorch's exception, or the library's."""

    def __init__(self, text: str, status: Status = Status.UNSUPPORTED):
        super().__init__(text)
        self.status = status
