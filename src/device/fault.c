/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of fault messages, one for the process: faults cross devices. */
#include "device/fault.h"

#include <stdio.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/mutex.h"

typedef struct fault_message {
    sp_fault fault;
    char text[SP_ERROR_BYTES];
} fault_message;

typedef struct fault_ring {
    sp_mutex lock;
    uint32_t serial SP_GUARDED_BY(lock);
    fault_message messages[SP_FAULT_MESSAGES] SP_GUARDED_BY(lock);
} fault_ring;

/* process-wide: faults cross devices. */
static fault_ring ring = {.lock = SP_MUTEX_INIT(SP_LOCK_FAULTS)};

sp_fault sp__fault_create(sp_status status)
{
    const char *text = sp_last_error();
    sp_mutex_lock(&ring.lock);
    ring.serial = ring.serial % 0xffffffu + 1; /* never 0: that is SP_FAULT_CANCELLED */
    const sp_fault fault = (sp_fault)status << 24 | ring.serial;
    fault_message *message = &ring.messages[ring.serial % SP_FAULT_MESSAGES];
    message->fault = fault;
    snprintf(message->text, sizeof message->text, "%s", text);
    sp_mutex_unlock(&ring.lock);
    return fault;
}

sp_status sp__fault_report(sp_fault fault)
{
    if (fault == SP_NO_FAULT) return SP_OK;
    if (fault == SP_FAULT_CANCELLED) return sp__fail_cancelled();
    char text[SP_ERROR_BYTES] = "";
    sp_mutex_lock(&ring.lock);
    const fault_message *message = &ring.messages[(fault & 0xffffffu) % SP_FAULT_MESSAGES];
    if (message->fault == fault) snprintf(text, sizeof text, "%s", message->text);
    sp_mutex_unlock(&ring.lock);
    const sp_status status = sp__fault_status(fault);
    if (text[0] == '\0') {
        return sp__fail(status, "%s (its message was dropped: %d later commands failed too)",
                        sp_status_text(status), SP_FAULT_MESSAGES);
    }
    return sp__fail(status, "%s", text);
}

sp_fault sp__poison_fault(const sp_poison *poison, uint32_t epoch)
{
    const uint64_t word = sp_load_relaxed(&poison->word);
    return (uint32_t)(word >> 32) == epoch ? (sp_fault)word : SP_NO_FAULT;
}

/* Replaces the poison unless it is of a later epoch of the memory. */
static void poison_replace(sp_poison *poison, uint32_t epoch, sp_fault fault)
{
    const uint64_t mine = (uint64_t)epoch << 32 | fault;
    uint64_t seen = sp_load_relaxed(&poison->word);
    do {
        if ((int32_t)((uint32_t)(seen >> 32) - epoch) > 0) return;
    } while (!sp_cas_relaxed(&poison->word, &seen, mine));
}

void sp__poison_set(sp_poison *poison, uint32_t epoch, sp_fault fault)
{
    poison_replace(poison, epoch, fault);
}

void sp__poison_clear(sp_poison *poison, uint32_t epoch)
{
    if (sp_load_relaxed(&poison->word) != 0) poison_replace(poison, epoch, SP_NO_FAULT);
}
