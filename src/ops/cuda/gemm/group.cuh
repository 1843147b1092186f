/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of narrow products by warpgroups, on processors of compute capability 9.0, and of no other
 * (docs/decisions/0090): the four warps of a group multiply 64 rows by all columns of the tile, both in
 * shared memory, while copies and other groups go on. A chain goes through the 32 bytes of a segment
 * in order, as in gemm/narrow.cuh, and the instruction has the bits of its instructions.
 *
 * Lines of shared memory are 128 bytes, one after the other; what the processor calls a swizzle of 128
 * bytes is the order of their parts in sp_make_narrow_lines. */
#if defined(SP_CUDA_GROUPS)

/* Two groups, and the fragments of sums that the instruction gives a thread. */
template <class E>
struct sp_group_tile : sp_narrow_tile<E, 128, 128, 16, 128, 1, 4, SP_NARROW_PACKED> {
    static constexpr bool is_group = true;
    static constexpr int pitch = SP_NARROW_BYTES, stages = SP_CUDA_GROUP_STAGES;
    static constexpr int left_bytes = 128 * pitch, stage_bytes = 256 * pitch;
    static constexpr int bytes = SP_CUDA_GROUP_BYTES;
    static_assert(bytes == stages * stage_bytes + 1024, "as the host counts them");
};

/* As sp_narrow_run; all threads of the block copy. A stage is filled again when all groups have
 * multiplied what it had, which each has awaited before the barrier. */
template <class T, class Left, class Right>
SP_CUDA_FUNCTION void sp_group_run(char *memory, int chunks, const sp_narrow_place &place,
                                   const Left &left, const Right &right, sp_narrow_sums<T> &sum)
{
    constexpr int stages = T::stages, ahead = stages - 2;
    const int own = place.row / 64 * 64 * T::pitch;
    sp_narrow_sums<T> chain;
    float(&chains)[64] = *(float(*)[64]) & chain.at[0][0][0];
    sum.clear();
#pragma unroll
    for (int s = 0; s < ahead; s++) {
        if (s < chunks) right.copy(s, memory + s * T::stage_bytes + T::left_bytes);
    }
    sp_await_launch();
#pragma unroll
    for (int s = 0; s < ahead; s++) {
        if (s < chunks) left.copy(s, memory + s * T::stage_bytes);
        sp_end_copies();
    }
#pragma unroll 1
    for (int first = 0; first < chunks; first += SP_NARROW_CHUNKS) {
        const int end = first + SP_NARROW_CHUNKS < chunks ? first + SP_NARROW_CHUNKS : chunks;
        chain.clear();
#pragma unroll 1
        for (int i = first; i < end; i++) {
            const char *stage = memory + i % stages * T::stage_bytes;
            char *free = memory + (i + ahead) % stages * T::stage_bytes;
            sp_await_copies_before<ahead - 1>();
            sp_group_publish();
            __syncthreads();
            if (i + ahead < chunks) {
                right.copy(i + ahead, free + T::left_bytes);
                left.copy(i + ahead, free);
            }
            sp_end_copies();
            sp_group_hold(chains);
            sp_group_begin();
#pragma unroll
            for (int s = 0; s < T::steps; s++) {
                sp_multiply_group(typename T::element(), sp_group_operand(stage + own + s * 32),
                                  sp_group_operand(stage + T::left_bytes + s * 32), chains);
            }
            sp_group_end();
            sp_group_await<1>();
        }
        sp_group_await<0>();
        sp_group_hold(chains);
        sum.add(chain);
    }
    sp_await_copies();
}

#endif
