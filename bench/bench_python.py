#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls per second from Python threads, streampool beside ONNX Runtime and PyTorch.

Run: bench_python.py [--models NAME,...] [--workers 1,2,8,31] [--seconds 0.2] [--turns 15] [--json FILE]
Needs streampool, numpy and, for the comparisons, onnxruntime, torch, and nanobind with CMake. Models are those of shared/data beside the
checkout (--data). Each worker calls one shared model with an array of its own in a loop; `task` is the same
with one task of an executor for each call, whose bound is an empty function, the row `empty`. ONNX Runtime
runs with one thread for each call, and with its defaults; PyTorch, with one thread for each call, in eager
mode and traced, where the model is one of its modules (the file has its weights). The better of a peer's two
is shown for each number of workers. `spin`, beside runs of less than 100 us, is a C function that computes for
as long as a run took on one processor at the begin of the turn, and is called in the same way (spin.py): at
least 0.9 of its rate is wanted. Each turn has all numbers of workers and all sides; rates are medians of the
turns, ratios medians of the turns' ratios. `of best` is the rate over that of the best smaller number of workers: 0.95 is wanted of runs of
100 us and more. Results are compared first. At the end: what the package takes beyond Python with NumPy, the
least of some processes.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

os.environ["OMP_NUM_THREADS"] = "1"  # else each thread that calls PyTorch has a team of its own

import numpy as np  # noqa: E402

import spin  # noqa: E402
import streampool  # noqa: E402

try:
    import onnxruntime
except ImportError:
    onnxruntime = None
try:
    import torch
except ImportError:
    torch = None

DATA = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
MODELS = ["torch_mlp", "torch_linear", "torch_encoder", "silero_vad_v5", "ppocr_cls"]
SHAPES = {"silero_vad_v5": [(1, 576), (2, 1, 128), ()], "ppocr_cls": [(1, 3, 48, 192)]}
RESTING_MODEL = "torch_linear"  # whose process is looked at for the package's memory
TOLERANCE = 1e-3
PEERS = ("onnxruntime", "torch", "spin")
IMPORT_LIMIT_MS, REST_LIMIT_MB = 10, 8  # what is aimed at

# Prints the milliseconds of the import, and the MB of the package at rest: imported, after a run and a future.
FOOTPRINT = """
import time
import numpy as np
def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024
before, begin = resident(), time.perf_counter()
import streampool
milliseconds = (time.perf_counter() - begin) * 1000
model = streampool.load(__import__("sys").argv[1])
array = np.zeros([size if isinstance(size, int) else 1 for size in model.inputs[0].shape], np.float32)
model(array), model.submit(array).result()
weights = model.info["weight_bytes"] / 2**20
print(milliseconds, resident() - before - weights)
"""


def arrays_for(name, model):
    """One row of fixed values for each input."""
    arrays = {}
    for i, port in enumerate(model.inputs):
        shape = SHAPES[name][i] if name in SHAPES else tuple(
            size if isinstance(size, int) else 1 for size in port.shape)
        if port.dtype == "int64":
            arrays[port.name] = np.array(16000)
            continue
        values = np.sin(np.arange(math.prod(shape), dtype=np.float32) + i) * 0.5
        arrays[port.name] = values.reshape(shape).astype(port.dtype)
    return arrays


# ---- sides: name, and a function that makes the call of one worker ----

def our_side(path, arrays):
    model = streampool.load(path)
    values = tuple(arrays.values())
    return lambda: model(*values)


def peer_side(path, arrays, threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, arrays)


def torch_module(name):
    """The module that the file was exported from, with its weights: they follow from the seed. Or None."""
    nn = torch.nn
    modules = {
        "torch_linear": lambda: nn.Linear(256, 128),
        "torch_mlp": lambda: nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                                           nn.Linear(512, 128)),
        "torch_encoder": lambda: nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0),
    }
    torch.manual_seed(sum(map(ord, name)))
    return modules[name]().eval() if name in modules else None


def torch_sides(name, arrays):
    module = torch_module(name)
    if module is None:
        return {}
    values = [torch.from_numpy(array) for array in arrays.values()]

    def call_of(function):
        def call():
            with torch.inference_mode():
                return function(*values).numpy()
        return call

    with torch.inference_mode():
        traced = torch.jit.freeze(torch.jit.trace(module, values))
    return {"torch, eager": call_of(module), "torch, traced": call_of(traced)}


def sides_for(name, path, arrays):
    sides = {"streampool": our_side(path, arrays)}
    if onnxruntime is not None:
        sides["onnxruntime, 1 thread"] = peer_side(path, arrays, 1)
        sides["onnxruntime, default"] = peer_side(path, arrays, 0)
    if torch is not None:
        sides.update(torch_sides(name, arrays))
    return sides


def as_list(result):
    return [result] if isinstance(result, np.ndarray) else list(result)


def check_results(name, sides):
    """Ends the program if the sides disagree."""
    results = {side: as_list(call()) for side, call in sides.items()}
    for side, arrays in results.items():
        for ours, theirs in zip(results["streampool"], arrays):
            if not np.allclose(ours, theirs, rtol=TOLERANCE, atol=TOLERANCE):
                sys.exit(f"{name}: streampool and {side} differ")


# ---- rates ----

def looped(call, workers, seconds):
    """Calls a second of workers that loop. Raises what a call has raised."""
    is_over = threading.Event()
    begin = threading.Barrier(workers + 1)

    def work():
        try:
            call()  # a thread's first call sets things up
            begin.wait()
            count = 0
            while not is_over.is_set():
                call()
                count += 1
            return count
        except BaseException:
            begin.abort()
            raise

    with ThreadPoolExecutor(workers) as pool:
        try:
            futures = [pool.submit(work) for _ in range(workers)]
            begin.wait()
            start = time.perf_counter()
            time.sleep(seconds)
        except threading.BrokenBarrierError:
            start = time.perf_counter()
        except BaseException:  # an interrupt: some workers may not have begun
            begin.abort()
            raise
        finally:
            is_over.set()
        for future in futures:
            error = future.exception()
            if error is not None and not isinstance(error, threading.BrokenBarrierError):
                raise error
        return sum(future.result() for future in futures) / (time.perf_counter() - start)


def tasked(call, workers, seconds, rate):
    """Calls a second with one task of an executor each. Of slow calls, of which `rate` are made in a second, fewer
    are submitted at a time: all are waited for."""
    done = 0
    count = min(200, max(2 * workers, round(rate * seconds / 4)))
    start = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        while time.perf_counter() - start < seconds:
            for future in [pool.submit(call) for _ in range(count)]:
                future.result()
            done += count
        return done / (time.perf_counter() - start)


def lone_nanoseconds(name, options):
    """Of our call, in a process that is kept on one processor: else a run of one caller may share its work with
    another core, which runs of several callers cannot."""
    command = [sys.executable, "-B", __file__, "--data", options.data, "--seconds", str(options.seconds),
               "--lone", name]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def spins_of(name, spin_for, options):
    """{"spin": a call that takes as long as ours does now}, or nothing for a longer one."""
    side = spin_for and spin.side_of(lone_nanoseconds(name, options), spin_for, options.seconds)
    return {"spin": side} if side else {}


def measure(name, sides, spin_for, options):
    """{workers: {side: (looped, tasked)}}, each a list by turn. All numbers of workers and all sides are in each
    turn: a ratio within a turn says something also where the machine has other work from time to time."""
    rates = {workers: {} for workers in options.workers}
    for workers in options.workers:  # what a side makes in the background is there then
        for call in sides.values():
            looped(call, workers, options.seconds)
    spins = {}
    for _ in range(options.turns):
        spins = spins_of(name, spin_for, options) or spins
        turn = {**sides, **spins}
        for workers in options.workers:
            for side, call in turn.items():
                pair = rates[workers].setdefault(side, ([], []))
                pair[0].append(looped(call, workers, options.seconds))
                pair[1].append(tasked(call, workers, options.seconds, pair[0][-1]))
    return rates


def nothing():
    """What an executor costs by itself."""


# ---- figures ----

def median_ratio(values, others):
    """Of the ratios within a turn."""
    return statistics.median(value / other for value, other in zip(values, others))


def best_of(rates, peer, column):
    """The peer's side with the better median, by turn, or None."""
    sides = [pair[column] for side, pair in rates.items() if side.startswith(peer)]
    return max(sides, key=statistics.median, default=None)


def share_of_best(rates, workers, side):
    """The looped rate over that of the best smaller number of workers, or None."""
    smaller = [rates[number][side][0] for number in rates if number < workers]
    if not smaller:
        return None
    return median_ratio(rates[workers][side][0], max(smaller, key=statistics.median))


def show(case, rates, share, side):
    row = f"{case['model']:<15}{case['workers']:>8}"
    for column in range(2):
        mine = rates[side][column]
        row += f"{round(statistics.median(mine)):>13,}"
        if column == 0:
            row += f"{share:>8.2f}" if share else f"{'':>8}"
        for peer in PEERS:
            best = best_of(rates, peer, column)
            row += f"{round(statistics.median(best)):>13,}{median_ratio(mine, best):>7.2f}" if best else f"{'':>20}"
    print(row, flush=True)


def run_model(name, sides, spin_for, options, cases):
    rates = measure(name, sides, spin_for, options)
    side = next(iter(sides))
    for workers in options.workers:
        case = {"model": name, "workers": workers}
        share = share_of_best(rates, workers, side)
        peer = best_of(rates[workers], "onnxruntime", 0)
        show(case, rates[workers], share, side)
        case["calls_per_second"] = {
            of_side: {"looped": round(statistics.median(pair[0])), "tasked": round(statistics.median(pair[1]))}
            for of_side, pair in rates[workers].items()}
        case["share_of_best"] = share and round(share, 3)
        case["over_onnxruntime"] = peer and round(median_ratio(rates[workers][side][0], peer), 3)
        cases.append(case)


def geometric_mean(cases, workers):
    """Of ours over ONNX Runtime's better rate, looped, at so many workers."""
    ratios = [case["over_onnxruntime"] for case in cases
              if case["workers"] == workers and case["over_onnxruntime"]]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def footprint(path, processes):
    """(milliseconds of the import, MB at rest without the weights): the least of the processes."""
    values = []
    for _ in range(processes):
        done = subprocess.run([sys.executable, "-c", FOOTPRINT, path], stdout=subprocess.PIPE, text=True, check=True)
        values.append([float(value) for value in done.stdout.split()])
    return tuple(min(column) for column in zip(*values))


def show_footprint(path, processes, cases):
    milliseconds, megabytes = footprint(path, processes)
    print(f"import: {milliseconds:.1f} ms beyond NumPy's, of {IMPORT_LIMIT_MS} planned")
    print(f"memory at rest: {megabytes:.1f} MB beyond Python with NumPy, of {REST_LIMIT_MB} planned")
    cases.append({"import_ms": round(milliseconds, 1), "rest_mb": round(megabytes, 1)})


def path_of(name, options):
    return options.data / "models" / name / "model.onnx"


def lone(options):
    """What lone_nanoseconds asks its process for."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before the library counts the processors
    path = path_of(options.lone, options)
    call = our_side(path, arrays_for(options.lone, streampool.load(path)))
    return spin.nanoseconds_of(call, options.seconds)


# ---- arguments ----

def count_of(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 on")
    return int(text)


def counts_of(text):
    return [count_of(part) for part in text.split(",")]


def seconds_of(text):
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return value


def options_of(arguments):
    """Files are looked for before anything is measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--workers", type=counts_of, default=[1, 2, 8, 31])
    parser.add_argument("--seconds", type=seconds_of, default=0.2, help="of a window")
    parser.add_argument("--turns", type=count_of, default=15)
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--lone", metavar="NAME", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.json and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    for name in [options.lone] if options.lone else options.models + [RESTING_MODEL]:
        path = path_of(name, options)
        if not path.is_file():
            parser.error(f"there is no {path}: --data is the folder that has models/NAME/model.onnx")
    return options


def main():
    options = options_of(sys.argv[1:])
    if options.lone:
        print(lone(options))
        return
    peers = "".join(f"{peer:>13}{'ratio':>7}" for peer in PEERS)
    print(f"{'model':<15}{'workers':>8}{'calls/s':>13}{'of best':>8}{peers}{'tasks/s':>13}{peers}", flush=True)
    cases, spin_for = [], spin.load()
    for name in options.models:
        path = path_of(name, options)
        arrays = arrays_for(name, streampool.load(path))
        sides = sides_for(name, path, arrays)
        check_results(name, sides)
        run_model(name, sides, spin_for, options, cases)
    run_model("empty", {"empty": nothing}, None, options, cases)
    for workers in options.workers:
        mean = geometric_mean(cases, workers)
        if mean is not None:
            print(f"geometric mean of calls/s to ONNX Runtime's, {workers} workers: {mean:.2f}")
    show_footprint(path_of(RESTING_MODEL, options), 2 * options.turns + 1, cases)
    if options.json:
        options.json.write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
