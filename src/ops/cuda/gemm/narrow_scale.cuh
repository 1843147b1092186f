/* SPDX-License-Identifier: Apache-2.0 */
/* Results of two bytes are scaled before they are rounded: columns before scaled[0] by the first scale,
 * those before scaled[1] by the second one (kernel_constants.h). Both are multiples of 8. */

/* Can the quotient of such numbers be computed as sp_near_quotient does? All values between are normal
 * then. +0 can, -0 would lose its sign. */
SP_CUDA_FUNCTION bool sp_is_ordinary(float x)
{
    const uint32_t least = 0x2f800000, most = 0x4f800000; /* 2^-32 and 2^32 */
    return __float_as_uint(x) == 0 || (__float_as_uint(x) & 0x7fffffff) - least <= most - least;
}

/* The thread's pairs, eight columns apart, of which some are in the range of a scale. */
template <int across> struct sp_narrow_scaling {
    float2 (&pairs)[across];
    int first, end; /* of the pairs in the range */

    __device__ __forceinline__ bool has(int j) const
    {
        return first <= j && j < end;
    }

    template <class Change> __device__ __forceinline__ void each(const Change &change) const
    {
#pragma unroll
        for (int j = 0; j < across; j++) {
            if (has(j)) pairs[j] = {change(pairs[j].x), change(pairs[j].y)};
        }
    }

    __device__ __forceinline__ bool are_ordinary() const
    {
        bool result = true;
#pragma unroll
        for (int j = 0; j < across; j++) {
            const bool is = sp_is_ordinary(pairs[j].x) && sp_is_ordinary(pairs[j].y);
            result = result && (is || !has(j));
        }
        return result;
    }

    /* One by one, in memory: the text of a division is long. */
    __device__ __forceinline__ void divide_others(float number) const
    {
        float2 kept[across];
#pragma unroll
        for (int j = 0; j < across; j++) kept[j] = pairs[j];
#pragma unroll 1
        for (int j = first; j < end; j++) {
            kept[j] = {__fdiv_rn(kept[j].x, number), __fdiv_rn(kept[j].y, number)};
        }
#pragma unroll
        for (int j = 0; j < across; j++) pairs[j] = kept[j];
    }

    __device__ __forceinline__ void scale(const sp_attention_scale &by) const
    {
        const float number = by.number;
        if (by.kind == SP_SCALE_MULTIPLIES) {
            each([&](float x) { return __fmul_rn(x, number); });
        } else if (sp_is_ordinary(number) && number != 0 && are_ordinary()) {
            const sp_f32 divisor = number, inverse = sp_f32(1.0f) / divisor;
            each([&](float x) { return sp_near_quotient(x, divisor, inverse).v; });
        } else {
            divide_others(number);
        }
    }
};

/* A thread's pairs, eight columns apart from `column` on. */
template <int across>
SP_CUDA_FUNCTION void sp_narrow_scale_pairs(const sp_gemm_constants &k, int64_t column,
                                            float2 (&pairs)[across])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int64_t first = (i == 0 ? 0 : k.scaled[0]) - column + 7, end = k.scaled[i] - column + 7;
        if (k.scales[i].kind == SP_SCALE_NONE || end < 8 || first >= across * 8) continue;
        const sp_narrow_scaling<across> part = {pairs, first < 0 ? 0 : (int)first / 8,
                                                end < across * 8 ? (int)end / 8 : across};
        part.scale(k.scales[i]);
    }
}
