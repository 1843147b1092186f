/* SPDX-License-Identifier: Apache-2.0 */
/* Products of warpgroups, on processors of compute capability 9.0, and of no other: four warps multiply
 * 64 rows by 128 columns, both in shared memory, while copies and other groups go on. Lines are 128
 * bytes, one after the other; their parts of 16 bytes are in the order of sp_narrow_part. */
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SP_CUDA_GROUPS

/* Of both operands in shared memory, from a multiple of 1,024 bytes on, or from a step of its lines on:
 * groups of eight lines are 1,024 bytes apart (PTX ISA, "Matrix descriptor"). */
SP_CUDA_FUNCTION uint64_t sp_group_operand(const char *lines)
{
    const uint64_t at = (uint64_t)__cvta_generic_to_shared(lines);
    return (at & 0x3ffff) >> 4 | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
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
template <int count> SP_CUDA_FUNCTION void sp_group_hold(float (&sum)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

#define SP_GROUP_SUMS_8(i)                                                                         \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]),          \
        "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define SP_GROUP_SUMS_32(i)                                                                        \
    SP_GROUP_SUMS_8(i), SP_GROUP_SUMS_8(i + 8), SP_GROUP_SUMS_8(i + 16), SP_GROUP_SUMS_8(i + 24)
#define SP_GROUP_NAMES_64 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define SP_GROUP_NAMES_96 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
/* sum += the products of 64 rows, so many columns and 32 bytes of the depth; of the first ones, which
 * may be -0 where a sum from +0 is +0, sum = them. `count`: sums of a thread. */
#define SP_GROUP_PRODUCT(E, count, shape_and_types, order, left_name, right_name, first_name, ...) \
    SP_CUDA_FUNCTION void sp_multiply_group(E, bool is_first, uint64_t left, uint64_t right,       \
                                            float (&sum)[count])                                   \
    {                                                                                              \
        asm volatile("{\n.reg .pred p;\nsetp.eq.u32 p, " first_name ", 0;\n"                       \
                     "wgmma.mma_async.sync.aligned." shape_and_types " {" SP_GROUP_NAMES_##count   \
                     "}, " left_name ", " right_name ", p, 1, 1" order ";\n}"                      \
                     : __VA_ARGS__                                                                 \
                     : "l"(left), "l"(right), "r"((uint32_t)is_first));                            \
    }
#define SP_GROUP_PRODUCTS(E, columns, k_and_types, order)                                          \
    SP_GROUP_PRODUCT_##columns(E, "m64n" #columns k_and_types, order)
#define SP_GROUP_PRODUCT_128(E, shape_and_types, order)                                            \
    SP_GROUP_PRODUCT(E, 64, shape_and_types, order, "%64", "%65", "%66", SP_GROUP_SUMS_32(0),      \
                     SP_GROUP_SUMS_32(32))
#define SP_GROUP_PRODUCT_192(E, shape_and_types, order)                                            \
    SP_GROUP_PRODUCT(E, 96, shape_and_types, order, "%96", "%97", "%98", SP_GROUP_SUMS_32(0),      \
                     SP_GROUP_SUMS_32(32), SP_GROUP_SUMS_32(64))
SP_GROUP_PRODUCTS(sp_tensor_f16, 128, "k16.f32.f16.f16", ", 0, 0")
SP_GROUP_PRODUCTS(sp_tensor_bf16, 128, "k16.f32.bf16.bf16", ", 0, 0")
SP_GROUP_PRODUCTS(sp_tensor_tf32, 128, "k8.f32.tf32.tf32", "")
SP_GROUP_PRODUCTS(sp_tensor_f16, 192, "k16.f32.f16.f16", ", 0, 0")
SP_GROUP_PRODUCTS(sp_tensor_bf16, 192, "k16.f32.bf16.bf16", ", 0, 0")
SP_GROUP_PRODUCTS(sp_tensor_tf32, 192, "k8.f32.tf32.tf32", "")

/* The first address of shared memory that operands may have. */
SP_CUDA_FUNCTION char *sp_group_memory(char *pool)
{
    return pool + (-(int)__cvta_generic_to_shared(pool) & 1023);
}

#endif
