/* SPDX-License-Identifier: Apache-2.0 */
/* The inline parts of base/thread.h under the controlled scheduler. Included at its end only. */
#ifndef SP_BACKEND_INLINE_H
#define SP_BACKEND_INLINE_H

void *sp__sched_tls_get(sp_tls_slot slot);
void sp__sched_spin_hint(void);

static inline void *sp_tls_get(sp_tls_slot slot)
{
    return sp__sched_tls_get(slot);
}

/* Each iteration is a step to explore; two cover the behaviour of more. */
#define SP_SPIN_TURNS(turns) ((turns) < 2 ? (turns) : 2)

static inline void sp_spin_hint(void)
{
    sp__sched_spin_hint();
}

#endif
