/* SPDX-License-Identifier: Apache-2.0 */
/* Only the first run of a key allocates, and a thread's first run does not: every way in which the
 * process gets memory is counted. */
#include <streampool/stream.h>

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/heap.h"
#include "run_fixture.h"
#include "support/malloc_count.h"

#define THREADS 8

typedef struct counted_load {
    const model_case *c;
    uint32_t rounds;
    sp_array outputs[THREADS][FIXTURE_PORTS];
    malloc_span span;
} counted_load;

/* A thread's one-time allocations: its record, and its own stream. */
static void become_known(void)
{
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_synchronize(stream));
}

static void run_counted(void *arg, uint32_t index)
{
    counted_load *load = arg;
    become_known();
    malloc_span_start(&load->span);
    for (uint32_t i = 0; i < load->rounds; i++) {
        if (case_run(load->c, load->outputs[index]) != SP_OK) break;
    }
    malloc_span_end(&load->span);
    CHECK(case_is_same(load->c, load->outputs[index]));
}

/* The allocations of one block of memory; the compiler must not remove the calls. */
#define COUNTED(allocate, release)                                                                 \
    do {                                                                                           \
        const uint64_t before = malloc_count();                                                    \
        void *volatile block = (allocate);                                                         \
        CHECK(malloc_count() > before);                                                            \
        CHECK(block != NULL && block != MAP_FAILED);                                               \
        release;                                                                                   \
    } while (0)

static void *posix_block(void)
{
    void *block = NULL;
    return posix_memalign(&block, 64, 64) == 0 ? block : NULL;
}

TEST(every_way_to_get_memory_is_counted)
{
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    COUNTED(malloc(8), free(block));
    COUNTED(calloc(2, 8), free(block));
    COUNTED(realloc(NULL, 8), free(block));
    COUNTED(memalign(64, 64), free(block));
    COUNTED(aligned_alloc(64, 64), free(block));
    COUNTED(posix_block(), free(block));
    COUNTED(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), munmap(block, 4096));
    COUNTED(sp_malloc(8), sp_free(block));
    COUNTED(sp_aligned_malloc(64, 64), sp_free(block));
}

static void check_models(const char *const *names, uint32_t count, uint32_t rounds)
{
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    counted_load *load = sp_malloc(sizeof *load);
    for (uint32_t i = 0; i < count; i++) {
        model_case c;
        *load = (counted_load){.c = &c, .rounds = rounds, .span = {.threads = THREADS}};
        if (!case_open(names[i], NULL, &c)) {
            sp_free(load);
            SKIP("no shared data");
        }
        for (uint32_t t = 0; t < THREADS; t++) outputs_make(&c, load->outputs[t]);
        test_threads(THREADS, run_counted, load);
        CHECK_EQ_U64(load->span.after - load->span.before, 0);
        for (uint32_t t = 0; t < THREADS; t++) outputs_free(&c, load->outputs[t]);
        case_close(&c);
    }
    sp_free(load);
}

TEST(after_the_first_run_of_a_key_no_run_allocates)
{
    check_models(fixture_models, FIXTURE_MODELS, 1000 / THREADS);
}

TEST(no_model_allocates_after_the_first_run_of_a_key)
{
    check_models(fixture_all_models, FIXTURE_ALL_MODELS, (uint32_t)test_count(20, 1));
}

TEST_MAIN
