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

// Hooks, generators, autocast, streams and events of Python.
#define SP_TORCH_HAS_HOOKS SP_TORCH_AT_LEAST(2, 5)

// Compressed sparse tensors (CSR and the like) of a device of an extension, and a dispatch key for
// them. PyTorch 1.13 has the key for the host and for CUDA only, and their class refuses others.
#define SP_TORCH_HAS_COMPRESSED SP_TORCH_AT_LEAST(2, 6)

// Attention has a softmax of its own, whose rows of -inf are 0.
#define SP_TORCH_HAS_SAFE_SOFTMAX SP_TORCH_AT_LEAST(2, 5)

// Makers of generators are registered by a macro beside the hook.
#if __has_include(<ATen/core/GeneratorForPrivateuseone.h>)
#define SP_TORCH_REGISTERS_GENERATORS 1
#else
#define SP_TORCH_REGISTERS_GENERATORS 0
#endif

#include <c10/core/DispatchKey.h>
#include <c10/util/Exception.h>
namespace streampool_torch
{
#if SP_TORCH_HAS_COMPRESSED
inline c10::DispatchKey compressed_key()
{
    return c10::DispatchKey::SparseCsrPrivateUse1;
}
#else
inline c10::DispatchKey compressed_key()
{
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "PyTorch before 2.6 has no compressed sparse tensors (CSR, CSC, BSR, BSC) on devices "
        "of extensions; use to_sparse(), or the host");
}
#endif
} // namespace streampool_torch

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
