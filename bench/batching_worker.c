/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "batching_child.h"

/* ---- the child ---- */

static bool message_send(int socket, const void *bytes, size_t len)
{
    return send(socket, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static bool message_receive(int socket, void *bytes, size_t len)
{
    return recv(socket, bytes, len, 0) == (ssize_t)len;
}

static void windows_serve(child *self, int socket)
{
    window asked;
    while (message_receive(socket, &asked, sizeof asked)) {
        window_result result = {0};
        result.status = child_measure(self, &asked, &result);
        snprintf(result.message, sizeof result.message, "%s",
                 result.status == SP_OK ? "" : failure_message());
        if (!message_send(socket, &result, sizeof result)) return;
    }
}

/* Ends when the other end of the socket is closed. */
static _Noreturn void child_main(const worker_options *options, int socket)
{
    child *self = calloc(1, sizeof *self);
    worker_greeting greeting = {.status = SP_OUT_OF_MEMORY};
    if (self != NULL) greeting.status = child_open(self, options, &greeting);
    snprintf(greeting.message, sizeof greeting.message, "%s",
             greeting.status == SP_OK ? "" : failure_message());
    if (message_send(socket, &greeting, sizeof greeting) && greeting.status == SP_OK) {
        windows_serve(self, socket);
    }
    if (self != NULL) child_close(self);
    free(self);
    exit(EXIT_SUCCESS);
}

/* ---- the parent ---- */

sp_status worker_start(worker *self, const worker_options *options)
{
    int sockets[2];
    *self = (worker){0};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets) != 0) {
        return fail(SP_IO, "the system refused a pair of sockets");
    }
    fflush(stdout); /* else the child would print it again */
    const pid_t process = fork();
    if (process == 0) {
        close(sockets[0]);
        child_main(options, sockets[1]);
    }
    close(sockets[1]);
    if (process < 0) {
        close(sockets[0]);
        return fail(SP_EXHAUSTED, "the system refused to start a process");
    }
    self->process = process;
    self->socket = sockets[0];
    if (!message_receive(self->socket, &self->greeting, sizeof self->greeting)) {
        return fail(SP_IO, "the process has ended while it loaded the model");
    }
    if (self->greeting.status == SP_OK) return SP_OK;
    return fail(self->greeting.status, "%s", self->greeting.message);
}

sp_status worker_ask(worker *self, const window *asked, window_result *out)
{
    const bool is_answered = message_send(self->socket, asked, sizeof *asked) &&
                             message_receive(self->socket, out, sizeof *out);
    if (!is_answered) return fail(SP_IO, "the process has ended in a window");
    return out->status == SP_OK ? SP_OK : fail(out->status, "%s", out->message);
}

/* A child has the sockets of those that were started before it: it ends once they are closed here
 * and the later ones have ended. */
void workers_stop(worker *workers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (workers[i].process > 0) close(workers[i].socket);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (workers[i].process > 0) waitpid(workers[i].process, NULL, 0);
        workers[i] = (worker){0};
    }
}
