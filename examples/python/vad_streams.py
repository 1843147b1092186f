#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""31 audio streams at once, a thread each, through one speech detector; each has a state of its own.

Run: vad_streams.py [SECONDS]   (of audio in each stream; default: the whole clip)
The probabilities are compared with those of another program (examples/silero_vad/reference.f32).
"""
import pathlib
import sys
import time
import wave
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import streampool

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "silero_vad"
WINDOW, CONTEXT, STREAMS, WINDOWS = 512, 64, 31, 394
RATE = np.array(16000)


def read_clip():
    with wave.open(str(FOLDER / "clip.wav")) as clip:
        samples = np.frombuffer(clip.readframes(clip.getnframes()), "<i2")
    return samples.astype(np.float32) / np.float32(32768)


def detect(model, samples, windows):
    """The probability of speech in each window."""
    padding = -len(samples) % WINDOW
    padded = np.pad(samples, (CONTEXT, padding))
    state = np.zeros((2, 1, 128), np.float32)
    probabilities = np.empty(windows, np.float32)
    for i in range(windows):
        window = padded[None, i * WINDOW : i * WINDOW + CONTEXT + WINDOW]
        output, state = model(window, state, RATE)
        probabilities[i] = output[0, 0]
    return probabilities


def main():
    windows = min(WINDOWS, int(float(sys.argv[1]) * 16000) // WINDOW) if len(sys.argv) > 1 else WINDOWS
    model, clip = streampool.load(FOLDER / "model.onnx"), read_clip()
    streams = [np.roll(clip, -(k * len(clip) // STREAMS)) for k in range(STREAMS)]
    begin = time.perf_counter()
    with ThreadPoolExecutor(STREAMS) as pool:
        together = list(pool.map(lambda samples: detect(model, samples, windows), streams))
    took = time.perf_counter() - begin
    reference = np.fromfile(FOLDER / "reference.f32", "<f4").reshape(STREAMS, WINDOWS)[:, :windows]
    difference = np.abs(np.array(together) - reference).max()
    alone = detect(model, streams[7], windows)
    is_right = difference <= 1e-4 and alone.tobytes() == together[7].tobytes()
    seconds = STREAMS * windows * WINDOW / 16000
    print(f"{STREAMS} streams, {windows} windows each: {seconds / took:.0f} times real time; "
          f"at most {difference:.1e} from the reference; "
          f"a stream alone: {'equal' if alone.tobytes() == together[7].tobytes() else 'WRONG'}")
    raise SystemExit(not is_right)


if __name__ == "__main__":
    main()
