#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests per second of one event loop with many requests in flight, beside what bounds them.

Run: bench_asyncio.py [--models NAME,...] [--in-flight 1000] [--seconds 1] [--turns 5] [--data FOLDER]
Needs streampool and numpy. So many coroutines call one model with one row each, again and again: by `submit`
and by a batch queue. `empty` is the same program over a model that does nothing, `batch` the rows a second of
one thread that calls the model with 64 rows at a time. The better of the two ways should reach 0.9 of the lesser
bound. The sides take turns; the median of the turns' ratios counts, and of the rates.
"""
import argparse
import asyncio
import pathlib
import statistics
import sys
import time

import numpy as np

import streampool
from bench_python import DATA, arrays_for

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "tests"))
import onnx_writer  # noqa: E402

MODELS = ["torch_linear", "torch_mlp", "policy_go1"]
ROWS = 64


def empty_model():
    """Gives its input, one row of 4 floats, back."""
    return streampool.load(onnx_writer.unary("Identity", "float32", ["n", 4]))


async def requests(submit, values, in_flight, seconds):
    """How many a second `in_flight` coroutines make."""
    count, end = 0, time.perf_counter() + seconds

    async def caller():
        nonlocal count
        while time.perf_counter() < end:
            await submit(*values)
            count += 1

    begin = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return count / (time.perf_counter() - begin)


def batch_rate(model, values, seconds):
    """Rows a second of one thread that calls with ROWS of them, as a batch or, of a model of one row, as a list."""
    is_fixed = all(isinstance(size, int) for port in model.inputs for size in port.shape)
    if is_fixed:
        requests = [tuple(values)] * ROWS
        call = lambda: streampool.batch_inference(model, requests)  # noqa: E731
    else:
        arrays = [np.repeat(value, ROWS, axis=0) for value in values]
        call = lambda: model(*arrays)  # noqa: E731
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        call()
        count += ROWS
    return count / (time.perf_counter() - begin)


def turn(model, empty, values, options):
    """Requests or rows a second: by submit, by a queue, the same of the empty model, in batches."""
    rates = []
    for target, arrays in ((model, values), (empty, [np.zeros((1, 4), np.float32)])):
        with streampool.BatchQueue(target) as queue:
            for submit in (target.submit, queue.submit):
                rates.append(asyncio.run(requests(submit, arrays, options.in_flight, options.seconds)))
    return (*rates, batch_rate(model, values, options.seconds))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    parser.add_argument("--models", type=lambda text: text.split(","), default=MODELS)
    parser.add_argument("--in-flight", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    empty = empty_model()
    headings = ("submit", "queue", "empty submit", "empty queue", "batch", "of the bound")
    print(f"{'model':<15}" + "".join(f"{heading:>14}" for heading in headings))
    for name in options.models:
        model = streampool.load(options.data / "models" / name / "model.onnx")
        values = list(arrays_for(name, model).values())
        turns = [turn(model, empty, values, options) for _ in range(options.turns)]
        ratios = [max(t[:2]) / min(max(t[2:4]), t[4]) for t in turns]
        medians = [statistics.median(column) for column in zip(*turns)]
        print(f"{name:<15}" + "".join(f"{rate:>14,.0f}" for rate in medians)
              + f"{statistics.median(ratios):>14.2f}", flush=True)


if __name__ == "__main__":
    main()
