/* SPDX-License-Identifier: Apache-2.0 */
/* The first elements of a line, in order (ops/cpu/layout/top_k.c). A thread has an element and
 * counts those of its line that come before it: the order is unique, and no thread waits for
 * another one. It stops at `count` of them, which most have after some steps: they are searched for
 * on both sides of the element, from it on, so that no order of a line makes all of them far. */

/* A NaN is larger than all numbers. */
template <class E> SP_CUDA_FUNCTION bool sp_is_more(E a, E b)
{
    return a > b || (a != a && b == b);
}

/* The number of elements of the line that come before element `at`, or at least `count`. */
template <class E>
SP_CUDA_FUNCTION int64_t sp_rank_in_line(const sp_top_k_constants &k, const E *line, int64_t at)
{
    const int together = 4; /* on each side */
    const E value = line[at * k.inner];
    const auto is_before = [&](int64_t i) {
        if (i < 0 || i >= k.axis) return false;
        const E other = line[i * k.inner];
        const bool is_more = sp_is_more(other, value), is_less = sp_is_more(value, other);
        return is_more || is_less ? is_more == k.is_largest : i < at;
    };
    const int64_t before = at, behind = k.axis - 1 - at;
    const int64_t most = before > behind ? before : behind; /* distance of an element */
    int64_t rank = 0;
#pragma unroll 1
    for (int64_t far = 1; far <= most && rank < k.count; far += together) {
#pragma unroll
        for (int i = 0; i < together; i++) {
            rank += is_before(at - far - i);
            rank += is_before(at + far + i);
        }
    }
    return rank;
}

template <class E>
SP_CUDA_FUNCTION void sp_top_k(const sp_gpu_bindings &bindings, const sp_top_k_constants &k)
{
    const E *x = (const E *)bindings.at[0];
    E *values = (E *)bindings.at[1];
    int64_t *indices = (int64_t *)bindings.at[2];
    const int64_t count = k.outer * k.axis * k.inner;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t outer = i;
        const int64_t inner = sp_take_coordinate(&outer, k.inner);
        const int64_t at = sp_take_coordinate(&outer, k.axis);
        const int64_t rank = sp_rank_in_line(k, x + outer * k.axis * k.inner + inner, at);
        if (rank >= k.count) continue;
        const int64_t to = (outer * k.count + rank) * k.inner + inner;
        values[to] = x[i];
        indices[to] = at;
    }
}

SP_CUDA_KERNEL(top_k, sp_top_k_constants)
{
    if (k.dtype == SP_CODE_F32) sp_top_k<float>(bindings, k);
    else if (k.dtype == SP_CODE_F64) sp_top_k<double>(bindings, k);
    else if (k.dtype == SP_CODE_I8) sp_top_k<int8_t>(bindings, k);
    else if (k.dtype == SP_CODE_I16) sp_top_k<int16_t>(bindings, k);
    else if (k.dtype == SP_CODE_I32) sp_top_k<int32_t>(bindings, k);
    else if (k.dtype == SP_CODE_I64) sp_top_k<int64_t>(bindings, k);
    else if (k.dtype == SP_CODE_U8) sp_top_k<uint8_t>(bindings, k);
    else if (k.dtype == SP_CODE_U16) sp_top_k<uint16_t>(bindings, k);
    else if (k.dtype == SP_CODE_U32) sp_top_k<uint32_t>(bindings, k);
    else if (k.dtype == SP_CODE_U64) sp_top_k<uint64_t>(bindings, k);
}
