/* SPDX-License-Identifier: Apache-2.0 */
#include "service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failure.h"

enum { LOOK_MS = 50 };

/* Goes before each greeting and answer. */
typedef struct service_reply {
    sp_status status;
    char message[FAILURE_BYTES]; /* of a failure */
} service_reply;

/* ---- messages ---- */

static bool message_send(int socket, const void *bytes, size_t len)
{
    return send(socket, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool message_receive(int socket, void *bytes, size_t len)
{
    ssize_t count;
    do {
        count = recv(socket, bytes, len, 0);
    } while (count < 0 && errno == EINTR);
    return count == (ssize_t)len;
}

/* ---- the child ---- */

static bool reply_send(int socket, sp_status status, const void *bytes, size_t len)
{
    service_reply reply = {.status = status};
    if (status != SP_OK) snprintf(reply.message, sizeof reply.message, "%s", failure_message());
    return message_send(socket, &reply, sizeof reply) && message_send(socket, bytes, len);
}

static void requests_serve(const service_kind *kind, void *ctx, int socket)
{
    _Alignas(max_align_t) char request[SERVICE_MOST_BYTES], answer[SERVICE_MOST_BYTES];
    while (message_receive(socket, request, kind->request_bytes)) {
        memset(answer, 0, sizeof answer);
        const sp_status status = kind->serve(ctx, request, answer);
        fflush(stdout); /* before what the parent prints next */
        if (!reply_send(socket, status, answer, kind->answer_bytes)) return;
    }
}

/* Ends when the other end of the socket is closed. Ctrl-C reaches all processes of the terminal:
 * the parent decides. */
static _Noreturn void child_main(const service_kind *kind, void *ctx, int socket)
{
    _Alignas(max_align_t) char greeting[SERVICE_MOST_BYTES] = {0};
    signal(SIGINT, SIG_IGN);
    const sp_status status = kind->open(ctx, greeting);
    fflush(stdout);
    if (reply_send(socket, status, greeting, kind->greeting_bytes) && status == SP_OK) {
        requests_serve(kind, ctx, socket);
    }
    kind->close(ctx);
    exit(EXIT_SUCCESS); /* NOLINT(concurrency-mt-unsafe): nothing is left to race with */
}

/* ---- the parent ---- */

static sp_status reply_await(const service *self, const service_wait *wait)
{
    struct pollfd event = {.fd = self->socket, .events = POLLIN};
    while (wait != NULL && poll(&event, 1, LOOK_MS) <= 0) {
        if (!wait->go_on(wait->ctx)) return fail(SP_CANCELLED, "interrupted");
    }
    return SP_OK;
}

static sp_status reply_receive(const service *self, const service_wait *wait, void *out, size_t len)
{
    service_reply reply;
    TRY(reply_await(self, wait));
    if (!message_receive(self->socket, &reply, sizeof reply) ||
        !message_receive(self->socket, out, len)) {
        return fail(SP_IO, "the process has ended");
    }
    return reply.status == SP_OK ? SP_OK : fail(reply.status, "%s", reply.message);
}

sp_status service_start(service *self, const service_kind *kind, void *ctx,
                        const service_wait *wait, void *greeting)
{
    int sockets[2];
    *self = (service){.kind = kind};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) {
        return fail(SP_IO, "the system refused a pair of sockets");
    }
    fflush(stdout); /* else the child would print it again */
    const pid_t process = fork();
    if (process == 0) {
        close(sockets[0]);
        child_main(kind, ctx, sockets[1]);
    }
    close(sockets[1]);
    if (process < 0) {
        close(sockets[0]);
        return fail(SP_EXHAUSTED, "the system refused to start a process");
    }
    self->process = process;
    self->socket = sockets[0];
    return reply_receive(self, wait, greeting, kind->greeting_bytes);
}

sp_status service_ask(service *self, const void *request, const service_wait *wait, void *answer)
{
    if (!message_send(self->socket, request, self->kind->request_bytes)) {
        return fail(SP_IO, "the process has ended");
    }
    return reply_receive(self, wait, answer, self->kind->answer_bytes);
}

/* A child has the sockets of those that were started before it: it ends once they are closed here
 * and the later ones have ended. */
void services_stop(service *services, uint32_t count, bool is_at_once)
{
    for (uint32_t i = 0; i < count; i++) {
        if (services[i].process <= 0) continue;
        close(services[i].socket);
        if (is_at_once) kill(services[i].process, SIGKILL);
    }
    for (uint32_t i = 0; i < count; i++) {
        while (services[i].process > 0 && waitpid(services[i].process, NULL, 0) < 0 &&
               errno == EINTR) {
        }
        services[i] = (service){0};
    }
}
