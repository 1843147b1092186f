/* SPDX-License-Identifier: Apache-2.0 */
/* --help: wrapped at 80 columns, with the limits of each value, examples and the exit codes. */
#include "help.h"

#include <stdlib.h>
#include <string.h>

#include <streampool/runtime.h>

enum { COLUMNS = 80, HELP_INDENT = 6 };

const cli_exit_code sp__exit_codes[] = {
    {EXIT_SUCCESS, "success"},
    {EXIT_FAILURE, "something failed: a file, a model, its inputs, a device, or standard output"},
    {SP_EXIT_USAGE, "the command line cannot be parsed; nothing was done"},
};
const size_t sp__exit_code_count = COUNT_OF(sp__exit_codes);

const cli_option sp__common_options[] = {
    {.name = "--help", .help = "Print what the command does, its options and examples."},
    {.name = "--version", .help = "Print the version of the program."},
};
const size_t sp__common_option_count = COUNT_OF(sp__common_options);

void help_synopsis(const cli_command *command, char *out, size_t bytes)
{
    const bool is_optional = command->operand != NULL && command->min_operands == 0;
    snprintf(out, bytes, "streampool %s%s%s%s%s%s", command->name,
             command->option_count > 0 ? " [OPTION]..." : "",
             command->operand == NULL ? ""
             : is_optional            ? " ["
                                      : " ",
             command->operand != NULL ? command->operand : "", is_optional ? "]" : "",
             command->max_operands > 1 ? "..." : "");
}

/* Prints `text` wrapped at COLUMNS, each line indented by `indent` spaces. */
static void print_wrapped(const char *text, int indent)
{
    int column = 0;
    while (*text != '\0') {
        const int len = (int)strcspn(text, " \n");
        const bool is_first = column == 0;
        if (!is_first && column + 1 + len > COLUMNS) {
            printf("\n");
            column = 0;
        }
        column += column == 0 ? printf("%*s", indent, "") : printf(" ");
        column += printf("%.*s", len, text);
        text += len;
        if (*text == '\n') {
            printf("\n");
            column = 0;
        }
        if (*text != '\0') text++;
    }
    printf("\n");
}

static void print_option(const cli_option *option)
{
    printf("  %s%s%s%s\n", option->name, option->value != NULL ? " " : "",
           option->value != NULL ? option->value : "",
           option->is_repeatable ? "    (may be repeated)" : "");
    print_wrapped(option->help, HELP_INDENT);
    if (option->value == NULL) return;
    char text[512];
    snprintf(text, sizeof text, "%s is %s.", option->value, option->limits);
    print_wrapped(text, HELP_INDENT);
}

void help_print_usage(FILE *out, const cli_command *command)
{
    char synopsis[128];
    help_synopsis(command, synopsis, sizeof synopsis);
    fprintf(out, "usage: %s\n  streampool %s --help prints its options and examples\n", synopsis,
            command->name);
}

void help_print_program(FILE *out)
{
    fprintf(out, "usage: streampool COMMAND [ARGUMENT]...\n");
    for (size_t i = 0; i < sp__command_count; i++) {
        fprintf(out, "  %-8s %s\n", sp__commands[i]->name, sp__commands[i]->summary);
    }
    fprintf(out, "  streampool COMMAND --help prints a command's options and examples;\n"
                 "  streampool --version prints the version\n");
}

void help_print_version(void)
{
    printf("streampool %s\n", sp_version());
}

void help_print_command(const cli_command *command)
{
    char synopsis[128];
    help_synopsis(command, synopsis, sizeof synopsis);
    printf("usage: %s\n\n", synopsis);
    print_wrapped(command->description, 0);
    if (command->operand != NULL) {
        char text[512];
        snprintf(text, sizeof text, "%s is %s.", command->operand, command->operand_help);
        print_wrapped(text, 0);
    }
    printf("\noptions\n");
    for (size_t i = 0; i < command->option_count; i++) print_option(&command->options[i]);
    for (size_t i = 0; i < sp__common_option_count; i++) print_option(&sp__common_options[i]);
    printf("\nexamples\n");
    for (size_t i = 0; i < command->example_count; i++) {
        printf("  streampool %s\n", command->examples[i].line);
        print_wrapped(command->examples[i].help, HELP_INDENT);
    }
    printf("\nexit codes\n");
    for (size_t i = 0; i < sp__exit_code_count; i++) {
        printf("  %d  %s\n", sp__exit_codes[i].code, sp__exit_codes[i].meaning);
    }
}
