/* SPDX-License-Identifier: Apache-2.0 */
/* Logging inside the library: SP_LOG(SP_LOG_WARN, "%s is not a number", text). Costs one relaxed
 * load when the level is off. Never called with a lock held: the user's callback runs in it. */
#ifndef SP_BASE_LOG_H
#define SP_BASE_LOG_H

#include <stdbool.h>

#include <streampool/log.h>

#include "base/atomic.h"
#include "base/macros.h"

#define SP_LOG_MESSAGE_BYTES 1024

/* The highest level that is logged, UINT32_MAX until STREAMPOOL_LOG has been read. Written by
 * sp_log_set_level and the first message; publishes nothing. */
extern sp_atomic_u32 sp__log_gate;

static inline bool sp__log_may_write(sp_log_level level)
{
    return SP_UNLIKELY((uint32_t)level <= sp_load_relaxed(&sp__log_gate));
}

/* Arguments are evaluated only if the level may be on. */
#define SP_LOG(level, ...)                                                                         \
    do {                                                                                           \
        if (sp__log_may_write(level)) sp__log_write(level, __VA_ARGS__);                           \
    } while (0)

/* Whether messages of the level are logged now: for a caller that prepares for the callback. */
bool sp__log_is_on(sp_log_level level);

void sp__log_write(sp_log_level level, const char *format, ...) SP_PRINTF(2, 3);

/* Test hook: removes the callback and reads STREAMPOOL_LOG again. No other thread may be logging.
 */
void sp__log_reset(void);

#endif
