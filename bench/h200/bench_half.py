#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of shared/data in PyTorch, in f32 and bf16: samples/s of one caller with batches of 64 and 256,
each call waited for; with tensors on the GPU, and with f32 in the host's memory as a run of streampool
has them. One JSON line per case."""

import json
import statistics
import time

import torch

ROUNDS, SECONDS = 5, 0.3


def linear():
    return torch.nn.Linear(256, 128), (256,)


def mlp():
    return (
        torch.nn.Sequential(
            torch.nn.Linear(256, 512),
            torch.nn.ReLU(),
            torch.nn.Linear(512, 512),
            torch.nn.ReLU(),
            torch.nn.Linear(512, 128),
        ),
        (256,),
    )


def encoder():
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True)
    return layer, (64, 256)


def rate(call):
    for _ in range(20):
        call()
    rates = []
    for _ in range(ROUNDS):
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < SECONDS:
            call()
            count += 1
        rates.append(count / (time.perf_counter() - start))
    return statistics.median(rates)


def measure(model, shape, batch, dtype):
    host = torch.randn(batch, *shape).pin_memory()
    x = host.cuda().to(dtype)
    y = model(x).float().cpu().pin_memory()

    def on_gpu():
        model(x)
        torch.cuda.synchronize()

    def from_host():
        y.copy_(model(host.cuda(non_blocking=True).to(dtype)).float(), non_blocking=True)
        torch.cuda.synchronize()

    return {"gpu": round(rate(on_gpu) * batch), "host": round(rate(from_host) * batch)}


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    for name, make in (("torch_linear", linear), ("torch_mlp", mlp), ("torch_encoder", encoder)):
        for type_name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            model, shape = make()
            model = model.cuda().eval().to(dtype)
            for batch in (64, 256):
                with torch.inference_mode():
                    samples = measure(model, shape, batch, dtype)
                print(
                    json.dumps(
                        {"case": f"{name}_pytorch_batch", "type": type_name, "batch": batch,
                         "samples_per_second": samples, "version": torch.__version__}
                    ),
                    flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
