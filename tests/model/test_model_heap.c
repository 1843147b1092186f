/* SPDX-License-Identifier: Apache-2.0 */
/* No run but the first of its key allocates: the whole process's malloc is counted.
 * primitive: replaces malloc to count its calls. */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

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

/* The C library names these. NOLINTBEGIN(readability-identifier-naming) */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *ptr, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
/* NOLINTEND(readability-identifier-naming) */

void *malloc(size_t bytes)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
    return __libc_calloc(count, bytes);
}

void *realloc(void *ptr, size_t bytes)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
    return __libc_realloc(ptr, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
    *out = __libc_memalign(alignment, bytes);
    return *out != NULL ? 0 : ENOMEM;
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

/* The first to come and the last to go read the counter while nobody else allocates. */
static void run_counted(void *arg, uint32_t index)
{
    counted_load *load = arg;
    for (int i = 0; i < 20; i++) CHECK_OK(case_run(load->c, load->outputs[index]));
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
