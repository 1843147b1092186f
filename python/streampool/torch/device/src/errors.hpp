// SPDX-License-Identifier: Apache-2.0
// Statuses of the library as PyTorch's exceptions.
#ifndef STREAMPOOL_TORCH_ERRORS_HPP
#define STREAMPOOL_TORCH_ERRORS_HPP

#include <streampool/streampool.h>

namespace streampool_torch
{
// With the library's message: OutOfMemoryError, NotImplementedError for SP_UNSUPPORTED, else
// RuntimeError.
[[noreturn]] void fail(sp_status status);

inline void check(sp_status status)
{
    if (status != SP_OK) fail(status);
}

// The calling thread's current stream.
sp_stream current_stream();

// Waits until the current stream has room.
void make_room();

// Calls `call()`, which submits to the current stream, again when a full stream has room.
template <class Call> void submit(Call call)
{
    sp_status status = call();
    while (status == SP_BUSY) {
        make_room();
        status = call();
    }
    check(status);
}
} // namespace streampool_torch

#endif
