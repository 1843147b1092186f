/* SPDX-License-Identifier: Apache-2.0 */
/* Text for output: names from files, and shapes. */
#ifndef SP_CLI_TEXT_H
#define SP_CLI_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct shown_text {
    char text[192];
} shown_text;

/* A name from a file: shortened in the middle if long (names often differ at their ends), control
 * characters replaced by '?'. */
shown_text show_name(const char *name);

/* A name as one shell word, quoted if necessary. */
shown_text quote_name(const char *name);

bool text_ends_in(const char *text, const char *ending);

/* Whether a file of that name exists, of any kind. */
bool file_exists(const char *path);

/* The system's text for an errno. */
shown_text show_error(int error);

/* Bytes of the first character, 1 to 4; 0: the text is empty, or does not begin with UTF-8. */
size_t utf8_length(const char *text);

/* Prints a text as a JSON string; a byte that is not UTF-8 as U+FFFD. */
void print_json_text(const char *text);

/* "[1,3,224,224]", "[]" for a scalar. */
shown_text show_shape(uint32_t rank, const int64_t *shape);

#endif
