/* SPDX-License-Identifier: Apache-2.0 */
/* Text for output: names from files, and shapes. */
#ifndef SP_CLI_TEXT_H
#define SP_CLI_TEXT_H

#include <stdbool.h>
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

/* "[1,3,224,224]", "[]" for a scalar. */
shown_text show_shape(uint32_t rank, const int64_t *shape);

/* Prints a text as a JSON string. */
void print_json_text(const char *text);

#endif
