/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a peer: its library is loaded at run time, and called through the table of its C
 * API. One session for all threads, whose runs use the calling thread only. */
#ifndef SP_BENCH_BATCHING_PEER_H
#define SP_BENCH_BATCHING_PEER_H

#include "batching_subject.h"

/* Zeroed: nothing to close. */
typedef struct peer {
    const struct peer_api *api;
    void *env, *options, *memory, *session;
    const subject *model; /* inputs and expected outputs */
    const char **input_names, **output_names;
    void **inputs;   /* values, shared by the threads */
    void ***outputs; /* values by thread and output; created by the thread's first run */
    uint32_t thread_count;
} peer;

/* Loads `library` (libonnxruntime.so) and a session of the subject's file, runs it once and
 * compares the outputs with the subject's, within a tolerance. End with peer_close, also after a
 * failure. */
sp_status peer_open(peer *self, const char *library, const subject *model, uint32_t threads);
void peer_close(peer *self);

/* A run (load_side); `ctx` is the peer. */
sp_status peer_call(void *ctx, uint32_t thread);

#endif
