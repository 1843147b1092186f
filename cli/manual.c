/* SPDX-License-Identifier: Apache-2.0 */
/* The manual page in roff's man macros, and the completion for bash. */
#include "manual.h"

#include <stdio.h>

#include <streampool/runtime.h>

#include "command.h"
#include "help.h"

/* ---- the manual page ---- */

/* Escapes text for roff: hyphens, backslashes, and lines that would begin with a request. */
static void print_roff(const char *text)
{
    bool is_begin = true;
    for (; *text != '\0'; text++) {
        if (is_begin && (*text == '.' || *text == '\'')) printf("\\&");
        is_begin = *text == '\n';
        if (*text == '-') printf("\\-");
        else if (*text == '\\') printf("\\e");
        else if (*text == '\n') printf("\n.PP\n");
        else putchar(*text);
    }
}

static void print_roff_option(const cli_option *option)
{
    printf(".TP\n.B ");
    print_roff(option->name);
    if (option->value != NULL) printf(" \\fI%s\\fR", option->value);
    if (option->is_repeatable) printf(" (may be repeated)");
    printf("\n");
    print_roff(option->help);
    if (option->value != NULL) {
        printf("\n%s is ", option->value);
        print_roff(option->limits);
        printf(".");
    }
    printf("\n");
}

static void print_roff_examples(const cli_command *command)
{
    printf(".PP\nExamples:\n");
    for (size_t i = 0; i < command->example_count; i++) {
        printf(".PP\n.nf\n    streampool ");
        print_roff(command->examples[i].line);
        printf("\n.fi\n.RS 6\n");
        print_roff(command->examples[i].help);
        printf("\n.RE\n");
    }
}

static void print_roff_command(const cli_command *command)
{
    char synopsis[128];
    help_synopsis(command, synopsis, sizeof synopsis);
    printf(".SS ");
    print_roff(synopsis);
    printf("\n");
    print_roff(command->description);
    printf("\n");
    if (command->operand != NULL) {
        printf(".PP\n%s is ", command->operand);
        print_roff(command->operand_help);
        printf(".\n");
    }
    for (size_t i = 0; i < command->option_count; i++) print_roff_option(&command->options[i]);
    print_roff_examples(command);
}

void manual_print_page(void)
{
    printf(".\\\" Written by `streampool help --man`; a test compares the two.\n"
           ".TH STREAMPOOL 1 \"\" \"streampool %s\" \"User Commands\"\n"
           ".SH NAME\nstreampool \\- run ONNX models from any number of threads, and look into "
           "them\n"
           ".SH SYNOPSIS\n.B streampool\n\\fICOMMAND\\fR [\\fIARGUMENT\\fR]...\n"
           ".SH DESCRIPTION\n"
           "Options and operands come in any order. The value of an option is the next argument, "
           "or follows a '=', as in \\-\\-threads=8. After \\-\\- all arguments are operands.\n"
           "Every command has:\n",
           sp_version());
    for (size_t i = 0; i < sp__common_option_count; i++) print_roff_option(&sp__common_options[i]);
    printf(".SH COMMANDS\n");
    for (size_t i = 0; i < sp__command_count; i++) print_roff_command(sp__commands[i]);
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sp__exit_code_count; i++) {
        printf(".TP\n.B %d\n", sp__exit_codes[i].code);
        print_roff(sp__exit_codes[i].meaning);
        printf("\n");
    }
    printf(".SH ENVIRONMENT\nThe options of the library are variables whose names begin with "
           "STREAMPOOL_. \\fBstreampool info\\fR lists them with their values.\n");
}

/* ---- the completion ---- */

static const char *completion_kind(cli_completion completion)
{
    switch (completion) {
    case COMPLETE_FILE:
        return "files";
    case COMPLETE_FOLDER:
        return "folders";
    case COMPLETE_DEVICE:
        return "devices";
    case COMPLETE_COMMAND:
        return "commands";
    case COMPLETE_NOTHING:
        break;
    }
    return "nothing";
}

static void print_command_names(void)
{
    for (size_t i = 0; i < sp__command_count; i++) {
        printf("%s%s", i > 0 ? " " : "", sp__commands[i]->name);
    }
}

/* The completion of option values. */
static void print_value_cases(void)
{
    printf("    case \"${COMP_WORDS[1]} $previous\" in\n");
    for (size_t i = 0; i < sp__command_count; i++) {
        const cli_command *command = sp__commands[i];
        for (size_t k = 0; k < command->option_count; k++) {
            const cli_option *option = &command->options[k];
            if (option->value == NULL) continue;
            printf("    '%s %s') kind=%s ;;\n", command->name, option->name,
                   completion_kind(option->completion));
        }
    }
    printf("    esac\n");
}

static void print_command_cases(void)
{
    printf("    case \"${COMP_WORDS[1]}\" in\n");
    for (size_t i = 0; i < sp__command_count; i++) {
        const cli_command *command = sp__commands[i];
        const cli_completion completion =
            command->operand != NULL ? command->operand_completion : COMPLETE_NOTHING;
        printf("    %s)\n        operands=%s\n        options='", command->name,
               completion_kind(completion));
        for (size_t k = 0; k < command->option_count; k++) {
            printf("%s ", command->options[k].name);
        }
        for (size_t k = 0; k < sp__common_option_count; k++) {
            printf("%s%s", k > 0 ? " " : "", sp__common_options[k].name);
        }
        printf("'\n        ;;\n");
    }
    printf("    esac\n");
}

static void print_kinds(void)
{
    printf("# KIND WORD: the words of a kind that begin with WORD.\n"
           "_streampool_words()\n{\n"
           "    case $1 in\n"
           "    files) compgen -f -- \"$2\" ;;\n"
           "    folders) compgen -d -- \"$2\" ;;\n"
           "    devices) compgen -W 'cpu cuda:0 null' -- \"$2\" ;;\n"
           "    commands) compgen -W '");
    print_command_names();
    printf("' -- \"$2\" ;;\n    esac\n}\n\n");
}

void manual_print_completion(void)
{
    printf(
        "# bash completion of streampool. Written by `streampool help --bash-completion`; a test "
        "compares\n# the two.\n\n");
    print_kinds();
    printf("_streampool()\n{\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local kind= operands=nothing options=\n");
    print_value_cases();
    print_command_cases();
    printf("    # NAME=FILE: bash takes the = for a word of its own.\n"
           "    if [[ $previous == = || $word == = ]]; then\n"
           "        kind=files\n        [[ $word != = ]] || word=\n"
           "    elif ((COMP_CWORD == 1)); then\n"
           "        kind=commands options='--help --version'\n    fi\n"
           "    if [[ $word == -* && (-z $kind || $kind == commands) ]]; then\n"
           "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n"
           "    else\n"
           "        mapfile -t COMPREPLY < <(_streampool_words \"${kind:-$operands}\" \"$word\")\n"
           "    fi\n}\ncomplete -o filenames -F _streampool streampool\n");
}
