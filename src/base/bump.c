/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks from base's heap, each at least CHUNK_BYTES, linked newest first. */
#include "base/bump.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/size.h"

enum { ALIGNMENT = 16, CHUNK_BYTES = 16384 };

/* Invariant: used <= bytes; both count the bytes after the header. */
struct sp_bump_chunk {
    sp_bump_chunk *older;
    uint64_t used, bytes;
    uint64_t padding; /* the header is a multiple of ALIGNMENT */
};

static sp_status bump_add_chunk(sp_bump *bump, uint64_t bytes)
{
    const uint64_t payload = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
    uint64_t total, used;
    if (!sp_size_add(payload, sizeof(sp_bump_chunk), &total) ||
        !sp_size_add(bump->used, total, &used) || used > bump->limit || total > SIZE_MAX) {
        return sp__fail(SP_EXHAUSTED,
                        "the file needs tables of more than %" PRIu64 " bytes, the limit for it",
                        bump->limit);
    }
    sp_bump_chunk *chunk = sp_aligned_malloc(ALIGNMENT, (size_t)total);
    if (!chunk) return sp__fail(SP_OUT_OF_MEMORY, "no memory for %" PRIu64 " bytes", total);
    *chunk = (sp_bump_chunk){.older = bump->newest, .bytes = payload};
    bump->newest = chunk;
    bump->used = used;
    return SP_OK;
}

sp_status sp__bump_array(sp_bump *bump, uint64_t count, uint64_t element_bytes, void *out)
{
    void *piece = NULL;
    uint64_t bytes;
    if (!sp_size_mul(count, element_bytes, &bytes) || !sp_size_align(bytes, ALIGNMENT, &bytes)) {
        bytes = UINT64_MAX; /* refused by the limit below */
    }
    if (bytes > 0) {
        const sp_bump_chunk *newest = bump->newest;
        const bool has_room = newest != NULL && bytes <= newest->bytes - newest->used;
        if (!has_room) SP_TRY(bump_add_chunk(bump, bytes));
        sp_bump_chunk *chunk = bump->newest;
        SP_ASSERT(chunk != NULL);
        piece = (char *)(chunk + 1) + chunk->used;
        chunk->used += bytes;
        memset(piece, 0, (size_t)bytes);
    }
    memcpy(out, &piece, sizeof(piece)); /* `out` points to a pointer of the caller's own type */
    return SP_OK;
}

sp_status sp__bump_text(sp_bump *bump, sp_text text, const char **out)
{
    if (text.len > 0 && memchr(text.ptr, 0, text.len)) {
        return sp__fail(SP_CORRUPT, "the name '%s' has a NUL byte", sp__text_print(text).text);
    }
    char *copy;
    SP_TRY(sp__bump_array(bump, (uint64_t)text.len + 1, 1, &copy));
    if (text.len > 0) memcpy(copy, text.ptr, text.len);
    *out = copy;
    return SP_OK;
}

void sp__bump_deinit(sp_bump *bump)
{
    for (sp_bump_chunk *chunk = bump->newest; chunk;) {
        sp_bump_chunk *older = chunk->older;
        sp_free(chunk);
        chunk = older;
    }
    *bump = (sp_bump){0};
}
