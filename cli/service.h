/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that answer requests: each has its own threads, options and memory, and sleeps
 * while another one is asked. */
#ifndef SP_CLI_SERVICE_H
#define SP_CLI_SERVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <streampool/status.h>

/* What a service does in its process. `open` writes the greeting, `serve` the answer to a request;
 * `close` follows both, also after a failure of `open`. */
typedef struct service_kind {
    size_t greeting_bytes, request_bytes, answer_bytes; /* at most SERVICE_MOST_BYTES */
    sp_status (*open)(void *ctx, void *greeting);
    sp_status (*serve)(void *ctx, const void *request, void *answer);
    void (*close)(void *ctx);
} service_kind;

#define SERVICE_MOST_BYTES 4096

/* Zeroed: none. */
typedef struct service {
    pid_t process;
    int socket;
    const service_kind *kind;
} service;

/* While an answer is waited for. False: SP_CANCELLED, and the service can only be stopped. */
typedef struct service_wait {
    bool (*go_on)(void *ctx); /* called some twenty times a second */
    void *ctx;
} service_wait;

/* Forks; the calling process must not have used the library. `ctx` is copied by the fork. Waits for
 * the greeting; `wait` may be NULL. Errors: those of `open`; SP_IO; SP_EXHAUSTED. Stop it also
 * after a failure. */
sp_status service_start(service *self, const service_kind *kind, void *ctx,
                        const service_wait *wait, void *greeting);
/* Errors: those of `serve`; SP_IO, the process has ended; SP_CANCELLED. */
sp_status service_ask(service *self, const void *request, const service_wait *wait, void *answer);
/* All services of the process, in the order of their starts. `is_at_once`: also those that are
 * serving. */
void services_stop(service *services, uint32_t count, bool is_at_once);

#endif
