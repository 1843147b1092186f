// SPDX-License-Identifier: Apache-2.0
// Matrix products. Linear layers are addmm with a transposed weight, which Gemm reads as it is.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "call.hpp"
#include "fallback.hpp"

namespace streampool_torch
{
namespace
{
bool is_one(const at::Scalar &value)
{
    return !value.isComplex() && value.toDouble() == 1;
}

// A matrix for Gemm: a transposed one is given as the one that it is the transpose of.
void add_matrix(Call &call, const char *flag, const at::Tensor &matrix)
{
    const bool is_transposed = matrix.stride(0) == 1 && matrix.stride(1) >= matrix.size(0);
    if (!is_transposed || matrix.size(1) == 1) {
        call.in(matrix);
        return;
    }
    const int64_t sizes[] = {matrix.size(1), matrix.size(0)};
    const int64_t strides[] = {matrix.stride(1), matrix.stride(0)};
    call.in(matrix, sizes, strides).set(flag, int64_t{1});
}

bool is_native_product(const at::Tensor &a, const at::Tensor &b)
{
    return is_native(a) && is_native(b) && a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0);
}

at::Tensor mm_kernel(const at::Tensor &a, const at::Tensor &b)
{
    if (!is_native_product(a, b)) return SP_FALLBACK(mm)(a, b);
    at::Tensor y = new_tensor({a.size(0), b.size(1)});
    Call call("Gemm");
    add_matrix(call, "transA", a);
    add_matrix(call, "transB", b);
    call.run({y});
    return y;
}

at::Tensor addmm_kernel(const at::Tensor &self, const at::Tensor &a, const at::Tensor &b,
                        const at::Scalar &beta, const at::Scalar &alpha)
{
    const bool is_ordinary = is_native(self) && is_native_product(a, b) && self.dim() <= 2 &&
                             is_one(beta) && is_one(alpha) &&
                             at::is_expandable_to(self.sizes(), {a.size(0), b.size(1)});
    if (!is_ordinary) return SP_FALLBACK(addmm)(self, a, b, beta, alpha);
    at::Tensor y = new_tensor({a.size(0), b.size(1)});
    Call call("Gemm");
    add_matrix(call, "transA", a);
    add_matrix(call, "transB", b);
    call.in(self).run({y});
    return y;
}

bool is_native_batch(const at::Tensor &a, const at::Tensor &b)
{
    return is_native(a) && is_native(b) && a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) &&
           a.size(2) == b.size(1);
}

at::Tensor bmm_kernel(const at::Tensor &a, const at::Tensor &b)
{
    if (!is_native_batch(a, b)) return SP_FALLBACK(bmm)(a, b);
    at::Tensor y = new_tensor({a.size(0), a.size(1), b.size(2)});
    Call("MatMul").in(a).in(b).run({y});
    return y;
}

at::Tensor baddbmm_kernel(const at::Tensor &self, const at::Tensor &a, const at::Tensor &b,
                          const at::Scalar &beta, const at::Scalar &alpha)
{
    const bool is_ordinary = is_native(self) && is_native_batch(a, b) && is_one(beta) &&
                             is_one(alpha) && self.dim() <= 3 &&
                             at::is_expandable_to(self.sizes(), {a.size(0), a.size(1), b.size(2)});
    if (!is_ordinary) return SP_FALLBACK(baddbmm)(self, a, b, beta, alpha);
    at::Tensor y = bmm_kernel(a, b);
    Call("Add").in(self).in(y).run({y});
    return y;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m)
{
    m.impl("mm", mm_kernel);
    m.impl("addmm", addmm_kernel);
    m.impl("bmm", bmm_kernel);
    m.impl("baddbmm", baddbmm_kernel);
}
} // namespace
} // namespace streampool_torch
