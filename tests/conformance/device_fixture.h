/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the device conformance tests: the device under test (STREAMPOOL_TEST_DEVICE, cpu or
 * null), queues and memory on it, and short forms of submission. */
#ifndef SP_TESTS_DEVICE_FIXTURE_H
#define SP_TESTS_DEVICE_FIXTURE_H

#include "base/clock.h"
#include "device/device.h"
#include "device/wait.h"
#include "support/test.h"

#define FIXTURE_QUEUES 8

typedef struct fixture {
    sp_dev *device;
    sp_queue *queues[FIXTURE_QUEUES];
} fixture;

/* An open device with FIXTURE_QUEUES queues. Ends the process on failure. */
fixture fixture_open(void);
/* The same, of kind `kind`. */
fixture fixture_open_kind(const char *kind);
void fixture_close(fixture *fixture);
/* Of devices that waited for each other each is stopped before one is closed. */
void fixture_stop(fixture *fixture);
const char *fixture_kind(void);
/* Whether kernels access host variables, as command_meet requires. */
bool fixture_has_meetings(void);
/* The message of an error that kernel_fail raised. */
const char *fixture_failure(void);

/* Memory of `count` 32-bit words, zeroed; freed with fixture_free. */
sp_memory fixture_words(fixture *fixture, uint32_t count);
void fixture_free(sp_memory *memory);
uint32_t *words_of(const sp_memory *memory);

sp_binding bind_words(const sp_memory *memory, uint32_t first, uint32_t count, sp_access access);
/* The same with a poison word. */
sp_binding bind_poison(const sp_memory *memory, uint32_t first, uint32_t count, sp_access access,
                       sp_poison *poison);

sp_command command_fill(const sp_binding *target, const uint32_t *value);
sp_command command_copy(const sp_binding *target_and_source);
sp_command command_dispatch(const sp_kernel *kernel, uint32_t tiles, const sp_binding *bindings,
                            uint32_t binding_count, const void *constants, uint32_t constant_bytes);
sp_command command_host(sp_host_fn fn, void *ctx);

/* Submit commands of the calling thread; the first two check the status. */
sp_point submit(sp_queue *queue, const sp_command *commands, uint32_t count);
sp_point submit_after(sp_queue *queue, const sp_point *waits, uint32_t wait_count,
                      const sp_command *commands, uint32_t count);
sp_status try_submit(sp_queue *queue, const sp_submission *submission, sp_point *out);

/* A barrier inside tiles and dispatches: each waits until `wanted` are inside, 30 seconds at
 * most. */
typedef struct meeting {
    struct meeting *self;  /* the kernel's constant */
    sp_atomic_u32 arrived; /* the number that have entered */
    uint32_t wanted;
    sp_atomic_u32 met; /* incremented by each that saw `wanted` inside */
} meeting;

/* A dispatch whose tiles enter the meeting, which must outlive it. */
sp_command command_meet(meeting *self, uint32_t tiles);
/* A command that runs until let_go: a meeting of two, with the thread that calls let_go. */
sp_point submit_held(sp_queue *queue, meeting *held);
void let_go(meeting *held);

/* Waits; the calling thread may help. */
sp_status wait_point(sp_point point);

/* Kernels. */
extern const sp_kernel kernel_meet;    /* enters the meeting that its constant points to */
extern const sp_kernel kernel_add_one; /* words[i] += 1 over binding 0, one word per tile */
/* The same for a grid of three dimensions, by blocks of tiles; sleeps constants->ns for each. */
extern const sp_kernel kernel_add_block;
extern const sp_kernel kernel_append; /* binding 0: [count, items...]; appends the constant */
extern const sp_kernel kernel_fail;   /* fails with SP_FAILED "asked to fail" */
extern const sp_kernel kernel_slow;   /* sleeps constants->ns, then adds one to binding 0 [0] */

#endif
