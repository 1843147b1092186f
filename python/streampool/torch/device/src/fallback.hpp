// SPDX-License-Identifier: Apache-2.0
// Operators without a kernel of ours.
#ifndef STREAMPOOL_TORCH_FALLBACK_HPP
#define STREAMPOOL_TORCH_FALLBACK_HPP

#include <ATen/native/CPUFallback.h>

namespace streampool_torch
{
// Runs PyTorch's kernel for the host on the memory of the device, on the calling thread.
void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack);

// Counts a call of a kernel of the host that is made in another way.
void note_host_kernel();
} // namespace streampool_torch

// The same from a kernel of ours, for arguments that it does not take; `name` as in at::_ops.
#define SP_FALLBACK(name)                                                                          \
    at::native::call_fallback_fn<&streampool_torch::fallback, at::_ops::name>::call

#endif
