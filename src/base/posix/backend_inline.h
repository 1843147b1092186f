/* SPDX-License-Identifier: Apache-2.0 */
/* Inline parts of base/thread.h on POSIX. Included at its end only. */
#ifndef SP_BACKEND_INLINE_H
#define SP_BACKEND_INLINE_H

/* initial-exec: one load from the thread pointer, also inside the shared library. */
extern _Thread_local void *sp__tls_values[SP_TLS_COUNT] __attribute__((tls_model("initial-exec")));

static inline void *sp_tls_get(sp_tls_slot slot)
{
    return sp__tls_values[slot];
}

#define SP_SPIN_TURNS(turns) (turns)

static inline void sp_spin_hint(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
