# SPDX-License-Identifier: Apache-2.0
"""operators.py [NAME...]: PyTorch's own operator tests on the device "sp".

Each operator of PyTorch's table (OpInfo) that takes float32 is called with up to four of its sample inputs,
forward, on the host and on the device. It passes if all results agree. Prints the operators that do not
pass, and how many do; fails if these are fewer than LEAST, or if one that is named does not pass.
"""
import argparse
import faulthandler
import sys
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db

import streampool.torch.device

# Of 670 and of 602 operators. PyTorch 1.13 has no compressed sparse tensors on devices of extensions.
LEAST = 670 if torch.__version__ >= "2" else 601
SAMPLES = 4
TOLERANCE = 1e-4
DEVICE = streampool.torch.device._names.OWN_NAME
# Results are memory as it was found.
SHAPES_ONLY = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}

# Their second argument is on the host on all devices.
ON_HOST = {"tensor_split"}


def _mapped(value, of_tensor, device):
    """A structure of arguments with other tensors, and another device."""
    if isinstance(value, torch.Tensor):
        return of_tensor(value)
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_mapped(part, of_tensor, device) for part in value)
    if isinstance(value, dict):
        return {name: _mapped(part, of_tensor, device) for name, part in value.items()}
    if isinstance(value, (str, torch.device)) and str(value) == "cpu":
        return device
    return value


def _on_device(value):
    return _mapped(value, lambda tensor: tensor.detach().clone().to(DEVICE), DEVICE)


def _on_host(value):
    return _mapped(value, lambda tensor: tensor.detach().clone(), "cpu")


def _flat(result):
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, (list, tuple)):
        return [tensor for part in result for tensor in _flat(part)]
    return [result]


def _call(op, sample, move):
    torch.manual_seed(0)
    move_rest = _on_host if op.name in ON_HOST else move
    return _flat(op(move(sample.input), *move_rest(sample.args), **move_rest(sample.kwargs)))


def _compare(name, want, got):
    assert len(want) == len(got), f"{len(got)} results in place of {len(want)}"
    for one, other in zip(want, got):
        if not isinstance(one, torch.Tensor):
            assert one == other, f"{other} in place of {one}"
            continue
        assert other.device.type == DEVICE, f"a result on {other.device}"
        assert one.dtype == other.dtype and one.shape == other.shape, f"{other.dtype} {other.shape}"
        if name not in SHAPES_ONLY:
            torch.testing.assert_close(other.cpu(), one, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)


def _failure(op):
    """Why an operator does not pass; None if it does."""
    torch.manual_seed(0)
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32, requires_grad=False)):
        if number == SAMPLES:
            break
        try:
            want = _call(op, sample, _on_host)
        except Exception:
            continue  # the host cannot do it either
        try:
            _compare(op.name, want, _call(op, sample, _on_device))
        except Exception as error:
            return str(error).strip().partition("\n")[0][:160] or repr(error)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    ops = [op for op in op_db if torch.float32 in op.supported_dtypes("cpu")]
    if options.names:
        ops = [op for op in ops if op.name in options.names]
    least = len(ops) if options.names else LEAST
    failures = 0
    for op in ops:
        reason = _failure(op)
        if reason is not None:
            failures += 1
            print(f"    {op.name}{'.' if op.variant_test_name else ''}{op.variant_test_name}: {reason}", flush=True)
    passed = len(ops) - failures
    print(f"operators: {passed} of {len(ops)} pass with PyTorch {torch.__version__}, {least} must")
    return 0 if passed >= least else 1


if __name__ == "__main__":
    sys.exit(main())
