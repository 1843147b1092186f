/* SPDX-License-Identifier: Apache-2.0 */
/* Borrowed text with a length, like names in a model file: not terminated, any bytes. */
#ifndef SP_BASE_TEXT_H
#define SP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct sp_text {
    const char *ptr; /* may be NULL when len is 0 */
    size_t len;
} sp_text;

#define SP_TEXT_PRINT_BYTES 104
typedef struct sp_text_print {
    char text[SP_TEXT_PRINT_BYTES];
} sp_text_print;

static inline sp_text sp__text(const char *terminated)
{
    return (sp_text){terminated, strlen(terminated)};
}

static inline bool sp__text_equal(sp_text a, sp_text b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool sp__text_is(sp_text a, const char *terminated)
{
    return sp__text_equal(a, sp__text(terminated));
}

/* Printable form: shortened in the middle if long (names differ at their ends), non-printable bytes
 * as '?'. */
sp_text_print sp__text_print(sp_text text);

#endif
