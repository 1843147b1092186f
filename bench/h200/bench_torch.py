#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The networks of shared/data that are PyTorch's own, in PyTorch, with tensors on the GPU and TF32 off:
forward() from some threads, each with its stream and each call waited for; the same as a CUDA graph
from one thread; and batches from one thread, in f32 and bf16. One JSON line per case, as
bench_tensors prints them. The weights are PyTorch's first ones."""

import functools
import json
import statistics
import threading
import time

import torch
from torch import nn

ROUNDS, SECONDS = 3, 0.25


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(256, 8, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x, need_weights=False)[0]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(128, 128, batch_first=True)
        self.linear = nn.Linear(128, 32)

    def forward(self, x):
        return self.linear(self.lstm(x)[0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.position, self.norm = nn.Embedding(1000, 128), nn.Embedding(64, 128), nn.LayerNorm(128)
        layer = nn.TransformerEncoderLayer(
            128, 4, 256, batch_first=True, dropout=0, activation="gelu", norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.linear = nn.Linear(128, 5)

    def forward(self, ids):
        positions = self.position(torch.arange(ids.shape[1], device=ids.device))
        return torch.softmax(self.linear(self.encoder(self.norm(self.token(ids) + positions))[:, 0]), -1)


class Block(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters))
        self.second = nn.Sequential(nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters))
        self.shortcut = nn.Conv2d(channels, filters, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def mlp():
    return nn.Sequential(
        nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128)
    )


def conv1d():
    return nn.Sequential(
        nn.Conv1d(16, 64, 5, padding=2), nn.ReLU(), nn.Conv1d(64, 64, 5, padding=2, groups=4), nn.GELU(),
        nn.Conv1d(64, 32, 3, stride=2), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
    )  # fmt: skip


def encoder(width, heads, hidden, layers):
    layer = nn.TransformerEncoderLayer(width, heads, hidden, batch_first=True, dropout=0)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False) if layers > 1 else layer


# Each with the shape of a row.
NETWORKS = {
    "torch_linear": (lambda: nn.Linear(256, 128), (256,)),
    "torch_mlp": (mlp, (256,)),
    "torch_mha": (Attention, (64, 256)),
    "torch_encoder": (lambda: encoder(256, 8, 1024, 1), (64, 256)),
    "torch_encoder6": (lambda: encoder(384, 12, 1536, 6), (128, 384)),
    "torch_conv1d": (conv1d, (16, 256)),
    "torch_lstm": (Recurrent, (32, 128)),
    "torch_bert": (Bert, (32,)),
    "torch_resnet": (resnet, (3, 32, 32)),
}


def rows_of(name, shape, rows, dtype):
    if name == "torch_bert":
        return torch.randint(0, 1000, (rows, *shape), device="cuda")
    return torch.randn(rows, *shape, device="cuda", dtype=dtype)


def rates(calls, threads):
    """Calls per second of all threads, one round each; calls[i] is the i-th thread's."""
    measured = []
    for _ in range(ROUNDS):
        counts, state = [0] * threads, {"over": False}
        barrier = threading.Barrier(threads + 1)

        def work(index):
            call, stream = calls[index], torch.cuda.Stream()
            with torch.inference_mode(), torch.cuda.stream(stream):
                for _ in range(50):
                    call()
                stream.synchronize()
                barrier.wait()
                while not state["over"]:
                    call()
                    stream.synchronize()
                    counts[index] += 1

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        start = time.perf_counter()
        time.sleep(SECONDS)
        state["over"] = True
        for worker in workers:
            worker.join()
        measured.append(sum(counts) / (time.perf_counter() - start))
    return measured


def graph(model, x):
    """The call as a graph of its own; None where PyTorch cannot capture it."""
    try:
        stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(3):
                model(x)
            stream.synchronize()
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured, stream=stream):
                model(x)
    except RuntimeError:
        return None

    return captured.replay


def show(name, way, type_name, rows, threads, per_second):
    samples = sorted(rows * rate for rate in per_second)
    print(
        json.dumps(
            {"case": f"{name}_pytorch_{way}", "type": type_name, "rows": rows, "threads": threads,
             "samples_per_second": round(statistics.median(samples)), "min": round(samples[0]),
             "max": round(samples[-1]), "version": torch.__version__}
        ),
        flush=True,
    )  # fmt: skip


def main():
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    for name, (make, shape) in NETWORKS.items():
        for type_name, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
            model = make().cuda().eval().to(dtype)
            for rows in (1, 64, 256) if dtype == torch.float32 else (64, 256):
                x = rows_of(name, shape, rows, dtype)
                for threads in (1, 8, 31) if rows == 1 else (1,):
                    calls = [functools.partial(model, x.clone()) for _ in range(threads)]
                    show(name, "eager", type_name, rows, threads, rates(calls, threads))
                captured = graph(model, x)
                if captured is not None:
                    show(name, "graph", type_name, rows, 1, rates([captured], 1))


if __name__ == "__main__":
    main()
