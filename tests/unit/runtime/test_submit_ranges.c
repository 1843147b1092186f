/* SPDX-License-Identifier: Apache-2.0 */
/* ThreadSanitizer's view of commands: dispatches announce the ranges they access, so two that
 * overlap without order are reported although the kernels are not instrumented. */
#include "runtime_fixture.h"

/* Reports are what this program is after, so they do not make it fail; it counts them.
 * NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming) */
const char *__tsan_default_options(void);
void __tsan_on_report(void *report);

static sp_atomic_u32 reports;

const char *__tsan_default_options(void)
{
    return "exitcode=0";
}

/* Called by ThreadSanitizer for each report. */
void __tsan_on_report(void *report)
{
    (void)report;
    sp_fetch_add_relaxed(&reports, 1);
}
/* NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming) */

#define BYTES 4096

typedef struct pair {
    sp_storage storage;
    sp_stream streams[2];
    bool is_same_range;
} pair;

static sp_use half_of(const pair *self, uint32_t index)
{
    return (sp_use){.storage = self->storage,
                    .offset = self->is_same_range ? 0 : index * (BYTES / 2),
                    .bytes = BYTES / 2,
                    .access = SP_WRITE};
}

/* Each thread runs its own commands as the helper of its own waits, so two threads access the
 * memory and only the library could order them. Repeated, since sometimes they happen to be
 * ordered, by the storage's lock, or by a worker that runs both. */
static void fill_half(void *arg, uint32_t index)
{
    pair *self = arg;
    const sp_use use = half_of(self, index);
    const kernel_constants constants = {.bytes = BYTES / 2, .value = index + 1};
    for (int round = 0; round < 2000; round++) {
        CHECK_OK(dispatch(self->streams[index], &kernel_quiet_fill, &constants, &use, 1));
        CHECK_OK(sp_stream_synchronize(self->streams[index]));
    }
}

static uint32_t reports_of(bool is_untracked, bool is_same_range)
{
    runtime_begin();
    const uint32_t before = sp_load_relaxed(&reports);
    pair self = {.storage = new_storage_on(CPU, BYTES, is_untracked),
                 .streams = {new_stream(), new_stream()},
                 .is_same_range = is_same_range};
    test_threads(2, fill_half, &self);
    CHECK_OK(sp_storage_release(self.storage));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_stream_release(self.streams[i]));
    runtime_end();
    return sp_load_relaxed(&reports) - before;
}

TEST(dispatches_that_overlap_in_order_are_not_reported)
{
    CHECK_EQ_U64(reports_of(false, true), 0);
}

TEST(dispatches_without_order_over_different_ranges_are_not_reported)
{
    CHECK_EQ_U64(reports_of(true, false), 0);
}

TEST(dispatches_that_overlap_without_order_are_reported)
{
    if (!is_thread_sanitized()) SKIP("needs ThreadSanitizer");
    CHECK(reports_of(true, true) > 0);
}

TEST_MAIN
