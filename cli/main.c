/* SPDX-License-Identifier: Apache-2.0 */
/* The program: finds the command that its first argument names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} command;

static const command commands[] = {
    {"info", sp__command_info, "this build, the machine, and all options"},
    {"inspect", sp__command_inspect, "what a model holds, and its plan"},
    {"ops", sp__command_ops, "the operators, as a page of Markdown"},
    {"run", sp__command_run, "run a model from some threads at the same time"},
    {"verify", sp__command_verify, "run models on their test data and compare"},
};

static void print_usage(FILE *out)
{
    fprintf(out, "usage: streampool COMMAND [ARGUMENTS]\n");
    for (size_t i = 0; i < COUNT_OF(commands); ++i) {
        fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return SP_EXIT_USAGE;
    }
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < COUNT_OF(commands); ++i) {
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "streampool: no command '%s'\n", argv[1]);
    print_usage(stderr);
    return SP_EXIT_USAGE;
}
