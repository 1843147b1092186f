/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the runtime layer share: a fresh runtime per test, short ways to move bytes,
 * kernels that are slow or fail, and a gate that keeps streams busy for as long as a test likes. */
#ifndef SP_TESTS_RUNTIME_FIXTURE_H
#define SP_TESTS_RUNTIME_FIXTURE_H

#include <streampool/device.h>
#include <streampool/event.h>
#include <streampool/runtime.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/thread.h"
#include "runtime/runtime_state.h"
#include "runtime/submit.h"
#include "support/test.h"

#define MILLISECOND INT64_C(1000000)
#define SECOND INT64_C(1000000000)

/* ---- life ---- */

/* Values of environment variables; NULL: the default, of `workers` what the run was given. */
typedef struct runtime_setting {
    const char *streams;
    const char *policy;
    const char *wait_ms;
    const char *workers;
} runtime_setting;

/* The runtime is new: the next call brings it up. */
void runtime_begin(void);
void runtime_begin_with(const runtime_setting *setting);
/* Checks that no storage is left, that the figures of all allocators agree, that every stream has
 * completed what it accepted, and that the checker, if it is on, has reported nothing; then takes
 * the runtime apart. */
void runtime_end(void);
/* This test races on purpose: if the checker is on, runtime_end requires a report instead. */
void expect_reports(void);

/* True in builds whose sanitizer would take a deliberate race for a failure. */
bool is_thread_sanitized(void);
bool is_address_sanitized(void);
/* Delays at marked places, in builds that have them; 0 turns them off. */
void set_delays(uint32_t per_mille);
/* Short delays at every marked place; notes if this build has none. */
void delay_everywhere(void);

/* ---- threads ---- */

void run_on_thread(void (*fn)(void *arg), void *arg);
/* Fails the test after half a minute. */
void await_at_least(sp_atomic_u32 *word, uint32_t value);
void raise_by_one(sp_atomic_u32 *word);

/* ---- streams ---- */

#define CPU ((sp_device){0})
/* The device that the run is about: STREAMPOOL_TEST_DEVICE, cpu if unset, or cuda. Streams and
 * storages that name no device are its. */
#define TESTED tested_device()
sp_device tested_device(void);
/* False on a real GPU, whose kernels do not see the host's variables. */
bool has_meetings(void);

sp_stream current_stream(void);
sp_stream new_stream(void);
sp_stream new_stream_on(sp_device device);
sp_stream_info info_of(sp_stream stream);
uint32_t index_of(sp_stream stream);
uint32_t holders_of(sp_stream stream);
/* The library's thread calls in order, so a callback that was due before has come afterwards. Waits
 * for the current stream, which must not be held. */
void let_callbacks_come(void);
/* An open null device, and its internal face. */
sp_device open_null(void);
sp_rt_device *rt_device(sp_device device);

/* ---- storages ---- */

sp_storage new_storage(uint64_t bytes);
sp_storage new_storage_on(sp_device device, uint64_t bytes, bool is_untracked);
sp_storage_range whole(sp_storage storage);
sp_use use_of(sp_storage storage, sp_access access); /* of all of it */
void fill(sp_stream stream, sp_storage storage, uint8_t value);
void copy(sp_stream stream, sp_storage to, sp_storage from);
/* The first byte that is not `value`, or -1 if all are; waits for the storage. */
int64_t first_other(sp_storage storage, uint8_t value);
/* Where the storage's memory is; nobody may be using it. */
void *address_of(sp_storage storage);
/* Takes storages of a size on this thread's stream until the device is asked for more memory, so
 * until everything that may be reused is. Does one of them stand at `address`? Gives them back. */
bool is_taken_again(const void *address, uint64_t bytes);

sp_memory_stats stats_of(sp_device device);

/* ---- kernels ---- */

extern const sp_kernel kernel_fail;      /* fails: "asked to fail" */
extern const sp_kernel kernel_slow_fill; /* sleeps constants->ns, then fills binding 0 */
extern const sp_kernel kernel_slow_copy; /* sleeps constants->ns, then copies 1 to 0 */
extern const sp_kernel kernel_meet;      /* waits until constants->wanted are inside, or 5 s */
/* Fills like kernel_slow_fill without a sleep, and ThreadSanitizer sees nothing of it but what its
 * dispatch announces. */
extern const sp_kernel kernel_quiet_fill;
extern const sp_kernel kernel_two_halves; /* fills one half, dawdles, fills the other */

typedef struct kernel_constants {
    uint64_t ns;
    uint64_t bytes;
    uint64_t value;
    sp_atomic_u32 *inside;
    sp_atomic_u32 *met;
    uint32_t wanted;
} kernel_constants;

sp_status dispatch(sp_stream stream, const sp_kernel *kernel, const kernel_constants *constants,
                   const sp_use *uses, uint32_t use_count);
/* A command that fails, and would have written `storage` if that is not zero. */
void submit_failing(sp_stream stream, sp_storage storage);
void submit_slow_fill(sp_stream stream, sp_storage storage, uint8_t value, uint64_t ns);

/* ---- a gate ---- */

/* What is submitted to a held stream waits until the gate is opened. It needs no thread: the stream
 * waits for the end of a host access. */
#define GATE_HOLDS 64
typedef struct gate {
    sp_device device;
    sp_storage key;
    sp_storage scratch[GATE_HOLDS]; /* one per hold, since nothing orders the held streams */
    uint32_t held;
} gate;

gate gate_closed(sp_device device);
void gate_hold(gate *self, sp_stream stream); /* at most GATE_HOLDS times */
void gate_open(gate *self);
/* Opened before; waits for the streams that it held. */
void gate_destroy(gate *self);

#endif
