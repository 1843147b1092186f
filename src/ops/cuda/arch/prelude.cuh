/* SPDX-License-Identifier: Apache-2.0 */
/* A program of CUDA kernels is one text without includes: this file first, then the others in the
 * order of program.cmake. It is compiled by nvcc ahead of time, by NVRTC at run time, and by the
 * tests as C++ for the host, so it uses no library.
 *
 * Rules for bits (docs/decisions/0002-bit-rules.md): every arithmetic operation on floats is
 * written as the intrinsic that rounds once and that no compiler fuses with another operation. */
#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef signed short int16_t;
typedef signed int int32_t;
typedef signed long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#else
/* Host headers may define these, too. */
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
#endif

#define SP_CUDA_FUNCTION [[maybe_unused]] static __device__ __forceinline__
/* One that is called, since several copies of it would be long. */
#define SP_CUDA_CALLED [[maybe_unused]] static __device__ __noinline__
#define SP_CUDA_MEMBER static __device__ __forceinline__

/* Addresses in the order of the dispatch's bindings, and the tile of the launch shape. */
struct sp_gpu_bindings {
    void *at[16];
    uint32_t tile[3];
};

/* A block's dynamic shared memory, of the launch shape's size. */
#ifndef SP_CUDA_SHARED
#define SP_CUDA_SHARED(name) extern __shared__ float4 name[]
#endif

/* A graph launches a kernel before the one in front of it has ended, so that the launch and what
 * needs no results of that kernel take no time of their own (docs/decisions/0068). From here on
 * everything that was launched before is complete and visible; every thread of every kernel calls it
 * before it reads or writes memory that others write. A kernel that is launched in another way waits
 * for nothing here. */
SP_CUDA_FUNCTION void sp_await_kernels()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#elif defined(SP_CUDA_AWAIT)
    SP_CUDA_AWAIT();
#endif
}

/* The same; then the next kernel may be launched when all blocks are here. */
SP_CUDA_FUNCTION void sp_await_launch()
{
    sp_await_kernels();
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Declaration of every kernel, with its bounds for a launch. It begins with `await`. */
#define SP_CUDA_KERNEL_ENTRY(name, constants_type, bounds, await)                                  \
    SP_CUDA_FUNCTION void sp_##name##_body(const sp_gpu_bindings &bindings,                        \
                                           const constants_type &k);                               \
    extern "C" __global__ void bounds                                                              \
        sp_##name(const __grid_constant__ sp_gpu_bindings bindings,                                \
                  const __grid_constant__ constants_type k)                                        \
    {                                                                                              \
        await;                                                                                     \
        sp_##name##_body(bindings, k);                                                             \
    }                                                                                              \
    SP_CUDA_FUNCTION void sp_##name##_body(const sp_gpu_bindings &bindings, const constants_type &k)
/* One with blocks of so many threads, `blocks` of them per multiprocessor, that run long: the blocks
 * of the next kernel would wait in the place of other streams' blocks, so it is launched when these
 * have ended. */
#define SP_CUDA_KERNEL_OF(name, constants_type, threads, blocks)                                   \
    SP_CUDA_KERNEL_ENTRY(name, constants_type, __launch_bounds__(threads, blocks),                 \
                         sp_await_kernels())
/* At most 128 registers per thread. */
#define SP_CUDA_KERNEL(name, constants_type)                                                       \
    SP_CUDA_KERNEL_ENTRY(name, constants_type, __launch_bounds__(SP_CUDA_THREADS, 2),              \
                         sp_await_launch())
/* A kernel that calls sp_await_launch itself. */
#define SP_CUDA_KERNEL_THAT_AWAITS(name, constants_type)                                           \
    SP_CUDA_KERNEL_ENTRY(name, constants_type, __launch_bounds__(SP_CUDA_THREADS, 2), (void)0)
