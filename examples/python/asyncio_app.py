#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One event loop with many requests in flight, computed by the library's threads, as batches where that is faster.

Run: asyncio_app.py [REQUESTS]
"""
import asyncio
import pathlib
import sys
import time

import numpy as np

import streampool

MODEL = pathlib.Path(__file__).resolve().parents[1] / "blazeface" / "model.onnx"
SHAPE = (1, 128, 128, 3)


async def request(queue, picture):
    """What a handler of a request does: awaits its own result among all others."""
    scores, *_ = await queue.submit(picture)
    return scores.tobytes()


async def serve(model, pictures):
    with streampool.BatchQueue(model, max_batch=16) as queue:
        begin = time.perf_counter()
        answers = await asyncio.gather(*[request(queue, picture) for picture in pictures])
        took = time.perf_counter() - begin
        return answers, took, queue.statistics()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    model = streampool.load(MODEL)
    pictures = [np.full(SHAPE, i / count, np.float32) for i in range(count)]
    answers, took, counts = asyncio.run(serve(model, pictures))
    expected = [model(picture)[0].tobytes() for picture in pictures]
    print(f"{count} requests in flight: {count / took:.0f} a second, {counts['batches']} batches, "
          f"{sum(a == b for a, b in zip(answers, expected))} equal to lone calls")
    raise SystemExit(answers != expected)


if __name__ == "__main__":
    main()
