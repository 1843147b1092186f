/* SPDX-License-Identifier: Apache-2.0 */
/* A gate before the calls that issue work and poll for its end. It is closed during driver calls
 * that create or destroy what the driver owns: streams, memory, graphs, programs.
 *
 * The driver serialises these against all others of the context by a lock that prefers those: while
 * 31 threads issued and polled, one call that creates a stream did not return before they ended,
 * after 8 seconds. No thread that comes to a closed gate enters the driver, so the lock is free as
 * soon as those that are inside have left.
 *
 * A thread waits at the gate for one such call at most, however many there are. */
#ifndef SP_DEVICE_GPU_GPU_GATE_H
#define SP_DEVICE_GPU_GPU_GATE_H

#include "base/atomic.h"
#include "base/macros.h"
#include "base/mutex.h"

typedef struct sp_gpu_gate {
    sp_mutex lock;
    sp_cond opened;
    /* Calls that keep it closed. Written under the lock, and read without it: relaxed, since a
     * thread that passes late only delays such a call. */
    sp_atomic_u32 closers;
    uint64_t calls SP_GUARDED_BY(lock); /* that have ended */
    uint32_t waiting SP_GUARDED_BY(lock);
} sp_gpu_gate;

void sp__gpu_gate_init(sp_gpu_gate *gate);
void sp__gpu_gate_deinit(sp_gpu_gate *gate);

/* Around a call, or several short ones. May nest. A thread that keeps the gate closed does not
 * pass it, and waits for nothing but the driver. */
void sp__gpu_gate_close(sp_gpu_gate *gate);
void sp__gpu_gate_open(sp_gpu_gate *gate);

void sp__gpu_gate_wait(sp_gpu_gate *gate);

/* With no lock held. */
static inline void sp__gpu_gate_pass(sp_gpu_gate *gate)
{
    if (SP_UNLIKELY(sp_load_relaxed(&gate->closers) != 0)) sp__gpu_gate_wait(gate);
}

/* ---- for tests ---- */

uint32_t sp__gpu_gate_waiting(sp_gpu_gate *gate);

#endif
