# SPDX-License-Identifier: Apache-2.0
"""The tests of streampool.torch, in a folder of their own: they need PyTorch (scripts/test-python-torch)."""
import pathlib
import sys
import threading

import pytest
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "tests"))


def pytest_configure(config):
    # What the exporter takes for constants is compared with the module in each compile().
    config.addinivalue_line("filterwarnings", "ignore::torch.jit.TracerWarning")
    config.addinivalue_line("filterwarnings", "ignore:Exporting a model to ONNX with a batch_size")
    config.addinivalue_line("filterwarnings", "ignore:The shape inference of prim..Constant")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(7)
    torch.set_num_threads(1)


def own_results(module, *args, **kwargs):
    """What the module itself gives in eval mode."""
    module.eval()
    return flat(module(*args, **kwargs))


def flat(result):
    """The tensors of a result, in order."""
    if isinstance(result, torch.Tensor):
        return [result.detach()]
    if isinstance(result, dict):
        result = result.values()
    return [tensor for part in result for tensor in flat(part)] if result is not None else []


def bits(result):
    """Shapes and bytes of a result."""
    return [(tuple(tensor.shape), tensor.numpy().tobytes()) for tensor in flat(result)]


def from_threads(count, call, inputs):
    """The results of call(x) for each input, by each of `count` threads at the same time."""
    results = [None] * count
    barrier = threading.Barrier(count)

    def work(place):
        barrier.wait()
        results[place] = [call(x) for x in inputs[place:] + inputs[:place]]

    threads = [threading.Thread(target=work, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [own[len(inputs) - place:] + own[:len(inputs) - place] for place, own in enumerate(results)]
