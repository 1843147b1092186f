/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a peer: its library is loaded at run time, and called through the table of its C
 * API. One session for all threads, whose runs use the calling thread only: one intra-op and one
 * inter-op thread, all else as the library has it. */
#ifndef SP_CLI_PEER_H
#define SP_CLI_PEER_H

#include "peer_case.h"

/* Zeroed: nothing to close. */
typedef struct peer {
    const struct peer_api *api;
    char name[64]; /* "ONNX Runtime 1.32.0" */
    void *env, *options, *memory, *session;
    const peer_case *of;
    const char **input_names, **output_names;
    void **inputs;   /* values, shared by the threads */
    void ***outputs; /* values by thread and output; created by the thread's first run */
    uint32_t thread_count;
    uint64_t load_ns, first_run_ns; /* of the session */
    double difference;              /* the largest one of the first run */
} peer;

/* Loads `library` (libonnxruntime.so). End with peer_close, also after a failure. Errors: SP_IO, it
 * cannot be opened; SP_UNSUPPORTED, it is another library or too old. */
sp_status peer_load(peer *self, const char *library);
/* Then makes a session of the case's file, runs it once and compares the outputs with the expected
 * ones, within a tolerance: SP_MISMATCH. SP_INTERNAL: what the library says. */
sp_status peer_open(peer *self, const peer_case *of, uint32_t threads);
void peer_close(peer *self);

/* A run (load_side); `ctx` is the peer. */
sp_status peer_call(void *ctx, uint32_t thread);

#endif
