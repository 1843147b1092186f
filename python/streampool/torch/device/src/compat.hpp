// SPDX-License-Identifier: Apache-2.0
// What differs between the versions of PyTorch, as features with names: no other file asks for a
// version.
#ifndef STREAMPOOL_TORCH_COMPAT_HPP
#define STREAMPOOL_TORCH_COMPAT_HPP

#include <torch/version.h>

#include <c10/core/Allocator.h>
#include <c10/core/Storage.h>

#define SP_TORCH_AT_LEAST(major, minor)                                                            \
    (TORCH_VERSION_MAJOR > (major) ||                                                              \
     (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// Allocator::allocate is const until 2.2; copy_data is new in 2.3.
#if SP_TORCH_AT_LEAST(2, 3)
#define SP_TORCH_ALLOCATE_CONST
#define SP_TORCH_HAS_COPY_DATA 1
#else
#define SP_TORCH_ALLOCATE_CONST const
#define SP_TORCH_HAS_COPY_DATA 0
#endif

// Hooks, generators, autocast, streams and events of Python, fused cells and whole layers.
#define SP_TORCH_HAS_HOOKS SP_TORCH_AT_LEAST(2, 5)

#if SP_TORCH_AT_LEAST(2, 2)
#include <optional>
namespace streampool_torch
{
template <class T> using optional = std::optional<T>;
}
#else
#include <c10/util/Optional.h>
namespace streampool_torch
{
template <class T> using optional = c10::optional<T>;
}
#endif

#endif
