#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""record.py: writes reference.f32 and test_data_set_0 from model.onnx and clip.wav, all of this folder,
by ONNX Runtime on one thread, without graph optimisations. Needs onnxruntime and numpy."""
import pathlib
import wave

import numpy as np
import onnxruntime

FOLDER = pathlib.Path(__file__).resolve().parent
WINDOW, CONTEXT, STREAMS = 512, 64, 31
KEPT = 40  # the window of stream 0 that test_data_set_0 has
FLOAT, INT64 = 1, 7  # types of TensorProto
RATE = np.array(16000, np.int64)


def open_model():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(FOLDER / "model.onnx", options, providers=["CPUExecutionProvider"])


def read_clip():
    with wave.open(str(FOLDER / "clip.wav")) as clip:
        samples = np.frombuffer(clip.readframes(clip.getnframes()), "<i2")
    return samples.astype(np.float32) / np.float32(32768)


def run_stream(model, samples):
    """Yields (input, state, probability, next state) of each window."""
    padded = np.concatenate([np.zeros(CONTEXT), samples, np.zeros(-len(samples) % WINDOW)]).astype(np.float32)
    state = np.zeros((2, 1, 128), np.float32)
    for start in range(0, len(padded) - CONTEXT, WINDOW):
        window = padded[None, start : start + CONTEXT + WINDOW]
        output, after = model.run(None, {"input": window, "state": state, "sr": RATE})
        yield window, state, output, after
        state = after


def varint(value):
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def tensor_proto(name, values, dtype):
    """The fields dims, data_type, name, raw_data."""
    dims = b"".join(b"\x08" + varint(size) for size in values.shape)
    head = dims + b"\x10" + varint(dtype) + b"\x42" + varint(len(name)) + name.encode()
    raw = values.tobytes()
    return head + b"\x4a" + varint(len(raw)) + raw


def write_case(window, state, output, after):
    folder = FOLDER / "test_data_set_0"
    folder.mkdir(exist_ok=True)
    (folder / "input_0.pb").write_bytes(tensor_proto("input", window, FLOAT))
    (folder / "input_1.pb").write_bytes(tensor_proto("state", state, FLOAT))
    (folder / "input_2.pb").write_bytes(tensor_proto("sr", RATE, INT64))
    (folder / "output_0.pb").write_bytes(tensor_proto("output", output, FLOAT))
    (folder / "output_1.pb").write_bytes(tensor_proto("stateN", after, FLOAT))


def main():
    model, clip = open_model(), read_clip()
    probabilities = []
    for stream in range(STREAMS):
        windows = list(run_stream(model, np.roll(clip, -(stream * len(clip) // STREAMS))))
        probabilities += [output[0, 0] for _, _, output, _ in windows]
        if stream == 0:
            write_case(*windows[KEPT])
    np.array(probabilities, "<f4").tofile(FOLDER / "reference.f32")


if __name__ == "__main__":
    main()
