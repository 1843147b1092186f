/* SPDX-License-Identifier: Apache-2.0 */
/* No run but the first of its key allocates: the whole process's malloc is counted. */
#include "base/heap.h"
#include "run_fixture.h"
#include "support/malloc_count.h"

#define THREADS 8

typedef struct counted_load {
    const model_case *c;
    sp_array outputs[THREADS][FIXTURE_PORTS];
    malloc_span span;
} counted_load;

static void run_counted(void *arg, uint32_t index)
{
    counted_load *load = arg;
    for (int i = 0; i < 20; i++) CHECK_OK(case_run(load->c, load->outputs[index]));
    malloc_span_start(&load->span);
    for (int i = 0; i < 1000 / THREADS; i++) {
        if (case_run(load->c, load->outputs[index]) != SP_OK) break;
    }
    malloc_span_end(&load->span);
    CHECK(case_is_same(load->c, load->outputs[index]));
}

TEST(after_the_first_run_of_a_key_no_run_allocates)
{
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    counted_load *load = sp_malloc(sizeof *load);
    for (uint32_t i = 0; i < FIXTURE_MODELS; i++) {
        model_case c;
        *load = (counted_load){.c = &c, .span = {.threads = THREADS}};
        if (!case_open(fixture_models[i], NULL, &c)) {
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

TEST_MAIN
