# SPDX-License-Identifier: Apache-2.0
"""A C function that spins for as long as a run takes, called through the binding that the package uses.

Calls of it are what a run could make at best from Python threads: the same call, the same rule about the
interpreter's lock (bench/spin/spin.cpp), and no library below. It is of the benchmark only.
"""
import importlib.util
import pathlib
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time

try:
    import nanobind
except ImportError:
    nanobind = None

FOLDER = pathlib.Path(__file__).resolve().parent
# Of longer runs the calls cost nothing that would be seen.
LONGEST_NS = 100_000


def load():
    """The function spin(ns), compiled for this interpreter where it has changed. None without nanobind or CMake."""
    if nanobind is None or shutil.which("cmake") is None:
        return None
    build = FOLDER.parent / "build" / f"spin-{sysconfig.get_config_var('SOABI')}"
    configure = ["cmake", "-S", FOLDER / "spin", "-B", build, "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                 f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"]
    for command in (configure, ["cmake", "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    spec = importlib.util.spec_from_file_location("_spin", next(build.glob("_spin*.so")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.spin


def nanoseconds_of(call, seconds):
    """Of one call on this thread, the median of the means of some loops: of 20 at least, since the processors
    may be taken for all of the time. Not the least: a run takes less while another core shares its steps."""
    count = 1 + int(1e6 / max(_loop(call, 3), 1))  # about a millisecond
    end, means = time.perf_counter() + seconds, []
    while len(means) < 20 or time.perf_counter() < end:
        means.append(_loop(call, count))
    return statistics.median(means)


def _loop(call, count):
    begin = time.perf_counter_ns()
    for _ in range(count):
        call()
    return (time.perf_counter_ns() - begin) / count


def side_of(taken, spin, seconds):
    """A call that takes so many nanoseconds on this thread, or None if that is not short. What a call costs
    without a run is part of it."""
    if taken >= LONGEST_NS:
        return None
    ns = max(0, round(taken - nanoseconds_of(lambda: spin(0), seconds)))
    return lambda: spin(ns)
