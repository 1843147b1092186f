/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines, parsed by the table of a command. Options and operands come in any order; a value
 * is the next argument, or follows a '=' (--threads=8); "--" ends the options. */
#ifndef SP_CLI_ARGUMENTS_H
#define SP_CLI_ARGUMENTS_H

#include "command.h"

/* Parses each argument by its `take`. True: run the command. False: exit with *exit_code, after
 * --help, --version, or a message about one argument. */
bool arguments_parse(const cli_command *command, int argc, char **argv, void *arguments,
                     int *exit_code);

/* An unsigned decimal number without spaces or other characters. False outside of the limits. */
bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out);

/* A growing list of the values of a repeatable option, which are borrowed. */
typedef struct text_list {
    const char **texts;
    uint32_t count, capacity;
} text_list;

/* False if memory runs out. */
bool text_list_add(text_list *list, const char *text);
void text_list_free(text_list *list);

#endif
