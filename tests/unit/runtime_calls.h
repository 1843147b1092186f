/* SPDX-License-Identifier: Apache-2.0 */
/* Every public call of the runtime layer as a row of a table, for tests that make all of them in
 * one state: out of memory, shut down, forked. */
#ifndef SP_TESTS_RUNTIME_CALLS_H
#define SP_TESTS_RUNTIME_CALLS_H

#include <streampool/command_list.h>
#include <streampool/dlpack.h>

#include "runtime_fixture.h"

/* What the calls work on. */
typedef struct call_context {
    sp_device device;
    sp_stream stream;
    sp_event event;    /* recorded */
    sp_event timed[2]; /* recorded */
    sp_storage a, b;   /* of 64 bytes */
    sp_command_list list;
    sp_tensor tensor; /* of 4 x 4 f32, over `a` */
    sp_tensor view;   /* the same with its dimensions exchanged */
    sp_tensor other;  /* of `tensor`'s shape, on its own */
    unsigned char memory[64];
    sp_atomic_u32 called; /* callbacks that came */
    sp_atomic_u32 told;   /* of them, those that were told of a failure */
} call_context;

void call_context_init(call_context *self);
void call_context_init_on(call_context *self, sp_device device);
/* Releases all; also after a shutdown. */
void call_context_deinit(call_context *self);

/* Leaves everything as it was, whatever the status; the first status that is not SP_OK, if any. */
typedef struct public_call {
    const char *name;
    sp_status (*run)(call_context *self);
} public_call;

extern const public_call public_calls[];
extern const uint32_t public_call_count;

#endif
