/* SPDX-License-Identifier: Apache-2.0 */
/* A thread with the stack that the header promises to be enough runs every model.
 * primitive: threads of the library have the system's stack. */
#include <pthread.h>

#include "run_fixture.h"

#if defined(__has_feature) /* clang */
#define IS_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#else
#define IS_SANITIZED 0
#endif

/* Of sp_model_run. Sanitizers and unoptimised code need more. */
#if IS_SANITIZED || !defined(__OPTIMIZE__)
enum { STACK_BYTES = 1024 * 1024 };
#else
enum { STACK_BYTES = 128 * 1024 };
#endif

static void *run_cases(void *arg)
{
    cases_run_rounds(arg, 0);
    return NULL;
}

TEST(a_stack_of_128_kib_is_enough_to_run_a_model)
{
    cases_load l;
    if (!cases_open(fixture_all_models, FIXTURE_ALL_MODELS, NULL, &l)) SKIP("no shared data");
    l.rounds = 1;
    pthread_attr_t attributes;
    pthread_t thread;
    REQUIRE_EQ_INT(pthread_attr_init(&attributes), 0);
    REQUIRE_EQ_INT(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    REQUIRE_EQ_INT(pthread_create(&thread, &attributes, run_cases, &l), 0);
    REQUIRE_EQ_INT(pthread_join(thread, NULL), 0);
    (void)pthread_attr_destroy(&attributes);
    CHECK_EQ_U64(sp_load_relaxed(&l.differing), 0);
    cases_close(&l);
}

TEST_MAIN
