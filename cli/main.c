/* SPDX-License-Identifier: Apache-2.0 */
/* The program: runs the command that its first argument names, and fails if its output could not be
 * written. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arguments.h"
#include "command.h"
#include "help.h"
#include "manual.h"
#include "output.h"

const cli_command *const sp__commands[] = {
    &sp__command_bench, &sp__command_help, &sp__command_info,   &sp__command_inspect,
    &sp__command_ops,   &sp__command_run,  &sp__command_verify,
};
const size_t sp__command_count = COUNT_OF(sp__commands);

const cli_command *sp__command_find(const char *name)
{
    for (size_t i = 0; i < sp__command_count; i++) {
        if (strcmp(sp__commands[i]->name, name) == 0) return sp__commands[i];
    }
    return NULL;
}

/* ---- help ---- */

typedef struct help_arguments {
    const cli_command *command;
    bool is_page, is_completion;
} help_arguments;

static bool take_page(void *arguments, const char *value)
{
    (void)value;
    ((help_arguments *)arguments)->is_page = true;
    return true;
}

static bool take_completion(void *arguments, const char *value)
{
    (void)value;
    ((help_arguments *)arguments)->is_completion = true;
    return true;
}

static bool take_command(void *arguments, const char *value)
{
    help_arguments *out = arguments;
    out->command = sp__command_find(value);
    return out->command != NULL;
}

static int help_run(int argc, char **argv)
{
    help_arguments arguments = {0};
    int code;
    if (!arguments_parse(&sp__command_help, argc, argv, &arguments, &code)) return code;
    if (arguments.is_page + arguments.is_completion + (arguments.command != NULL) > 1) {
        fprintf(stderr, "streampool help: --man, --bash-completion and a command exclude each "
                        "other\n");
        return SP_EXIT_USAGE;
    }
    if (arguments.is_page) manual_print_page();
    else if (arguments.is_completion) manual_print_completion();
    else if (arguments.command != NULL) help_print_command(arguments.command);
    else help_print_program(stdout);
    return EXIT_SUCCESS;
}

static const cli_option help_options[] = {
    {.name = "--man", .help = "Print the manual page, in roff.", .take = take_page},
    {.name = "--bash-completion",
     .help = "Print the completion of bash, which the shell reads with source.",
     .take = take_completion},
};

static const cli_example help_examples[] = {
    {"help run", "What streampool run takes; the same as streampool run --help."},
    {"help --man | man -l -", "The manual page without an installation."},
};

const cli_command sp__command_help = {
    .name = "help",
    .summary = "what a command takes, with examples",
    .description = "Prints the list of commands, or what one of them takes.",
    .operand = "COMMAND",
    .operand_help = "the name of a command, as streampool help lists them",
    .take_operand = take_command,
    .max_operands = 1,
    .operand_completion = COMPLETE_COMMAND,
    .options = help_options,
    .option_count = COUNT_OF(help_options),
    .examples = help_examples,
    .example_count = COUNT_OF(help_examples),
    .run = help_run,
};

/* ---- standard output ---- */

/* Opens /dev/null for standard streams that are closed at the start, in a mode that makes their use
 * fail: otherwise an opened file would become standard output. */
static void reserve_standard_streams(void)
{
    for (int descriptor = 0; descriptor < 3; descriptor++) {
        if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
        if (open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor) return;
    }
}

static int run_command(int argc, char **argv)
{
    if (argc < 2) {
        help_print_program(stderr);
        return SP_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        help_print_program(stdout);
        return EXIT_SUCCESS;
    }
    if (strcmp(argv[1], "--version") == 0) {
        help_print_version();
        return EXIT_SUCCESS;
    }
    const cli_command *command = sp__command_find(argv[1]);
    if (command != NULL) return command->run(argc - 1, argv + 1);
    fprintf(stderr, "streampool: unknown command '%s'\n", argv[1]);
    help_print_program(stderr);
    return SP_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    reserve_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error, as a full disk is */
    return output_finish(run_command(argc, argv));
}
