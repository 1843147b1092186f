/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the libraries that can be peers. */
#ifndef SP_CLI_PEER_KIND_H
#define SP_CLI_PEER_KIND_H

#include <stddef.h>

#include "peer.h"

/* Of thread 0's last run. Borrowed until the next one. */
typedef struct peer_output {
    int element_type; /* a number of the library's */
    size_t count;     /* of elements */
    void *data;
} peer_output;

/* Functions get the state of a peer: `state_bytes`, zeroed before `load`. They are called in this
 * order, each after a success of the one before; `close` follows also a failure. */
typedef struct peer_kind {
    const char *label;        /* "ONNX Runtime" */
    const char *symbol;       /* a function that no other library has */
    const int *element_types; /* by sp_dtype: the library's numbers */
    size_t state_bytes;
    /* Finds the functions of a library (dlopen) and writes the peer's name. Errors:
     * SP_UNSUPPORTED. */
    sp_status (*load)(void *state, void *library, char *name);
    /* Loads the model, as for one calling thread. */
    sp_status (*open)(void *state, const peer_case *of, uint32_t run_threads);
    /* The next runs are of `threads` threads. */
    sp_status (*prepare)(void *state, uint32_t threads);
    sp_status (*run)(void *state, uint32_t thread);
    sp_status (*get_output)(void *state, uint32_t index, peer_output *out);
    void (*close)(void *state);
} peer_kind;

extern const peer_kind sp__peer_onnxruntime, sp__peer_openvino;

#endif
