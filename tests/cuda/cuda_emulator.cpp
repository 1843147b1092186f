/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of the blocks of the emulated programs. */
#include "cuda/cuda_emulator.h"

#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#include "cuda/cuda_dialect.h"
#include "ops/cuda/cuda_list.h"

sp_index threadIdx, blockIdx, gridDim;
float4 *shared_memory;
emulated_launch current_launch;

/* ---- the threads of one block ---- */

enum { MAX_THREADS = 1024, STACK_BYTES = 64 * 1024 };
enum thread_state { NOT_STARTED, AT_BARRIER, ENDED };

struct thread {
    jmp_buf at; /* the barrier */
    thread_state state;
};

static thread threads[MAX_THREADS];
static char *stacks;
static jmp_buf scheduler;
static const emulated_entry *running;

/* Jumps between stacks: swapcontext would call the kernel of the system twice. */
void __syncthreads()
{
    thread *self = &threads[threadIdx.x];
    self->state = AT_BARRIER;
    if (_setjmp(self->at) == 0) _longjmp(scheduler, 1);
}

static float take_from(unsigned thread, float value)
{
    static float given[MAX_THREADS];
    given[threadIdx.x] = value;
    __syncthreads();
    const float taken = given[thread];
    __syncthreads();
    return taken;
}

float __shfl_xor_sync(unsigned, float value, int step)
{
    return take_from(threadIdx.x ^ (unsigned)step, value);
}

float __shfl_sync(unsigned, float value, int lane)
{
    return take_from(threadIdx.x / 32 * 32 + (unsigned)lane, value);
}

static void thread_main()
{
    running->run();
    threads[threadIdx.x].state = ENDED;
    _longjmp(scheduler, 1);
}

static void thread_start(unsigned index)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)index * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&context, thread_main, 0);
    setcontext(&context);
}

/* Runs a thread up to its next barrier or its end. */
static void advance(unsigned index)
{
    threadIdx = {index, 0, 0};
    if (_setjmp(scheduler) != 0) return;
    if (threads[index].state == NOT_STARTED) thread_start(index);
    _longjmp(threads[index].at, 1);
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

#define PROGRAM(name, kernels) extern const emulated_entry emulated_##name[];
SP_CUDA_PROGRAM_LIST(PROGRAM)
#undef PROGRAM

static const emulated_entry *const programs[] = {
#define PROGRAM(name, kernels) emulated_##name,
    SP_CUDA_PROGRAM_LIST(PROGRAM)
#undef PROGRAM
};

static const emulated_entry *find_entry(const char *name)
{
    for (const emulated_entry *entries : programs) {
        for (const emulated_entry *e = entries; e->name != nullptr; e++) {
            if (strcmp(e->name, name) == 0) return e;
        }
    }
    return nullptr;
}

bool cuda_emulator_launch(const char *entry, const sp_launch_shape *shape, void *const *bindings,
                          uint32_t binding_count, const void *constants)
{
    current_launch.constants = constants;
    memset(current_launch.bindings, 0, sizeof(current_launch.bindings)); /* no report */
    memcpy(current_launch.bindings, bindings, binding_count * sizeof(*bindings));
    memcpy(current_launch.tile, shape->tile, sizeof(shape->tile));
    running = find_entry(entry);
    if (running == nullptr || shape->block[0] > MAX_THREADS) return false;
    if (stacks == nullptr) stacks = (char *)malloc((size_t)MAX_THREADS * STACK_BYTES);
    shared_memory = (float4 *)aligned_alloc(alignof(float4), (shape->shared_bytes + 15) / 16 * 16);
    const bool is_done = run_grid(shape);
    free(shared_memory);
    return is_done;
}
