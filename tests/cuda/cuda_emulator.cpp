/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's extensions of C++, then the program, then the execution of its blocks. */
#include "cuda/cuda_emulator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)

struct sp_index {
    unsigned x, y, z;
};

static sp_index threadIdx, blockIdx, gridDim;

struct alignas(16) float4 {
    float x, y, z, w;
};

static void __syncthreads();

/* Of the running block, allocated anew for each launch, so that a sanitizer finds its end. */
static float4 *shared_memory;
#define SP_CUDA_SHARED(name) float4 *const name = shared_memory

/* The build contracts nothing (-ffp-contract=off), so each of these rounds once. */
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}
static inline float __ldg(const float *from)
{
    return *from;
}

#include SP_CUDA_PROGRAM

/* ---- entries ---- */

struct launch {
    sp_gpu_bindings bindings;
    const void *constants;
};

static launch current;

template <class T> static void call(void (*kernel)(sp_gpu_bindings, T))
{
    T constants;
    memcpy(&constants, current.constants, sizeof(constants));
    kernel(current.bindings, constants);
}

struct named_entry {
    const char *name;
    void (*run)();
};

static const named_entry entries[] = {
#define ENTRY(name) {"sp_" #name, [] { call(sp_##name); }},
    SP_CUDA_KERNEL_LIST(ENTRY) SP_CUDA_VARIANT_LIST(ENTRY)
#undef ENTRY
};

/* ---- the threads of one block ---- */

enum { MAX_THREADS = 1024, STACK_BYTES = 64 * 1024 };
enum thread_state { NOT_STARTED, AT_BARRIER, ENDED };

struct thread {
    ucontext_t context;
    thread_state state;
};

static thread threads[MAX_THREADS];
static char *stacks;
static ucontext_t scheduler;
static const named_entry *running;

static void __syncthreads()
{
    thread *self = &threads[threadIdx.x];
    self->state = AT_BARRIER;
    swapcontext(&self->context, &scheduler);
}

static void thread_main()
{
    running->run();
    threads[threadIdx.x].state = ENDED;
}

/* Runs a thread up to its next barrier or its end. */
static void advance(unsigned index)
{
    thread *t = &threads[index];
    threadIdx = {index, 0, 0};
    if (t->state == NOT_STARTED) {
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = stacks + (size_t)index * STACK_BYTES;
        t->context.uc_stack.ss_size = STACK_BYTES;
        t->context.uc_link = &scheduler;
        makecontext(&t->context, thread_main, 0);
    }
    swapcontext(&scheduler, &t->context);
}

/* Runs all threads to the next barrier or the end; false if they reach different ones. The order
 * alternates between barriers, so that a missing barrier must fail in one of the orders. */
static bool advance_all(unsigned count, unsigned phase)
{
    for (unsigned i = phase == 0 ? 1 : 0; i < count; i++) {
        advance(phase % 2 == 0 ? i : count - 1 - i);
    }
    for (unsigned i = 1; i < count; i++) {
        if (threads[i].state != threads[0].state) return false;
    }
    return true;
}

static bool run_block(unsigned count, size_t shared_bytes)
{
    if (shared_bytes > 0) memset((void *)shared_memory, 0xff, shared_bytes); /* NaNs */
    for (unsigned i = 0; i < count; i++) threads[i].state = NOT_STARTED;
    advance(0);
    if (threads[0].state == ENDED) {
        /* A kernel without barriers: its threads need no stacks of their own. */
        for (unsigned i = 1; i < count; i++) {
            threadIdx = {i, 0, 0};
            running->run();
            if (threads[i].state != NOT_STARTED) return false;
        }
        return true;
    }
    for (unsigned phase = 0; threads[0].state != ENDED; phase++) {
        if (!advance_all(count, phase)) return false;
    }
    return true;
}

static bool run_grid(const sp_launch_shape *shape)
{
    gridDim = {shape->grid[0], shape->grid[1], shape->grid[2]};
    for (blockIdx.z = 0; blockIdx.z < gridDim.z; blockIdx.z++) {
        for (blockIdx.y = 0; blockIdx.y < gridDim.y; blockIdx.y++) {
            for (blockIdx.x = 0; blockIdx.x < gridDim.x; blockIdx.x++) {
                if (!run_block(shape->block[0], shape->shared_bytes)) return false;
            }
        }
    }
    return true;
}

bool cuda_emulator_launch(const char *entry, const sp_launch_shape *shape, void *const *bindings,
                          uint32_t binding_count, const void *constants)
{
    current.constants = constants;
    memcpy(current.bindings.at, bindings, binding_count * sizeof(*bindings));
    memcpy(current.bindings.tile, shape->tile, sizeof(shape->tile));
    running = nullptr;
    for (const named_entry &e : entries) {
        if (strcmp(e.name, entry) == 0) running = &e;
    }
    if (running == nullptr || shape->block[0] > MAX_THREADS) return false;
    if (stacks == nullptr) stacks = (char *)malloc((size_t)MAX_THREADS * STACK_BYTES);
    shared_memory = (float4 *)aligned_alloc(alignof(float4), (shape->shared_bytes + 15) / 16 * 16);
    const bool is_done = run_grid(shape);
    free(shared_memory);
    return is_done;
}
