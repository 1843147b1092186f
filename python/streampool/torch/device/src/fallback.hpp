// SPDX-License-Identifier: Apache-2.0
// Operators without a kernel of ours.
#ifndef STREAMPOOL_TORCH_FALLBACK_HPP
#define STREAMPOOL_TORCH_FALLBACK_HPP

#include <initializer_list>

#include <ATen/core/Tensor.h>
#include <ATen/native/CPUFallback.h>

namespace streampool_torch
{
// Runs PyTorch's kernel for the host on the memory of the device, on the calling thread: that of a
// dispatch key of the host.
void run_on_host(const c10::OperatorHandle &op, torch::jit::Stack *stack, c10::DispatchKey host);

template <c10::DispatchKey host>
void fallback_to(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    run_on_host(op, stack, host);
}

// Before a call of a kernel of the host that is made in another way: counts it, and requires that
// its inputs are on one device.
void begin_host_kernel(const char *name, std::initializer_list<at::Tensor> inputs);
} // namespace streampool_torch

// The same from a kernel of ours, for arguments that it does not take; `name` as in at::_ops.
#define SP_FALLBACK(name)                                                                          \
    at::native::call_fallback_fn<&streampool_torch::fallback_to<c10::DispatchKey::CPU>,            \
                                 at::_ops::name>::call

#endif
