/* SPDX-License-Identifier: Apache-2.0 */
#include "against.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "against_report.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "text.h"

typedef struct against {
    bench_arguments *arguments;
    service services[SIDES]; /* in the order of their starts: the peer's is the first */
    against_report report;
    uint32_t point; /* the first one is 1; 0: the models are loaded */
    uint32_t turn;  /* the first one is 1; 0: warm-up */
} against;

static service *service_of(against *self, side_number side)
{
    return &self->services[SIDES - 1 - side];
}

/* ---- requests ---- */

static bool wait_go_on(void *ctx)
{
    const against *self = ctx;
    const bench_arguments *arguments = self->arguments;
    if (self->point == 0) {
        progress_show("loading");
    } else {
        progress_show("point %u of %u, %u threads: turn %u of %u", self->point,
                      arguments->point_count, arguments->threads[self->point - 1], self->turn,
                      (unsigned)AGAINST_TURNS);
    }
    return !is_interrupted();
}

/* A failure of our side is as it is without a peer. */
static sp_status prefix_with_side(const against *self, side_number side, sp_status status)
{
    if (status == SP_OK || side == SIDE_OURS) return status;
    return fail_prefix(status, "--against %s: ", self->arguments->against);
}

static sp_status side_ask(against *self, side_number side, const side_request *request,
                          side_answer *out)
{
    const service_wait wait = {.go_on = wait_go_on, .ctx = self};
    if (is_interrupted()) return fail(SP_CANCELLED, "interrupted");
    return prefix_with_side(self, side, service_ask(service_of(self, side), request, &wait, out));
}

/* ---- start ---- */

static sp_status sides_start(against *self, side_process *memory)
{
    const service_wait wait = {.go_on = wait_go_on, .ctx = self};
    for (side_number i = SIDES; i-- > 0;) {
        TRY(prefix_with_side(self, i,
                             service_start(service_of(self, i), &sp__against_sides[i], memory,
                                           &wait, &self->report.greetings[i])));
    }
    for (side_number i = SIDE_OURS; i < SIDES; i++) {
        side_answer answer;
        TRY(side_ask(self, i, &(side_request){0}, &answer));
        self->report.starts[i] = answer.start;
    }
    return SP_OK;
}

/* Both processes have copies of the memory and of the file. */
static sp_status start(against *self)
{
    side_process *memory = calloc(1, sizeof *memory);
    if (memory == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the bench");
    *memory =
        (side_process){.arguments = self->arguments, .file = memfd_create("tensors", MFD_CLOEXEC)};
    const sp_status status = memory->file >= 0 ? sides_start(self, memory)
                                               : fail(SP_IO, "the system refused a file in memory");
    if (memory->file >= 0) close(memory->file);
    free(memory);
    return status;
}

/* ---- points ---- */

static int compare_numbers(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of one figure of the windows. */
static double median_of(const side_window *windows, size_t offset)
{
    double numbers[AGAINST_TURNS];
    for (uint32_t i = 0; i < AGAINST_TURNS; i++) {
        numbers[i] = *(const double *)((const char *)&windows[i] + offset);
    }
    qsort(numbers, AGAINST_TURNS, sizeof *numbers, compare_numbers);
    return numbers[AGAINST_TURNS / 2];
}

/* Medians, but for what is worst in any window: the longest latency, missed arrivals, memory. */
static side_window windows_merge(const side_window *windows)
{
    side_window out = {.per_second = median_of(windows, offsetof(side_window, per_second)),
                       .cores = median_of(windows, offsetof(side_window, cores)),
                       .p50_us = median_of(windows, offsetof(side_window, p50_us)),
                       .p99_us = median_of(windows, offsetof(side_window, p99_us)),
                       .p999_us = median_of(windows, offsetof(side_window, p999_us))};
    for (uint32_t i = 0; i < AGAINST_TURNS; i++) {
        const side_window *window = &windows[i];
        if (window->max_us > out.max_us) out.max_us = window->max_us;
        if (window->peak_bytes > out.peak_bytes) out.peak_bytes = window->peak_bytes;
        out.missed += window->missed;
    }
    return out;
}

/* A window of each side; the side that begins changes. */
static sp_status turn_measure(against *self, const side_request *request, side_window out[SIDES])
{
    for (uint32_t i = 0; i < SIDES; i++) {
        const side_number side = (side_number)((i + self->turn) % SIDES);
        side_answer answer;
        TRY(side_ask(self, side, request, &answer));
        out[side] = answer.window;
    }
    return SP_OK;
}

/* Long enough for three runs of each thread, by those of the warm-up; without any, by the first. */
static double window_seconds(const against *self, const side_window warm_up[SIDES])
{
    double seconds = (double)self->arguments->window_ms / 1000 / AGAINST_TURNS;
    for (uint32_t i = 0; i < SIDES; i++) {
        const double first_us = (double)self->report.starts[i].first_run_ns / 1000;
        const double run_us = warm_up[i].p50_us > 0 ? warm_up[i].p50_us : first_us;
        if (3 * run_us / 1e6 > seconds) seconds = 3 * run_us / 1e6;
    }
    return seconds;
}

/* A whole warm-up of each side, then windows in turns. */
static sp_status point_measure(against *self, uint32_t threads, side_window out[SIDES])
{
    side_window windows[SIDES][AGAINST_TURNS] = {0}, turn[SIDES] = {0};
    const double warm_up = (double)self->arguments->warm_up_ms / 1000;
    side_request request = {.threads = threads,
                            .warm_up_seconds = warm_up,
                            .window_seconds =
                                (double)self->arguments->window_ms / 1000 / AGAINST_TURNS};
    self->turn = 0;
    TRY(turn_measure(self, &request, turn));
    request.warm_up_seconds = warm_up / AGAINST_TURNS;
    request.window_seconds = window_seconds(self, turn);
    while (self->turn < AGAINST_TURNS) {
        self->turn++;
        TRY(turn_measure(self, &request, turn));
        for (uint32_t i = 0; i < SIDES; i++) windows[i][self->turn - 1] = turn[i];
    }
    for (uint32_t i = 0; i < SIDES; i++) out[i] = windows_merge(windows[i]);
    return SP_OK;
}

static sp_status points_measure(against *self)
{
    const bench_arguments *arguments = self->arguments;
    for (self->point = 1; output_flush() && self->point <= arguments->point_count; self->point++) {
        const uint32_t threads = arguments->threads[self->point - 1];
        side_window windows[SIDES] = {0};
        TRY(point_measure(self, threads, windows));
        progress_clear();
        against_report_point(&self->report, threads, windows);
        bench_picture_add_point(&self->arguments->picture, threads);
        for (uint32_t i = 0; i < SIDES; i++) {
            bench_picture_set_rate(&self->arguments->picture, i, windows[i].per_second);
        }
    }
    return SP_OK;
}

static void lines_draw(const against *self)
{
    char label[sizeof(side_greeting) + sizeof(shown_text) + sizeof ": "];
    for (uint32_t i = 0; i < SIDES; i++) {
        snprintf(label, sizeof label, "%s: %s", self->report.greetings[i].name,
                 show_name(self->arguments->paths[0]).text);
        bench_picture_add_line(&self->arguments->picture, label);
    }
}

sp_status against_run(bench_arguments *arguments)
{
    against self = {.arguments = arguments, .report = {.arguments = arguments}};
    sp_status status = start(&self);
    progress_clear();
    if (status == SP_OK) {
        against_report_head(&self.report);
        lines_draw(&self);
        status = points_measure(&self);
        progress_clear();
    }
    services_stop(self.services, SIDES, is_interrupted());
    return status;
}
