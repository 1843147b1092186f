/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges between the threads of a warp, without barriers of the block. All threads of the warp
 * call them. */

#define SP_WHOLE_WARP 0xffffffffu

SP_CUDA_FUNCTION int sp_warp_lane()
{
    return threadIdx.x % SP_CUDA_LANES;
}

/* What the thread whose lane differs by the bits of `step` gives. */
SP_CUDA_FUNCTION sp_f32 sp_warp_exchange(sp_f32 x, int step)
{
    return __shfl_xor_sync(SP_WHOLE_WARP, x.v, step);
}

/* What the thread of that lane gives. */
SP_CUDA_FUNCTION sp_f32 sp_warp_take(sp_f32 x, int lane)
{
    return __shfl_sync(SP_WHOLE_WARP, x.v, lane);
}

/* The combination of the values of `lanes` neighbouring threads, a power of two, for all of them:
 * by the tree of steps lanes / 2 ... 2, 1. The combination has the same bits in either order, so
 * each thread computes those of the tree's root. */
template <class T, class Combine>
SP_CUDA_FUNCTION T sp_warp_tree(T value, int lanes, Combine combine)
{
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2) {
        value = combine(value, sp_warp_exchange(value, step));
    }
    return value;
}

/* Of four threads whose lanes differ in the last two bits: the first gets all their first words, the
 * next one all second words, and so on, in the order of the lanes. */
SP_CUDA_FUNCTION void sp_transpose_words(uint32_t (&word)[4])
{
    const bool is_odd = (threadIdx.x & 1) != 0, is_high = (threadIdx.x & 2) != 0;
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        const uint32_t given = is_odd ? word[i] : word[i + 1];
        const uint32_t got = __float_as_uint(sp_warp_exchange(__uint_as_float(given), 1).v);
        word[i] = is_odd ? got : word[i];
        word[i + 1] = is_odd ? word[i + 1] : got;
    }
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t given = is_high ? word[i] : word[i + 2];
        const uint32_t got = __float_as_uint(sp_warp_exchange(__uint_as_float(given), 2).v);
        word[i] = is_high ? got : word[i];
        word[i + 2] = is_high ? word[i + 2] : got;
    }
}
