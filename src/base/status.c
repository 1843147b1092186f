/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of the status codes, from the one list in status.h. */
#include <streampool/status.h>

#include "base/macros.h"

typedef struct status_entry {
    sp_status status;
    const char *name;
    const char *text;
} status_entry;

static const status_entry entries[] = {
#define STATUS_ENTRY(code, value, text) {code, #code, text},
    SP_STATUS_LIST(STATUS_ENTRY)
#undef STATUS_ENTRY
};

/* NULL for an invalid code: callers may pass any integer. */
static const status_entry *find_entry(sp_status status)
{
    for (size_t i = 0; i < SP_COUNT_OF(entries); ++i) {
        if (entries[i].status == status) return &entries[i];
    }
    return NULL;
}

const char *sp_status_name(sp_status status)
{
    const status_entry *entry = find_entry(status);
    return entry != NULL ? entry->name : "SP_UNKNOWN";
}

const char *sp_status_text(sp_status status)
{
    const status_entry *entry = find_entry(status);
    return entry != NULL ? entry->text : "unknown status";
}
