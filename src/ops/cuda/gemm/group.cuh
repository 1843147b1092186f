/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of narrow products by warpgroups, on processors of compute capability 9.0, and of no other
 * (docs/decisions/0090): the four warps of a group multiply 64 rows by all columns of the tile, both in
 * shared memory, while copies and other groups go on. A chain goes through the 32 bytes of a segment
 * in order, as in gemm/narrow.cuh, and the instruction has the bits of its instructions.
 *
 * Lines of shared memory are 128 bytes, one after the other; what the processor calls a swizzle of 128
 * bytes is the order of their parts in sp_make_narrow_lines. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/* Of both operands in shared memory, from a multiple of 1,024 bytes on, or from a step of its lines on:
 * groups of eight lines are 1,024 bytes apart (PTX ISA, "Matrix descriptor"). */
SP_CUDA_FUNCTION uint64_t sp_group_operand(const char *lines)
{
    const uint64_t at = (uint64_t)__cvta_generic_to_shared(lines);
    return (at & 0x3ffff) >> 4 | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* What threads and their copies have written to shared memory is there for products that begin
 * behind the next barrier. */
SP_CUDA_FUNCTION void sp_group_publish()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Products that follow see the sums that this thread has written. */
SP_CUDA_FUNCTION void sp_group_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
SP_CUDA_FUNCTION void sp_group_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for the products up to the `count` newest ends. */
template <int count> SP_CUDA_FUNCTION void sp_group_await()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(count) : "memory");
}

/* Products read and write sums until they are awaited, of which the compiler knows nothing: it moves
 * no use of a sum past a call. */
SP_CUDA_FUNCTION void sp_group_hold(float (&sum)[64])
{
#pragma unroll
    for (int i = 0; i < 64; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

#define SP_GROUP_SUMS_8(i)                                                                         \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]),          \
        "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
/* sum += the products of 64 rows, 128 columns and 32 bytes of the depth. */
#define SP_GROUP_PRODUCT(E, shape_and_types, order)                                                \
    SP_CUDA_FUNCTION void sp_multiply_group(E, uint64_t left, uint64_t right, float (&sum)[64])    \
    {                                                                                              \
        asm volatile(                                                                              \
            "wgmma.mma_async.sync.aligned." shape_and_types                                        \
            " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, "   \
            "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, "     \
            "%34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "     \
            "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "              \
            "%64, %65, 1, 1, 1" order ";"                                                          \
            : SP_GROUP_SUMS_8(0), SP_GROUP_SUMS_8(8), SP_GROUP_SUMS_8(16), SP_GROUP_SUMS_8(24),    \
              SP_GROUP_SUMS_8(32), SP_GROUP_SUMS_8(40), SP_GROUP_SUMS_8(48), SP_GROUP_SUMS_8(56)   \
            : "l"(left), "l"(right));                                                              \
    }
SP_GROUP_PRODUCT(sp_tensor_f16, "m64n128k16.f32.f16.f16", ", 0, 0")
SP_GROUP_PRODUCT(sp_tensor_bf16, "m64n128k16.f32.bf16.bf16", ", 0, 0")
SP_GROUP_PRODUCT(sp_tensor_tf32, "m64n128k8.f32.tf32.tf32", "")

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

/* The first address of shared memory that operands may have. */
SP_CUDA_FUNCTION char *sp_group_memory(char *pool)
{
    return pool + (-(int)__cvta_generic_to_shared(pool) & 1023);
}

#endif
