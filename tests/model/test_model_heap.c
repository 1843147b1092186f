/* SPDX-License-Identifier: Apache-2.0 */
/* No run but the first of its key allocates, not even a thread's first: every way in which the
 * process gets memory is counted.
 * primitive: replaces malloc, its relatives and mmap to count their calls. */
#include <streampool/stream.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "base/thread.h"
#include "run_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

#if !defined(HAS_OWN_MALLOC)

static sp_atomic_u64 allocation_count;

static void count_one(void)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
}

/* The C library names these. NOLINTBEGIN(readability-identifier-naming) */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *ptr, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
/* NOLINTEND(readability-identifier-naming) */

void *malloc(size_t bytes)
{
    count_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_one();
    return __libc_calloc(count, bytes);
}

void *realloc(void *ptr, size_t bytes)
{
    count_one();
    return __libc_realloc(ptr, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count_one();
    *out = __libc_memalign(alignment, bytes);
    return *out != NULL ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t bytes)
{
    count_one();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_one();
    return __libc_memalign(alignment, bytes);
}

/* The C library's own calls, for stacks and for large blocks of malloc, do not come here. */
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    count_one();
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

#endif

#define THREADS 8

typedef struct counted_load {
    const model_case *c;
    sp_array outputs[THREADS][FIXTURE_PORTS];
    sp_atomic_u32 ready;
    sp_atomic_u32 finished;
    sp_atomic_u64 before, after;
} counted_load;

#if !defined(HAS_OWN_MALLOC)
static uint64_t count_now(void)
{
    return sp_load_relaxed(&allocation_count);
}

/* What a thread needs once, whatever it does: its record, and a stream of its own. */
static void become_known(void)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_synchronize(stream));
}

/* The last to come and the last to go read the counter while nobody else allocates. */
static void run_counted(void *arg, uint32_t index)
{
    counted_load *load = arg;
    become_known();
    if (sp_fetch_add_acq_rel(&load->ready, 1) == THREADS - 1) {
        sp_store_release(&load->before, count_now());
    }
    while (sp_load_acquire(&load->before) == 0) sp_spin_hint();
    for (int i = 0; i < 1000 / THREADS; i++) {
        if (case_run(load->c, load->outputs[index]) != SP_OK) break;
    }
    if (sp_fetch_add_acq_rel(&load->finished, 1) == THREADS - 1) {
        sp_store_release(&load->after, count_now());
    }
    while (sp_load_acquire(&load->after) == 0) sp_spin_hint();
    CHECK(case_is_same(load->c, load->outputs[index]));
}
#endif

#if !defined(HAS_OWN_MALLOC)
/* How many a block of memory costs; the compiler must not leave the calls out. */
#define COUNTED(allocate, release)                                                                 \
    do {                                                                                           \
        const uint64_t before = count_now();                                                       \
        void *volatile block = (allocate);                                                         \
        CHECK(count_now() > before);                                                               \
        CHECK(block != NULL && block != MAP_FAILED);                                               \
        release;                                                                                   \
    } while (0)

static void *posix_block(void)
{
    void *block = NULL;
    return posix_memalign(&block, 64, 64) == 0 ? block : NULL;
}
#endif

TEST(every_way_to_get_memory_is_counted)
{
#if defined(HAS_OWN_MALLOC)
    SKIP("the sanitizer has its own malloc");
#else
    COUNTED(malloc(8), free(block));
    COUNTED(calloc(2, 8), free(block));
    COUNTED(realloc(NULL, 8), free(block));
    COUNTED(memalign(64, 64), free(block));
    COUNTED(aligned_alloc(64, 64), free(block));
    COUNTED(posix_block(), free(block));
    COUNTED(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), munmap(block, 4096));
    COUNTED(sp_malloc(8), sp_free(block));
    COUNTED(sp_aligned_malloc(64, 64), sp_free(block));
#endif
}

TEST(after_the_first_run_of_a_key_no_run_allocates)
{
#if defined(HAS_OWN_MALLOC)
    SKIP("the sanitizer has its own malloc");
#else
    counted_load *load = sp_malloc(sizeof *load);
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        *load = (counted_load){.c = &c};
        if (!case_open(fixture_models[i], NULL, &c)) {
            sp_free(load);
            SKIP("no shared data");
        }
        for (uint32_t t = 0; t < THREADS; t++) outputs_make(&c, load->outputs[t]);
        test_threads(THREADS, run_counted, load);
        CHECK_EQ_U64(sp_load_relaxed(&load->after) - sp_load_relaxed(&load->before), 0);
        for (uint32_t t = 0; t < THREADS; t++) outputs_free(&c, load->outputs[t]);
        case_close(&c);
    }
    sp_free(load);
#endif
}

TEST_MAIN
