# SPDX-License-Identifier: Apache-2.0
"""The name of the device in PyTorch: "sp" where devices can be renamed (2.1 on), else "privateuseone"."""
import functools

import torch

from ..._errors import Error, Status

NAME = "sp"
OWN_NAME = NAME if hasattr(torch.utils, "rename_privateuse1_backend") else "privateuseone"


def _taken(cause):
    error = Error(f"PyTorch has room for the device of one extension, and another one has taken it: {cause}")
    error.status = Status.EXHAUSTED
    return error


def claim():
    """Gives the device its name, before the bridge is loaded."""
    if torch._C._dispatch_has_kernel_for_dispatch_key("aten::empty.memory_format", "PrivateUse1"):
        raise _taken("there is a kernel that makes its tensors")
    if OWN_NAME == NAME:
        try:
            torch.utils.rename_privateuse1_backend(NAME)
        except RuntimeError as cause:
            raise _taken(cause) from cause


def install(module):
    """The device in PyTorch's Python classes."""
    if OWN_NAME == NAME:
        torch._register_device_module(NAME, module)
        torch.utils.generate_methods_for_privateuse1_backend(for_tensor=True, for_module=True,
                                                             for_storage=True)
    else:
        torch.Tensor.to = _taking_name(torch.Tensor.to)
        torch.nn.Module.to = _taking_name(torch.nn.Module.to)


def _own(value):
    """A device by the name that PyTorch 1.13 has for it."""
    if isinstance(value, str) and value.partition(":")[0] == NAME:
        return OWN_NAME + value[len(NAME):]
    return value


def _taking_name(method):
    """A method `to` that takes the name too."""
    @functools.wraps(method)
    def to(self, *args, **kwargs):
        if args:
            args = (_own(args[0]), *args[1:])
        elif "device" in kwargs:
            kwargs["device"] = _own(kwargs["device"])
        return method(self, *args, **kwargs)

    return to
