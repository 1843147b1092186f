/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"

/* ---- values ---- */

bool number_parse(const char *text, uint64_t min, uint64_t max, uint64_t *out)
{
    if (text[0] < '0' || text[0] > '9') return false; /* strtoull accepts spaces and signs */
    char *end;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number < min || number > max) return false;
    *out = number;
    return true;
}

bool text_list_add(text_list *list, const char *text)
{
    if (list->count == list->capacity) {
        const uint32_t capacity = list->capacity > 0 ? 2 * list->capacity : 8;
        const char **grown = realloc(list->texts, capacity * sizeof *grown);
        if (grown == NULL) return false;
        list->texts = grown;
        list->capacity = capacity;
    }
    list->texts[list->count++] = text;
    return true;
}

void text_list_free(text_list *list)
{
    free(list->texts);
    *list = (text_list){0};
}

/* ---- command lines ---- */

typedef struct parse {
    const cli_command *command;
    int argc;
    char **argv;
    int at;
    void *arguments;
    uint64_t seen; /* given options of the table, a bit each; a table has at most 64 */
    uint32_t operand_count;
} parse;

static bool usage_print_error(const parse *p)
{
    help_print_usage(stderr, p->command);
    return false;
}

/* The value after the '=' of an argument NAME=VALUE, from the '=' on; "" if the argument is `name`;
 * NULL if it is another option. */
static const char *match_option(const char *argument, const char *name)
{
    const size_t len = strlen(name);
    if (strncmp(argument, name, len) != 0) return NULL;
    if (argument[len] == '\0') return argument + len;
    return argument[len] == '=' ? argument + len : NULL;
}

static bool take_value(parse *p, const cli_option *option, const char *value)
{
    const char *name = p->command->name;
    if (option->value == NULL) {
        if (*value == '\0') return option->take(p->arguments, "");
        fprintf(stderr, "streampool %s: %s takes no value\n", name, option->name);
        return usage_print_error(p);
    }
    if (*value == '=') {
        value++;
    } else if (++p->at < p->argc) {
        value = p->argv[p->at];
    } else {
        fprintf(stderr, "streampool %s: %s needs a value: %s is %s\n", name, option->name,
                option->value, option->limits);
        return usage_print_error(p);
    }
    if (option->take(p->arguments, value)) return true;
    fprintf(stderr, "streampool %s: %s cannot be '%s': %s is %s\n", name, option->name, value,
            option->value, option->limits);
    return usage_print_error(p);
}

static bool take_option(parse *p)
{
    const cli_command *command = p->command;
    for (size_t i = 0; i < command->option_count; i++) {
        const cli_option *option = &command->options[i];
        const char *value = match_option(p->argv[p->at], option->name);
        if (value == NULL) continue;
        const uint64_t bit = UINT64_C(1) << i;
        if (!option->is_repeatable && (p->seen & bit) != 0) {
            fprintf(stderr, "streampool %s: %s is given twice\n", command->name, option->name);
            return usage_print_error(p);
        }
        p->seen |= bit;
        return take_value(p, option, value);
    }
    fprintf(stderr, "streampool %s: unknown option '%s'\n", command->name, p->argv[p->at]);
    return usage_print_error(p);
}

static bool take_operand(parse *p)
{
    const cli_command *command = p->command;
    const char *text = p->argv[p->at];
    if (p->operand_count == command->max_operands) {
        if (command->operand == NULL) {
            fprintf(stderr, "streampool %s: unexpected argument '%s': the command takes none\n",
                    command->name, text);
        } else {
            fprintf(stderr, "streampool %s: unexpected argument '%s': the command takes %u %s\n",
                    command->name, text, command->max_operands, command->operand);
        }
        return usage_print_error(p);
    }
    p->operand_count++;
    if (command->take_operand(p->arguments, text)) return true;
    fprintf(stderr, "streampool %s: '%s' is not a valid %s (%s)\n", command->name, text,
            command->operand, command->operand_help);
    return usage_print_error(p);
}

/* Handles --help and --version anywhere before "--", whatever the other arguments are. */
static bool is_asked_for_help(const cli_command *command, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const bool is_help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
        if (is_help) help_print_command(command);
        if (is_help) return true;
        if (strcmp(argv[i], "--version") != 0) continue;
        help_print_version();
        return true;
    }
    return false;
}

bool arguments_parse(const cli_command *command, int argc, char **argv, void *arguments,
                     int *exit_code)
{
    parse p = {.command = command, .argc = argc, .argv = argv, .arguments = arguments};
    bool is_option_possible = true;
    *exit_code = EXIT_SUCCESS;
    if (is_asked_for_help(command, argc, argv)) return false;
    *exit_code = SP_EXIT_USAGE;
    for (p.at = 1; p.at < argc; p.at++) {
        const char *text = argv[p.at];
        const bool is_dash = text[0] == '-' && text[1] != '\0'; /* "-" is standard input */
        if (is_option_possible && strcmp(text, "--") == 0) {
            is_option_possible = false;
        } else if (is_option_possible && is_dash) {
            if (!take_option(&p)) return false;
        } else if (!take_operand(&p)) {
            return false;
        }
    }
    if (p.operand_count >= command->min_operands) return true;
    fprintf(stderr, "streampool %s: %s is missing: %s\n", command->name, command->operand,
            command->operand_help);
    return usage_print_error(&p);
}
