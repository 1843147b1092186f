/* SPDX-License-Identifier: Apache-2.0 */
/* Another library as a peer: loaded at run time and called through its C API. Which one it is
 * follows from the functions that it has; a peer_kind does what differs. */
#ifndef SP_CLI_PEER_H
#define SP_CLI_PEER_H

#include "peer_case.h"

#define PEER_NAME_BYTES 64

/* Zeroed: nothing to close. */
typedef struct peer {
    const struct peer_kind *kind;
    void *state;                /* of the kind */
    char name[PEER_NAME_BYTES]; /* "ONNX Runtime 1.32.0" */
    uint32_t run_threads;       /* that compute a run; 0: what the library chooses */
    const peer_case *of;
    uint64_t load_ns, first_run_ns;
    double difference; /* the largest one of the first run */
} peer;

/* Loads `library` (libonnxruntime.so, libopenvino_c.so). End with peer_close, also after a failure.
 * Errors: SP_IO, it cannot be opened; SP_UNSUPPORTED, it is another library or too old. */
sp_status peer_load(peer *self, const char *library);
/* Then loads the case's model for one calling thread, and `run_threads`, 1 unless the caller has
 * set another number; runs it once and compares the outputs with the
 * expected ones, within a tolerance: SP_MISMATCH. SP_INTERNAL: what the library says. */
sp_status peer_open(peer *self, const peer_case *of);
/* Before calls by `threads` threads, none of which is running. */
sp_status peer_prepare(peer *self, uint32_t threads);
void peer_close(peer *self);

/* A run (load_side); `ctx` is the peer. */
sp_status peer_call(void *ctx, uint32_t thread);

#endif
