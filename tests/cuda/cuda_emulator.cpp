/* SPDX-License-Identifier: Apache-2.0 */
/* The execution of the blocks of the emulated programs. */
#include "cuda/cuda_emulator.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "cuda/cuda_dialect.h"
#include "ops/cuda/cuda_list.h"

sp_index threadIdx, blockIdx, gridDim;
float4 *shared_memory;
emulated_launch current_launch;

/* ---- the threads of a cluster of blocks ---- */

enum { MAX_THREADS = 2048, MAX_BLOCKS = 8, STACK_BYTES = 64 * 1024 };
enum thread_state { NOT_STARTED, AT_BARRIER, HAS_ARRIVED, WAITS, AT_MBARRIER, ENDED };

struct thread {
    jmp_buf at; /* where it stopped */
    thread_state state;
    unsigned arrivals;          /* at barriers of the cluster */
    const sp_mbarrier *barrier; /* of its block, which it waits for */
    int parity;
    bool has_pushed; /* since its last barrier */
    bool has_awaited;
};

struct block {
    thread *threads; /* of its own */
    sp_index index;
    float4 *memory;
    unsigned phase; /* number of stops */
    bool has_ended;
};

static thread threads[MAX_THREADS];
static block blocks[MAX_BLOCKS]; /* of the running cluster */
static unsigned thread_count;    /* of each block */
static unsigned block_count;
static unsigned largest_cluster = MAX_BLOCKS; /* 1: the processor has none */
static size_t memory_bytes;
static block *current;
static char *stacks;
/* Stacks whose threads have ended and wait for other ones: a new context takes calls of the system.
 */
static struct {
    jmp_buf at;
    bool waits;
} ended[MAX_THREADS];
static jmp_buf scheduler;
static const emulated_entry *running;
static bool is_unordered; /* a thread did not wait for what it needs */
static void (*front)(void *context);
static void *front_context;
static bool has_front; /* it has not ended */

/* Jumps between stacks: swapcontext would call the kernel of the system twice. */
static void stop(thread_state state)
{
    thread *self = &current->threads[threadIdx.x];
    self->state = state;
    if (_setjmp(self->at) == 0) _longjmp(scheduler, 1);
}

void __syncthreads()
{
    current->threads[threadIdx.x].has_pushed = false;
    stop(AT_BARRIER);
}

void emulated_await()
{
    current->threads[threadIdx.x].has_awaited = true;
    if (has_front) front(front_context);
    has_front = false;
}

bool sp_has_clusters()
{
    return largest_cluster > 1;
}

/* Other threads of the block run between the two halves of a barrier. */
void sp_cluster_arrive()
{
    current->threads[threadIdx.x].arrivals++;
    stop(HAS_ARRIVED);
}

void sp_cluster_wait()
{
    stop(WAITS);
}

float4 sp_cluster_read(const float4 *at, int rank)
{
    return blocks[rank].memory[at - current->memory];
}

/* What the block of this rank has where the running one has `at`. */
template <class T> static T *in_block(T *at, int rank)
{
    is_unordered = is_unordered || blocks[rank].has_ended;
    return (T *)((char *)blocks[rank].memory + ((char *)at - (char *)current->memory));
}

void sp_open_mbarrier(sp_mbarrier *barrier, int arrivals)
{
    *barrier = {0, (unsigned char)arrivals, (unsigned char)arrivals, 0};
}

static void complete_phase(sp_mbarrier *barrier)
{
    if (barrier->rest != 0 || barrier->missing != 0) return;
    barrier->rest = barrier->arrivals;
    barrier->phase++;
}

static void arrive(sp_mbarrier *barrier)
{
    is_unordered = is_unordered || barrier->rest == 0; /* more than there are in a phase */
    barrier->rest--;
    complete_phase(barrier);
}

void sp_expect_at_mbarrier(sp_mbarrier *barrier, int bytes)
{
    barrier->missing += bytes;
    arrive(barrier);
}

void sp_arrive_at_mbarrier(sp_mbarrier *barrier, int rank)
{
    arrive(in_block(barrier, rank));
}

void sp_await_mbarrier(sp_mbarrier *barrier, int parity)
{
    thread *self = &current->threads[threadIdx.x];
    self->barrier = barrier;
    self->parity = parity;
    stop(AT_MBARRIER);
}

static void bytes_come(sp_mbarrier *barrier, int bytes)
{
    barrier->missing -= bytes;
    complete_phase(barrier);
}

void sp_copy_to_blocks(char *to, const char *from, int bytes, sp_mbarrier *barrier, unsigned ranks)
{
    for (int rank = 0; rank < (int)block_count; rank++) {
        if ((ranks >> rank & 1) == 0) continue;
        memcpy(in_block(to, rank), from, (size_t)bytes);
        bytes_come(in_block(barrier, rank), bytes);
    }
}

void sp_copy_to_block(char *to, const char *from, int bytes, sp_mbarrier *barrier)
{
    memcpy(to, from, (size_t)bytes);
    bytes_come(barrier, bytes);
}

void sp_open_inbox(sp_inbox *inbox)
{
    for (sp_mbarrier &side : inbox->sides) sp_open_mbarrier(&side, 1);
}

void sp_expect_bytes(sp_inbox *inbox, int side, int bytes)
{
    for (unsigned i = 0; i < thread_count; i++) {
        is_unordered = is_unordered || current->threads[i].has_pushed;
    }
    sp_expect_at_mbarrier(&inbox->sides[side], bytes);
}

void sp_push(float *to, float value, int rank, sp_inbox *inbox, int side)
{
    current->threads[threadIdx.x].has_pushed = true;
    *in_block(to, rank) = value;
    bytes_come(&in_block(inbox, rank)->sides[side], (int)sizeof(value));
}

void sp_await_inbox(sp_inbox *inbox, int side, int parity)
{
    sp_await_mbarrier(&inbox->sides[side], parity);
}

static float take_from(unsigned from, float value)
{
    static float given[MAX_THREADS];
    const size_t first = (size_t)(current->threads - threads);
    given[first + threadIdx.x] = value;
    __syncthreads();
    const float taken = given[first + from];
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
    for (;;) {
        running->run();
        thread *self = &current->threads[threadIdx.x];
        auto *own = &ended[self - threads];
        self->state = ENDED;
        own->waits = true;
        if (_setjmp(own->at) == 0) _longjmp(scheduler, 1);
    }
}

/* On a stack that waits, or a new one: never on that of a thread that a failed launch has left. */
static void thread_start(const thread *self)
{
    auto *own = &ended[self - threads];
    if (own->waits) {
        own->waits = false;
        _longjmp(own->at, 1);
    }
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)(self - threads) * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&context, thread_main, 0);
    setcontext(&context);
}

static void check_awaits()
{
    for (unsigned i = 0; i < thread_count * block_count; i++) {
        is_unordered = is_unordered || !threads[i].has_awaited;
    }
}

/* Runs a thread up to its next stop or its end. */
static void advance(unsigned index)
{
    thread *self = &current->threads[index];
    threadIdx = {index, 0, 0};
    if (_setjmp(scheduler) != 0) return;
    if (self->state == NOT_STARTED) thread_start(self);
    _longjmp(self->at, 1);
}

/* A kernel without barriers: its threads need no stacks of their own. */
static bool run_to_end()
{
    for (unsigned i = 1; i < thread_count; i++) {
        threadIdx = {i, 0, 0};
        running->run();
        if (current->threads[i].state != NOT_STARTED) return false;
    }
    return true;
}

/* Runs all threads of a block to their next stop or end; false if these differ. The order
 * alternates between stops, so that a missing barrier must fail in one of the orders. */
static bool advance_all()
{
    const unsigned phase = current->phase++;
    if (phase == 0) {
        advance(0);
        if (current->threads[0].state == ENDED) return run_to_end();
    }
    for (unsigned i = phase == 0 ? 1 : 0; i < thread_count; i++) {
        advance(phase % 2 == 0 ? i : thread_count - 1 - i);
    }
    for (unsigned i = 1; i < thread_count; i++) {
        if (current->threads[i].state != current->threads[0].state) return false;
    }
    return true;
}

/* Have all blocks that have not ended arrived as often as this one, or all bytes come? */
static bool is_free()
{
    const thread &self = current->threads[0];
    if (self.state == AT_MBARRIER) return self.barrier->phase % 2 != (unsigned)self.parity;
    if (self.state != WAITS) return true;
    for (unsigned i = 0; i < block_count; i++) {
        const block &other = blocks[i];
        if (other.has_ended) continue;
        for (unsigned k = 0; k < thread_count; k++) {
            if (other.threads[k].arrivals < current->threads[0].arrivals) return false;
        }
    }
    return true;
}

/* Runs a block to its next stop; the memory of one that has ended is not readable. */
static bool advance_block()
{
    blockIdx = current->index;
    shared_memory = current->memory;
    if (!advance_all()) return false;
    current->has_ended = current->threads[0].state == ENDED;
    if (current->has_ended && memory_bytes > 0) memset((void *)shared_memory, 0xff, memory_bytes);
    return true;
}

/* Which block runs next, by turns of the clusters. */
enum preference { NONE, LOW_RANKS, HIGH_RANKS, PREFERENCES };

/* Runs a block as far as it can run; false if its threads part. */
static bool run_block(block *it, bool *has_advanced)
{
    current = it;
    for (; !it->has_ended && is_free(); *has_advanced = true) {
        if (!advance_block()) return false;
    }
    return true;
}

/* Each block as far as it can run before the next one, in alternating order, so that a barrier of
 * the cluster that is missing fails. With a preference the first one that can run runs: the last
 * ones are then left behind as far as the others let them. */
static bool run_blocks(preference preferred)
{
    for (unsigned round = 0;; round++) {
        const bool is_forward = preferred == NONE ? round % 2 == 0 : preferred == LOW_RANKS;
        bool is_done = true, has_advanced = false;
        for (unsigned i = 0; i < block_count; i++) {
            block *it = &blocks[is_forward ? i : block_count - 1 - i];
            if (!run_block(it, &has_advanced)) return false;
            is_done = is_done && it->has_ended;
            if (has_advanced && preferred != NONE) break;
        }
        if (!has_advanced) return is_done;
    }
}

/* The cluster whose first block has this index. */
static bool run_cluster(const sp_index &first)
{
    for (unsigned i = 0; i < block_count; i++) {
        thread *own = &threads[i * thread_count];
        for (unsigned k = 0; k < thread_count; k++) own[k] = thread();
        float4 *memory = blocks[i].memory;
        if (memory_bytes > 0) memset((void *)memory, 0xff, memory_bytes); /* NaNs */
        blocks[i] = {own, {first.x + i, first.y, first.z}, memory, 0, false};
    }
    static unsigned clusters;
    const bool is_done = run_blocks((preference)(clusters++ % PREFERENCES));
    check_awaits();
    return is_done;
}

static bool run_grid(const sp_launch_shape *shape)
{
    gridDim = {shape->grid[0], shape->grid[1], shape->grid[2]};
    for (unsigned z = 0; z < gridDim.z; z++) {
        for (unsigned y = 0; y < gridDim.y; y++) {
            for (unsigned x = 0; x < gridDim.x; x += block_count) {
                if (!run_cluster({x, y, z})) return false;
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

/* ---- shared memory, which ends where a page begins that nobody may touch ---- */

static size_t shared_pages()
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (memory_bytes + page - 1) / page * page;
}

static float4 *shared_allocate()
{
    const size_t pages = shared_pages(), page = (size_t)sysconf(_SC_PAGESIZE);
    char *all = (char *)mmap(nullptr, pages + page, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED || mprotect(all + pages, page, PROT_NONE) != 0) abort();
    return (float4 *)(all + pages - memory_bytes);
}

static void shared_free(float4 *memory)
{
    char *end = (char *)memory + memory_bytes;
    munmap(end - shared_pages(), shared_pages() + (size_t)sysconf(_SC_PAGESIZE));
}

bool cuda_emulator_launch(const char *entry, const sp_launch_shape *shape, void *const *bindings,
                          uint32_t binding_count, const void *constants)
{
    current_launch.constants = constants;
    memset(current_launch.bindings, 0, sizeof(current_launch.bindings)); /* no report */
    memcpy(current_launch.bindings, bindings, binding_count * sizeof(*bindings));
    memcpy(current_launch.tile, shape->tile, sizeof(shape->tile));
    running = find_entry(entry);
    if (running == nullptr) return false;
    thread_count = shape->block[0];
    block_count = running->cluster < largest_cluster ? running->cluster : largest_cluster;
    if (thread_count * block_count > MAX_THREADS || shape->grid[0] % running->cluster != 0) {
        return false;
    }
    if (stacks == nullptr) stacks = (char *)malloc((size_t)MAX_THREADS * STACK_BYTES);
    memory_bytes = (shape->shared_bytes + 15) / 16 * 16;
    for (unsigned i = 0; i < block_count; i++) blocks[i].memory = shared_allocate();
    is_unordered = false;
    has_front = front != nullptr;
    const bool is_done = run_grid(shape) && !is_unordered;
    for (unsigned i = 0; i < block_count; i++) shared_free(blocks[i].memory);
    return is_done;
}

void cuda_emulator_set_clusters(bool has_clusters)
{
    largest_cluster = has_clusters ? MAX_BLOCKS : 1;
}

void cuda_emulator_set_front(void (*kernel)(void *context), void *context)
{
    front = kernel;
    front_context = context;
}
