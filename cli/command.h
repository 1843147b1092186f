/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of the program, as tables: what each takes and what it says about it. Arguments are
 * parsed by the tables (arguments.h); --help, the manual page and the completion are printed from
 * them (help.h). */
#ifndef SP_CLI_COMMAND_H
#define SP_CLI_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit code beside EXIT_SUCCESS and EXIT_FAILURE: the command line cannot be parsed. */
#define SP_EXIT_USAGE 2

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* A macro's number as a string literal, for the texts of limits. */
#define TEXT_OF_(number) #number
#define TEXT_OF(number) TEXT_OF_(number)

/* What the shell completes a value with. */
typedef enum cli_completion {
    COMPLETE_NOTHING,
    COMPLETE_FILE,
    COMPLETE_FOLDER,
    COMPLETE_DEVICE,
    COMPLETE_COMMAND
} cli_completion;

/* Stores a value in the command's arguments. False: the value is outside of the limits. */
typedef bool (*cli_take)(void *arguments, const char *value);

typedef struct cli_option {
    const char *name;   /* "--threads" */
    const char *value;  /* "N"; NULL: the option has none, and `take` gets "" */
    const char *limits; /* of the value: "a number from 1 to 1024" */
    const char *help;   /* sentences */
    cli_take take;
    cli_completion completion;
    bool is_repeatable;
} cli_option;

typedef struct cli_example {
    const char *line; /* after "streampool " */
    const char *help;
} cli_example;

typedef struct cli_command {
    const char *name;
    const char *summary;     /* after the name in a list */
    const char *description; /* sentences; paragraphs are separated by \n */
    const char *operand;     /* "MODEL"; NULL: no operands */
    const char *operand_help;
    cli_take take_operand; /* called for each operand */
    uint32_t min_operands, max_operands;
    cli_completion operand_completion;
    const cli_option *options; /* beside --help and --version, which every command has */
    size_t option_count;
    const cli_example *examples;
    size_t example_count;
    int (*run)(int argc, char **argv); /* gets its own name as argv[0]; returns the exit code */
} cli_command;

extern const cli_command sp__command_bench;
extern const cli_command sp__command_help;
extern const cli_command sp__command_info;
extern const cli_command sp__command_inspect;
extern const cli_command sp__command_ops;
extern const cli_command sp__command_run;
extern const cli_command sp__command_verify;

/* All commands, in the order in which lists print them. */
extern const cli_command *const sp__commands[];
extern const size_t sp__command_count;

/* The command of that name, or NULL. */
const cli_command *sp__command_find(const char *name);

#endif
