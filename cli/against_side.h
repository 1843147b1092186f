/* SPDX-License-Identifier: Apache-2.0 */
/* The two sides of a comparison, each in a process of its own: this library, and a peer. The first
 * one leaves the inputs and its outputs in a file, so that the second one does not load the model
 * with this library: its memory is that of the peer. */
#ifndef SP_CLI_AGAINST_SIDE_H
#define SP_CLI_AGAINST_SIDE_H

#include "bench_run.h"
#include "peer.h"
#include "service.h"

typedef enum side_number { SIDE_OURS, SIDE_PEER, SIDES } side_number;

/* What a side is asked: to load the model and run it once, or, with `threads`, for a window. */
typedef struct side_request {
    uint32_t threads;
    double warm_up_seconds, window_seconds;
} side_request;

typedef struct side_start {
    uint64_t load_ns, first_run_ns, rest_bytes;
    double difference; /* of the peer's outputs from ours, the largest one */
} side_start;

typedef struct side_window {
    double per_second, cores;
    double p50_us, p99_us, p999_us, max_us;
    double missed; /* arrivals that were not served */
    uint64_t peak_bytes;
} side_window;

typedef struct side_answer {
    side_start start;
    side_window window;
} side_answer;

typedef struct side_greeting {
    char name[64]; /* "streampool", "ONNX Runtime 1.32.0" */
} side_greeting;

/* The memory of a side's process. */
typedef struct side_process {
    bench_arguments *arguments;
    int file;      /* of the peer_case */
    bench_job job; /* ours */
    peer peer;
    peer_case of; /* of the peer */
} side_process;

/* Of each side; their ctx is a `side_process`. */
extern const service_kind sp__against_sides[SIDES];

#endif
