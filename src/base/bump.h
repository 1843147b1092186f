/* SPDX-License-Identifier: Apache-2.0 */
/* Bump allocator with a limit: many small zeroed pieces that are freed together. Readers of
 * untrusted files bound their memory with it, once, instead of at every count in the file.
 * Owned by one thread while it grows; afterwards its pieces are plain memory. */
#ifndef SP_BASE_BUMP_H
#define SP_BASE_BUMP_H

#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"

typedef struct sp_bump_chunk sp_bump_chunk;

typedef struct sp_bump {
    sp_bump_chunk *newest;
    uint64_t used; /* bytes allocated from base's heap, at most `limit` */
    uint64_t limit;
} sp_bump;

static inline void sp__bump_init(sp_bump *bump, uint64_t limit)
{
    *bump = (sp_bump){.limit = limit};
}

void sp__bump_deinit(sp_bump *bump);

/* `count` zeroed elements, 16-byte aligned; NULL in *out for a count of 0. Errors: SP_EXHAUSTED at
 * the limit, SP_OUT_OF_MEMORY. */
sp_status sp__bump_array(sp_bump *bump, uint64_t count, uint64_t element_bytes, void *out);

/* A terminated copy. Errors: as above, SP_CORRUPT if the text contains a NUL. */
sp_status sp__bump_text(sp_bump *bump, sp_text text, const char **out);

#endif
