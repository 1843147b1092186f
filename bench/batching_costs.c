/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_costs.h"

#include "bench_crowd.h"

/* ---- what is repeated ---- */

static void repeat_model(void *ctx, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) bench_check(subject_call(ctx, 0) == SP_OK, "a run");
}

static void repeat_rows(void *ctx, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) bench_check(rows_run(ctx) == SP_OK, "a run of a batch");
}

/* ---- rows ---- */

/* The largest of the library's plans with at most `rows` rows. */
static void library_find(const rows_library *library, uint32_t rows, window_result *out)
{
    for (uint32_t i = 0; i < library->count && library->rows[i] <= rows; i++) {
        out->rows = library->rows[i];
        out->ns = library->run_ns[i] / library->rows[i];
    }
}

static sp_status library_cost(costs *self, uint32_t rows, window_result *out)
{
    if (!self->has_library) TRY(rows_library_measure(self->model, &self->library));
    self->has_library = true;
    library_find(&self->library, rows, out);
    return SP_OK;
}

/* NULL with SP_OK: the caller cannot make a batch of that many rows. */
static sp_status case_find(costs *self, uint32_t rows, rows_case **out)
{
    *out = NULL;
    for (uint32_t i = 0; i < self->case_count; i++) {
        if (self->cases[i].rows == rows) *out = &self->cases[i];
    }
    if (*out != NULL || self->has_library) return SP_OK;
    if (self->case_count == COSTS_ROW_CASES) return fail(SP_EXHAUSTED, "too many batch sizes");
    rows_case *made = &self->cases[self->case_count];
    const sp_status status = rows_open(made, self->model, rows);
    if (status == SP_OK) {
        self->case_count++;
        *out = made;
        return SP_OK;
    }
    rows_close(made);
    return status == SP_MISMATCH || status == SP_UNSUPPORTED ? SP_OK : status;
}

static sp_status rows_cost(costs *self, const window *asked, double ms, window_result *out)
{
    rows_case *rows;
    TRY(case_find(self, asked->count, &rows));
    if (rows == NULL) return library_cost(self, asked->count, out);
    out->rows = rows->rows;
    out->ns = bench_round_ns(repeat_rows, rows, self->clock, ms) / rows->rows;
    return SP_OK;
}

/* ---- costs ---- */

sp_status window_cost(costs *self, const window *asked, window_result *out)
{
    const double ms = asked->seconds * 1000;
    switch (asked->call) {
    case WINDOW_MODEL:
        out->ns = bench_round_ns(repeat_model, self->model, self->clock, ms);
        return subject_check(self->model);
    case WINDOW_EMPTY:
        out->ns = bench_round_ns(repeat_model, self->empty, self->clock, ms);
        return SP_OK;
    case WINDOW_ROWS:
        return rows_cost(self, asked, ms, out);
    case WINDOW_WAKE:
        out->ns = bench_crowd_wake_ns(asked->count, asked->share, ms);
        return SP_OK;
    default:
        return fail(SP_INVALID, "no such call");
    }
}

void costs_close(costs *self)
{
    for (uint32_t i = 0; i < self->case_count; i++) rows_close(&self->cases[i]);
    *self = (costs){0};
}
