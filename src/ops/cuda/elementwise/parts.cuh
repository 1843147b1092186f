/* SPDX-License-Identifier: Apache-2.0 */
/* y = f(x) and y = f(a, b) with broadcasting. Neighbouring threads compute neighbouring elements;
 * each computes SP_CUDA_ELEMENTS at once, or one if its index is expensive to compute. y may be the
 * memory of an operand of its shape: a thread reads each element before it overwrites it. */

/* For each element of this thread in one pass: calls body(slot, index). */
template <class Body> SP_CUDA_FUNCTION void sp_each_slot(int64_t first, int64_t count, Body body)
{
#pragma unroll
    for (int slot = 0; slot < SP_CUDA_ELEMENTS; slot++) {
        const int64_t at = first + slot * SP_CUDA_THREADS;
        if (at < count) body(slot, at);
    }
}

SP_CUDA_FUNCTION int64_t sp_first_element()
{
    return (int64_t)blockIdx.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS) + threadIdx.x;
}

SP_CUDA_FUNCTION int64_t sp_element_stride()
{
    return (int64_t)gridDim.x * (SP_CUDA_THREADS * SP_CUDA_ELEMENTS);
}

/* `count` elements of X to as many of Y. */
template <class X, class Y, class Function>
SP_CUDA_FUNCTION void sp_map(const sp_gpu_bindings &bindings, int64_t count, Function function)
{
    const X *x = (const X *)bindings.at[0];
    Y *y = (Y *)bindings.at[1];
#pragma unroll 1
    for (int64_t first = sp_first_element(); first < count; first += sp_element_stride()) {
        X values[SP_CUDA_ELEMENTS];
        sp_each_slot(first, count, [&](int slot, int64_t at) { values[slot] = x[at]; });
        sp_each_slot(first, count, [&](int slot, int64_t at) { y[at] = function(values[slot]); });
    }
}

/* Pairs of T to Y. */
template <class T, class Y, class Function>
SP_CUDA_FUNCTION void sp_map_pairs(const sp_gpu_bindings &bindings, const sp_binary_constants &k,
                                   Function function)
{
    const T *a = (const T *)bindings.at[0], *b = (const T *)bindings.at[1];
    Y *y = (Y *)bindings.at[2];
    if (sp_cuda_binary_elements(&k) == 1) {
#pragma unroll 1
        for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
            const sp_places at = sp_places_of(i, k.rank, k.dims, k.a, k.b);
            y[i] = function(a[at.a], b[at.b]);
        }
        return;
    }
#pragma unroll 1
    for (int64_t first = sp_first_element(); first < k.count; first += sp_element_stride()) {
        T left[SP_CUDA_ELEMENTS], right[SP_CUDA_ELEMENTS];
        sp_each_slot(first, k.count, [&](int slot, int64_t at) {
            left[slot] = a[at * k.a[0]];
            right[slot] = b[at * k.b[0]];
        });
        sp_each_slot(first, k.count,
                     [&](int slot, int64_t at) { y[at] = function(left[slot], right[slot]); });
    }
}

#define SP_UNARY_KERNEL(name, X, Y, function)                                                      \
    SP_CUDA_KERNEL(name, sp_flat_constants)                                                        \
    {                                                                                              \
        sp_map<X, Y>(bindings, k.count, [](X x) { return function(x); });                          \
    }

#define SP_BINARY_KERNEL(name, T, Y, ...)                                                          \
    SP_CUDA_KERNEL(name, sp_binary_constants)                                                      \
    {                                                                                              \
        sp_map_pairs<T, Y>(bindings, k, [](T a, T b) { return __VA_ARGS__(a, b); });               \
    }
