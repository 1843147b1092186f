/* SPDX-License-Identifier: Apache-2.0 */
/* Events inside the library. */
#ifndef SP_RUNTIME_EVENT_H
#define SP_RUNTIME_EVENT_H

#include <streampool/event.h>

#include "device/timeline.h"

/* The point of the event's last record; SP_INVALID if there is none. */
sp_status sp__event_point(sp_event event, sp_point *out);

/* Frees the tables. For tests, when no handle is left. */
void sp__events_deinit(void);

#endif
