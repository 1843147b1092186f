#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the encoder of 6 layers of bench_torch.py as ONNX, for bench_tensors.
   bench/h200/export_encoder6.py DATA/models/torch_encoder6   (Debian's python3-torch)"""

import pathlib
import sys

import torch
from torch import nn


def main():
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(384, 12, 1536, batch_first=True, dropout=0)
    model = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(
        model, torch.randn(2, 128, 384), str(folder / "model.onnx"), opset_version=14, input_names=["x"],
        output_names=["y"], dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        training=torch.onnx.TrainingMode.EVAL,
    )  # fmt: skip


if __name__ == "__main__":
    main()
