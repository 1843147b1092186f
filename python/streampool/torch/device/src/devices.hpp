// SPDX-License-Identifier: Apache-2.0
// What PyTorch asks of a kind of devices: guard, streams, events, generators, hooks.
#ifndef STREAMPOOL_TORCH_DEVICES_HPP
#define STREAMPOOL_TORCH_DEVICES_HPP

#include <ATen/core/Generator.h>
#include <c10/core/Stream.h>

#include "errors.hpp"

namespace streampool_torch
{
// Streams of PyTorch have the handle of a lease as their number; 0 is the default stream.
c10::Stream stream_of(sp_stream stream);
sp_stream handle_of(const c10::Stream &stream);

// The generator of the host that gives the numbers of a generator of the device; others are
// returned as they are.
at::Generator host_generator(const at::Generator &generator);
} // namespace streampool_torch

#endif
