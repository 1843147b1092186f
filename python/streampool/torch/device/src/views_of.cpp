// SPDX-License-Identifier: Apache-2.0
#include "views_of.hpp"

#include <algorithm>

#include <c10/util/SmallVector.h>

#include "memory.hpp"

namespace streampool_torch
{
namespace
{
sp_dtype dtype_of(c10::ScalarType type)
{
    switch (type) {
    case c10::ScalarType::Float:
        return SP_F32;
    case c10::ScalarType::Double:
        return SP_F64;
    case c10::ScalarType::Half:
        return SP_F16;
    case c10::ScalarType::BFloat16:
        return SP_BF16;
    case c10::ScalarType::Char:
        return SP_I8;
    case c10::ScalarType::Short:
        return SP_I16;
    case c10::ScalarType::Int:
        return SP_I32;
    case c10::ScalarType::Long:
        return SP_I64;
    case c10::ScalarType::Byte:
        return SP_U8;
    case c10::ScalarType::Bool:
        return SP_BOOL;
    default:
        return SP_DTYPE_NONE;
    }
}
} // namespace

bool is_viewable(const at::Tensor &tensor)
{
    return tensor.dim() <= SP_MAX_RANK && tensor.numel() > 0 &&
           dtype_of(tensor.scalar_type()) != SP_DTYPE_NONE;
}

// A dimension steps over all that those with smaller strides reach.
bool has_distinct_elements(const at::Tensor &tensor)
{
    c10::SmallVector<int64_t, SP_MAX_RANK> dims;
    for (int64_t i = 0; i < tensor.dim(); i++) {
        if (tensor.size(i) > 1) dims.push_back(i);
    }
    std::sort(dims.begin(), dims.end(),
              [&](int64_t a, int64_t b) { return tensor.stride(a) < tensor.stride(b); });
    int64_t reach = 1;
    for (const int64_t dim : dims) {
        if (tensor.stride(dim) < reach) return false;
        reach += tensor.stride(dim) * (tensor.size(dim) - 1);
    }
    return true;
}

View::View(const at::Tensor &tensor, at::IntArrayRef sizes, at::IntArrayRef strides) : handle_{0}
{
    const sp_storage storage = handle_of(tensor.storage().unsafeGetStorageImpl());
    const uint64_t offset = static_cast<uint64_t>(tensor.storage_offset()) * tensor.itemsize();
    check(sp_tensor_from_storage(storage, offset, dtype_of(tensor.scalar_type()),
                                 static_cast<uint32_t>(sizes.size()), sizes.data(), strides.data(),
                                 &handle_));
}
} // namespace streampool_torch
