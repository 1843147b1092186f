# SPDX-License-Identifier: Apache-2.0
"""What the objects have in common that end before their last reference."""
import typing


class Handle:
    """An object of the library, `_core`, that close() or the end of a with statement releases."""

    def close(self) -> None:
        """Releases the object. Runs in flight finish; later calls raise Error."""
        self._core.close()

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
