#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The two models of shared/data that are PyTorch's own, in PyTorch: forward() from some threads, each
with its stream, each call waited for. One JSON line per point, as bench_gpu prints them."""
import json
import statistics
import threading
import time

import torch

ROUNDS = 5
SECONDS = 0.4


def linear():
    return torch.nn.Linear(256, 128), torch.randn(4, 256)


def mlp():
    layers = [torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
              torch.nn.Linear(512, 128)]
    return torch.nn.Sequential(*layers), torch.randn(1, 256)


def measure(model, x, threads):
    counts = [0] * threads
    state = {"over": False}
    barrier = threading.Barrier(threads + 1)

    def work(index):
        stream = torch.cuda.Stream()
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(50):
                model(x)
            stream.synchronize()
            barrier.wait()
            while not state["over"]:
                model(x)
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
    return sum(counts) / (time.perf_counter() - start)


def main():
    for name, make in (("torch_linear", linear), ("torch_mlp", mlp)):
        model, x = make()
        model, x = model.cuda().eval(), x.cuda()
        for threads in (1, 8, 31):
            rates = sorted(measure(model, x, threads) for _ in range(ROUNDS))
            print(json.dumps({"case": f"{name}_pytorch", "threads": threads,
                              "per_second": round(statistics.median(rates)),
                              "min_per_second": round(rates[0]), "max_per_second": round(rates[-1]),
                              "rounds": ROUNDS, "version": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
