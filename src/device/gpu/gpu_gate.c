/* SPDX-License-Identifier: Apache-2.0 */
#include "device/gpu/gpu_gate.h"

void sp__gpu_gate_init(sp_gpu_gate *gate)
{
    *gate = (sp_gpu_gate){0};
    sp_mutex_init(&gate->lock, SP_LOCK_GPU_GATE);
    sp_cond_init(&gate->opened);
}

void sp__gpu_gate_deinit(sp_gpu_gate *gate)
{
    sp_cond_deinit(&gate->opened);
    sp_mutex_deinit(&gate->lock);
}

void sp__gpu_gate_close(sp_gpu_gate *gate)
{
    sp_mutex_lock(&gate->lock);
    sp_store_relaxed(&gate->closers, sp_load_relaxed(&gate->closers) + 1);
    sp_mutex_unlock(&gate->lock);
}

void sp__gpu_gate_open(sp_gpu_gate *gate)
{
    sp_mutex_lock(&gate->lock);
    const uint32_t closers = sp_load_relaxed(&gate->closers);
    sp_store_relaxed(&gate->closers, SP_PLANTED(opens_for_others) ? 0 : closers - 1);
    gate->calls++;
    if (!SP_PLANTED(opens_quietly)) sp_cond_broadcast(&gate->opened);
    sp_mutex_unlock(&gate->lock);
}

void sp__gpu_gate_wait(sp_gpu_gate *gate)
{
    sp_mutex_lock(&gate->lock);
    const uint64_t calls = gate->calls;
    gate->waiting++;
    while (sp_load_relaxed(&gate->closers) != 0 && gate->calls == calls) {
        sp_cond_wait(&gate->opened, &gate->lock);
    }
    gate->waiting--;
    sp_mutex_unlock(&gate->lock);
}

uint32_t sp__gpu_gate_waiting(sp_gpu_gate *gate)
{
    sp_mutex_lock(&gate->lock);
    const uint32_t waiting = gate->waiting;
    sp_mutex_unlock(&gate->lock);
    return waiting;
}
