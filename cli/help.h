/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts, printed from the tables of the commands. */
#ifndef SP_CLI_HELP_H
#define SP_CLI_HELP_H

#include <stdio.h>

#include "command.h"

typedef struct cli_exit_code {
    int code;
    const char *meaning;
} cli_exit_code;

extern const cli_exit_code sp__exit_codes[];
extern const size_t sp__exit_code_count;

/* --help and --version, which every command has. */
extern const cli_option sp__common_options[];
extern const size_t sp__common_option_count;

/* "streampool run [OPTION]... MODEL", and a reference to --help. */
void help_print_usage(FILE *out, const cli_command *command);
/* The list of commands. */
void help_print_program(FILE *out);
/* --help of a command. */
void help_print_command(const cli_command *command);
void help_print_version(void);

/* Writes the synopsis of a command to `out`. */
void help_synopsis(const cli_command *command, char *out, size_t bytes);

#endif
