# SPDX-License-Identifier: Apache-2.0
"""The device "sp": modules give PyTorch's own results, with the bits of a lone call from any thread."""
import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

import streampool.torch.device
from conftest import bits, flat, own_results
from test_torch_modules import MODULES

DEVICE = streampool.torch.device._names.OWN_NAME


def _on_host(result):
    return [tensor.cpu() for tensor in flat(result)]


def _from_pool(call, inputs, workers):
    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(call, inputs))


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("name", MODULES)
def test_a_module_has_its_own_results_and_the_same_bits_from_threads(name, grad):
    make, example = MODULES[name]
    module = make().eval()
    model = copy.deepcopy(module).to("sp")
    inputs = [example(batch) for batch in (1, 2, 3, 7, 8)] * 6
    on_device = [x.to("sp") for x in inputs] # by this thread's stream, read on those of others
    with torch.set_grad_enabled(grad):
        alone = [_on_host(model(x)) for x in on_device]
        for x, result in zip(inputs, alone):
            for got, want in zip(result, own_results(module, x), strict=True):
                assert got.shape == want.shape
                assert torch.allclose(got, want, rtol=0, atol=1e-5)

        def call(x):
            with torch.set_grad_enabled(grad): # the mode is the thread's
                return bits(_on_host(model(x.to("sp"))))

        want = [bits(result) for result in alone]
        for workers in (1, 8):
            assert _from_pool(call, inputs, workers) == want
            assert _from_pool(call, on_device, workers) == want


def test_the_example_of_the_readme():
    model = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True).eval()
    x = torch.randn(1, 10, 64)
    want = model(x)
    model.to("sp")
    with ThreadPoolExecutor(max_workers=8) as pool:
        results = list(pool.map(lambda _: model(x.to("sp")).cpu(), range(64)))
    assert all(result.equal(results[0]) for result in results)
    assert torch.allclose(results[0], want, atol=1e-5)


def test_a_module_goes_to_the_device_and_back():
    module = nn.Linear(3, 2)
    former = [parameter.detach().clone() for parameter in module.parameters()]
    assert module.to("sp").weight.device == torch.device(DEVICE, 0)
    assert torch.randn(2).to(device="sp:0").device == torch.device(DEVICE, 0)
    module.to("cpu")
    assert all(a.equal(b) for a, b in zip(former, module.parameters()))


def test_a_step_of_training_is_that_of_the_host():
    def train(device):
        torch.manual_seed(3)
        model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.LayerNorm(16),
                              nn.Linear(16, 3)).to(device)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        x, y = torch.randn(8, 2, 6).to(device), torch.randn(8, 3).to(device)
        for _ in range(5):
            optimizer.zero_grad()
            loss = (model(x) - y).pow(2).mean()
            loss.backward()
            optimizer.step()
        return [loss.detach().cpu(), *(p.detach().cpu() for p in model.parameters())]

    for got, want in zip(train("sp"), train("cpu"), strict=True):
        assert torch.allclose(got, want, atol=1e-5)
