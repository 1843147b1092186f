/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_worker.h"

#include <stdlib.h>

#include "batching_child.h"

/* ---- the child ---- */

static sp_status worker_open(void *ctx, void *greeting)
{
    return child_open(ctx, greeting);
}

static sp_status worker_serve(void *ctx, const void *asked, void *result)
{
    return child_measure(ctx, asked, result);
}

static void worker_close(void *ctx)
{
    child_close(ctx);
}

static const service_kind windows = {.greeting_bytes = sizeof(worker_greeting),
                                     .request_bytes = sizeof(window),
                                     .answer_bytes = sizeof(window_result),
                                     .open = worker_open,
                                     .serve = worker_serve,
                                     .close = worker_close};

_Static_assert(sizeof(worker_greeting) <= SERVICE_MOST_BYTES, "fits a greeting");
_Static_assert(sizeof(window_result) <= SERVICE_MOST_BYTES, "fits an answer");

/* ---- the parent ---- */

sp_status worker_start(worker *self, const worker_options *options)
{
    *self = (worker){0};
    child *process = calloc(1, sizeof *process); /* the fork has a copy */
    if (process == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a process");
    process->options = options;
    const sp_status status =
        service_start(&self->service, &windows, process, NULL, &self->greeting);
    free(process);
    return status;
}

sp_status worker_ask(worker *self, const window *asked, window_result *out)
{
    return service_ask(&self->service, asked, NULL, out);
}

void workers_stop(worker *workers, uint32_t count)
{
    service services[WORKER_MODES] = {0};
    for (uint32_t i = 0; i < count; i++) services[i] = workers[i].service;
    services_stop(services, count, false);
    for (uint32_t i = 0; i < count; i++) workers[i] = (worker){0};
}
