# SPDX-License-Identifier: Apache-2.0
"""python -m streampool: the program streampool, which the package carries."""
import os
import sys


def main() -> None:
    """Becomes the program, with the same arguments."""
    program = os.path.join(os.path.dirname(__file__), "bin", "streampool")
    os.execv(program, ["streampool", *sys.argv[1:]])


if __name__ == "__main__":
    main()
