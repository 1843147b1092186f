# SPDX-License-Identifier: Apache-2.0
"""The bridge to PyTorch, compiled at first use by the user's compiler against the user's PyTorch.

PyTorch's C++ interface has no stable binary form, so the package has the sources. The result is kept in
`$XDG_CACHE_HOME/streampool` (`~/.cache/streampool`), by a key of all that it is made of.
"""
import fcntl
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import torch

import streampool

from .._errors import BuildError

_PACKAGE = pathlib.Path(streampool.__file__).parent
_SOURCES = pathlib.Path(__file__).parent / "src"
_HEADERS = _PACKAGE / "include"
_TORCH = pathlib.Path(torch.__file__).parent
_HINT = "streampool.torch.device is compiled at its first use, once for each version of PyTorch. "


def _torch_includes():
    """The folders of PyTorch's headers: in its own package, or the system's."""
    for folder in (_TORCH / "include", pathlib.Path("/usr/include"), pathlib.Path("/usr/local/include")):
        if (folder / "ATen/ATen.h").is_file():
            return [folder, folder / "torch/csrc/api/include"]
    raise BuildError(f"{_HINT}There are no headers of PyTorch {torch.__version__}: {_TORCH}/include has "
                       "no ATen/ATen.h. Debian has them in the package libtorch-dev; PyPI's torch has "
                       "them always.")


def _compiler():
    """The command of the C++ compiler: that of CXX, or the first that is there."""
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["c++", "g++", "clang++"]
    for name in names:
        command = shlex.split(name)
        if shutil.which(command[0]):
            return command
    raise BuildError(f"{_HINT}There is no C++ compiler: none of {', '.join(names)} is a program. Install "
                       "g++ 11 or newer (Debian: the package g++), or set CXX.")


def _version():
    return tuple(map(int, re.match(r"(\d+)\.(\d+)", torch.__version__).groups()))


def _library():
    return next(_PACKAGE.glob("libstreampool.so.*"))


def _command():
    """The compiler's call, without the file to compile and the result."""
    standard = "c++17" if _version() < (2, 10) else "c++20"
    system = [flag for folder in _torch_includes() if folder != pathlib.Path("/usr/include")
              for flag in ("-isystem", str(folder))]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"
    return [*_compiler(), f"-std={standard}", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", abi,
            f"-I{_SOURCES}", f"-I{_HEADERS}", *system,
            *shlex.split(os.environ.get("CXXFLAGS", ""))]


def _libraries():
    """The library of the package is found by its name, since the process has loaded it."""
    return [f"-L{_TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", str(_library())]


def _key(command):
    digest = hashlib.sha256()
    for part in (streampool.__version__, torch.__version__, str(torch.version.git_version), str(_TORCH),
                 *command, *_libraries()):
        digest.update(part.encode() + b"\0")
    for file in sorted([*_SOURCES.glob("*.?pp"), *_HEADERS.rglob("*.h")]):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"torch-{torch.__version__}-{digest.hexdigest()[:20]}"


def _cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = pathlib.Path(home) / "streampool"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise BuildError(f"{_HINT}The folder for the result, {folder}, cannot be written: {error}. "
                           "XDG_CACHE_HOME names another one.") from error


def _compile(command, result):
    """All sources are one file for the compiler, since PyTorch's headers take most of its time."""
    with tempfile.TemporaryDirectory(dir=result.parent) as folder:
        unit = pathlib.Path(folder) / "bridge.cpp"
        unit.write_text("".join(f'#include "{file.name}"\n' for file in sorted(_SOURCES.glob("*.cpp"))))
        made = pathlib.Path(folder) / result.name
        call = [*command, str(unit), "-o", str(made), *_libraries()]
        done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise BuildError(f"{_HINT}The compiler failed. It must be g++ 11 or clang++ 14 or newer, and "
                               f"the headers must be those of PyTorch {torch.__version__}.\n"
                               f"{shlex.join(call)}\n{_first_errors(done.stdout)}")
        os.replace(made, result) # other processes see all of it or nothing


def _first_errors(output):
    lines = output.splitlines()
    errors = [place for place, line in enumerate(lines) if "error" in line]
    first = errors[0] if errors else 0
    return "\n".join(lines[first:first + 12])


def library():
    """The path of the compiled bridge. Of several processes that need it, one compiles."""
    command = _command()
    cache = _cache()
    result = cache / f"{_key(command)}.so"
    if result.exists():
        return str(result)
    with open(result.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            _compile(command, result)
    return str(result)
