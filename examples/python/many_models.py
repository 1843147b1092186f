#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several models on one device, called by threads that each use all of them.

Run: many_models.py [THREADS]
"""
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import streampool

EXAMPLES = pathlib.Path(__file__).resolve().parents[1]


def inputs_of(model, seed):
    """Numbers for each input; free sizes are those of one window of speech."""
    random = np.random.default_rng(seed)
    sizes = {"input": (1, 576), "state": (2, 1, 128)}
    arrays = {}
    for port in model.inputs:
        if port.name == "sr":
            arrays[port.name] = np.array(16000)
        else:
            arrays[port.name] = random.random(sizes.get(port.name, port.shape), np.float32)
    return arrays


def bits_of(result):
    return b"".join(array.tobytes() for array in result)


def main():
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    # A heavier model gets a larger share of the device while both have runs that wait.
    models = [streampool.load(EXAMPLES / "blazeface" / "model.onnx", weight=3),
              streampool.load(EXAMPLES / "silero_vad" / "model.onnx")]
    work = [(model, inputs_of(model, seed)) for seed in range(10) for model in models]
    expected = [bits_of(model.run(inputs)) for model, inputs in work]

    def use_all(_):
        return [bits_of(model.run(inputs)) for model, inputs in work] == expected

    with ThreadPoolExecutor(threads) as pool:
        is_same = all(pool.map(use_all, range(threads)))
    for model in models:
        counts = model.statistics()
        print(f"{model.inputs[0].name}: {counts['runs']} runs, {counts['most_in_flight']} at once at most")
    print("equal to lone calls" if is_same else "WRONG")
    raise SystemExit(not is_same)


if __name__ == "__main__":
    main()
