/* SPDX-License-Identifier: Apache-2.0 */
/* Text to be shown: names from files, and shapes. */
#ifndef SP_CLI_TEXT_H
#define SP_CLI_TEXT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct shown_text {
    char text[192];
} shown_text;

/* A name from a file: cut in the middle if long (names differ at their ends), control characters
 * as '?'. */
shown_text show_name(const char *name);

/* A name as one word of a shell: in quotes where it needs them. */
shown_text quote_name(const char *name);

bool text_ends_in(const char *text, const char *ending);

/* Is there a file of that name, of any kind? */
bool file_exists(const char *path);

/* What the system says about an errno. */
shown_text show_error(int error);

/* "[1,3,224,224]", "[]" for a scalar. */
shown_text show_shape(uint32_t rank, const int64_t *shape);

#endif
