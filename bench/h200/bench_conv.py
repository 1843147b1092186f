# SPDX-License-Identifier: Apache-2.0
"""PyTorch's convolutions (cuDNN, its fastest algorithm, TF32 off) for the layers of conv.cu and
narrow_conv.cu: microseconds for one of 33 in a CUDA graph, in f32, and in bf16 with images as PyTorch
has them and with channels last. Prints one JSON line per case."""

import json

import torch

LAYERS = [
    (3, 64, 224, 7, 2), (64, 64, 56, 1, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1),
    (256, 64, 56, 1, 1), (256, 128, 56, 1, 1), (128, 128, 56, 3, 2), (128, 128, 28, 3, 1),
    (128, 512, 28, 1, 1), (512, 128, 28, 1, 1), (256, 256, 28, 3, 2), (256, 256, 14, 3, 1),
    (256, 1024, 14, 1, 1), (1024, 256, 14, 1, 1), (512, 512, 14, 3, 2), (512, 512, 7, 3, 1),
    (512, 2048, 7, 1, 1), (2048, 512, 7, 1, 1), (3, 16, 32, 3, 1), (16, 16, 32, 3, 1),
    (16, 16, 32, 1, 1), (16, 32, 32, 3, 2), (32, 32, 16, 3, 1), (32, 64, 16, 3, 2), (64, 64, 8, 3, 1),
]  # fmt: skip


def time_graph(call, count):
    """The median of microseconds for `count` calls in a graph."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    times = []
    for _ in range(30):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[len(times) // 2]


def measure(layer, images, dtype, layout):
    channels, filters, size, kernel, stride = layer
    conv = torch.nn.Conv2d(channels, filters, kernel, stride, kernel // 2).cuda().eval()
    conv = conv.to(dtype=dtype, memory_format=layout)
    x = torch.randn(images, channels, size, size, device="cuda")
    x = x.to(dtype=dtype, memory_format=layout)
    with torch.no_grad():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                conv(x)
        torch.cuda.synchronize()
        return (time_graph(lambda: conv(x), 17) - time_graph(lambda: conv(x), 1)) / 16


CASES = [
    ("f32", torch.float32, torch.contiguous_format),
    ("bf16", torch.bfloat16, torch.contiguous_format),
    ("bf16_channels_last", torch.bfloat16, torch.channels_last),
]


def main():
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    for layer in LAYERS:
        channels, filters, size, kernel, stride = layer
        for images in (1, 4, 16, 64):
            for name, dtype, layout in CASES:
                us = measure(layer, images, dtype, layout)
                print(
                    json.dumps(
                        {"case": "torch_conv", "type": name, "channels": channels,
                         "filters": filters, "in": size, "kernel": kernel, "stride": stride,
                         "images": images, "torch_us": round(us, 2)}
                    ),
                    flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
