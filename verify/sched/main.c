/* SPDX-License-Identifier: Apache-2.0 */
/* sched_tests: self tests of the engine, then every subject through its portfolio.
 *
 *     sched_tests [--list] [--seed N] [--scale F] [--jobs N] [--search NAME] [--fail-fast]
 * [NAME...] sched_tests --replay STRING NAME      prints the trace of one schedule of a subject
 *     sched_tests --plant BUG [NAME...]     with this planted bug: 0 only if each of these
 *                                           subjects finds it; default: the subjects that list it
 *
 * Each test runs in its own process, with fixed options whatever the environment is: so its
 * behaviour is the same alone, beside others, and when its schedule is replayed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/macros.h"
#include "portfolio.h"

#define JOBS_MAX 64

extern char **environ;

typedef struct arguments {
    bool lists;
    bool fails_fast;
    sp_portfolio_options portfolio;
    uint32_t jobs;
    const char *replay;
    const char *plant;
    char **names;
    int name_count;
} arguments;

/* ---- planted bugs ---- */

static const char *planted; /* NULL: none */

int sp__is_planted(const char *name)
{
    return SP_UNLIKELY(planted != NULL) && strcmp(planted, name) == 0;
}

static bool lists_bug(const sp_subject *subject, const char *bug)
{
    const size_t length = strlen(bug);
    for (const char *at = subject->planted; at != NULL && *at != '\0';) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, bug, length) == 0) return true;
        at += word;
        at += strspn(at, " ");
    }
    return false;
}

/* ---- tests and subjects ---- */

/* A self test or a subject. */
typedef struct item {
    const sp_selftest *selftest;
    const sp_subject *subject;
} item;

#define MAX_SELFTESTS 256u
static const sp_selftest *const selftests[] = {sp__selftests_litmus, sp__selftests_verdicts,
                                               sp__selftests_search, sp__selftests_random};

static bool is_named(const arguments *args, const char *name)
{
    for (int i = 0; i < args->name_count; i++) {
        if (strcmp(args->names[i], name) == 0) return true;
    }
    return false;
}

static bool is_wanted(const arguments *args, const sp_subject *subject)
{
    if (args->name_count > 0) return is_named(args, subject->name);
    return args->plant == NULL || lists_bug(subject, args->plant);
}

static item *wanted_items(const arguments *args, uint32_t *count)
{
    uint32_t used = 0;
    uint32_t most = MAX_SELFTESTS;
    while (sp__subject_at(most - MAX_SELFTESTS) != NULL) most++;
    item *items = malloc(most * sizeof *items);
    if (items == NULL) abort();
    for (uint32_t i = 0; i < SP_COUNT_OF(selftests) && args->plant == NULL; i++) {
        for (const sp_selftest *t = selftests[i]; t->name != NULL; t++) {
            if (args->name_count > 0 && !is_named(args, t->name)) continue;
            items[used++] = (item){.selftest = t};
        }
    }
    const sp_subject *subject;
    for (uint32_t i = 0; (subject = sp__subject_at(i)) != NULL; i++) {
        if (is_wanted(args, subject)) items[used++] = (item){.subject = subject};
    }
    *count = used;
    return items;
}

static bool run_item(const item *what, const arguments *args)
{
    if (what->selftest != NULL) {
        const bool passes = what->selftest->run();
        printf("self test: %-40s %s\n", what->selftest->name, passes ? "ok" : "FAILED");
        return passes;
    }
    return args->plant != NULL ? sp__portfolio_finds_bug(what->subject, &args->portfolio)
                               : sp__portfolio_run(what->subject, &args->portfolio);
}

/* ---- one process per test ---- */

typedef struct child {
    pid_t pid; /* 0: has ended */
    FILE *output;
    bool is_right;
} child;

static void start_child(child *c, const item *what, const arguments *args)
{
    *c = (child){.output = tmpfile()};
    if (c->output == NULL) abort();
    fflush(NULL);
    c->pid = fork();
    if (c->pid < 0) abort();
    if (c->pid > 0) return;
    if (dup2(fileno(c->output), STDOUT_FILENO) < 0) abort();
    const bool is_right = run_item(what, args);
    fflush(NULL);
    _exit(is_right ? 0 : 1);
}

static void child_note_end(child *children, uint32_t count)
{
    int status;
    const pid_t pid = wait(&status);
    if (pid < 0) abort();
    for (uint32_t i = 0; i < count; i++) {
        if (children[i].pid != pid) continue;
        children[i].pid = 0;
        children[i].is_right = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
}

static bool print_child(const child *c, const item *what)
{
    char bytes[4096];
    size_t got;
    if (fseek(c->output, 0, SEEK_SET) != 0) abort();
    while ((got = fread(bytes, 1, sizeof bytes, c->output)) > 0) fwrite(bytes, 1, got, stdout);
    fclose(c->output);
    if (!c->is_right && what->subject != NULL) printf("%s: FAILED\n", what->subject->name);
    fflush(stdout);
    return c->is_right;
}

/* Prints results in the order of the items. */
static bool run_items(const item *items, uint32_t count, const arguments *args)
{
    bool is_right = true;
    uint32_t printed = 0, running = 0;
    child *children = calloc(count + 1, sizeof *children); /* not NULL for no items either */
    if (children == NULL) abort();
    for (uint32_t started = 0; printed < count;) {
        if (args->fails_fast && !is_right) count = started; /* running ones still end */
        if (printed == count) break;
        if (running < args->jobs && started < count) {
            start_child(&children[started], &items[started], args);
            started++;
            running++;
            continue;
        }
        child_note_end(children, started);
        running--;
        while (printed < started && children[printed].pid == 0) {
            is_right = print_child(&children[printed], &items[printed]) && is_right;
            printed++;
        }
    }
    free(children);
    return is_right;
}

/* ---- commands ---- */

static void print_list(void)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(selftests); i++) {
        for (const sp_selftest *t = selftests[i]; t->name != NULL; t++) printf("%s\n", t->name);
    }
    const sp_subject *subject;
    for (uint32_t i = 0; (subject = sp__subject_at(i)) != NULL; i++) {
        printf("%s\t%u threads\t%s\n", subject->name, subject->thread_count,
               subject->planted != NULL ? subject->planted : "");
    }
}

static int run_wanted(const arguments *args)
{
    uint32_t count;
    item *items = wanted_items(args, &count);
    if (count == 0) printf("no test of this name: see --list\n");
    const bool is_right = run_items(items, count, args) && count > 0;
    free(items);
    return is_right ? 0 : 1;
}

static int replay_subject(const arguments *args)
{
    const sp_subject *subject;
    for (uint32_t i = 0; args->name_count == 1 && (subject = sp__subject_at(i)) != NULL; i++) {
        if (strcmp(subject->name, args->names[0]) != 0) continue;
        return sp__portfolio_replay(subject, args->replay) ? 0 : 1;
    }
    fprintf(stderr, "--replay STRING NAME: give the name of one subject, see --list\n");
    return 2;
}

/* Fixes the library's options before the first run: they are read in the runs, and a variable set
 * in one run would remain for the next. */
static void environment_fix(void)
{
    static const char prefix[] = "STREAMPOOL_";
    for (char **at = environ; *at != NULL;) {
        char name[128];
        const size_t length = strcspn(*at, "=");
        if (strncmp(*at, prefix, sizeof prefix - 1) != 0 || length >= sizeof name) {
            at++;
            continue;
        }
        memcpy(name, *at, length);
        name[length] = '\0';
        unsetenv(name); /* removes this entry */
    }
    setenv("STREAMPOOL_STREAMS", "5", 1);
    setenv("STREAMPOOL_CPU_WORKERS", "1", 1);
}

static bool parse_value(arguments *args, const char *option, const char *value)
{
    if (strcmp(option, "--seed") == 0) {
        args->portfolio.seed = strtoull(value, NULL, 0);
    } else if (strcmp(option, "--scale") == 0) {
        args->portfolio.scale = strtod(value, NULL);
    } else if (strcmp(option, "--jobs") == 0) {
        args->jobs = (uint32_t)strtoul(value, NULL, 0);
    } else if (strcmp(option, "--search") == 0) {
        args->portfolio.search = value;
    } else if (strcmp(option, "--replay") == 0) {
        args->replay = value;
    } else if (strcmp(option, "--plant") == 0) {
        args->plant = value;
    } else {
        return false;
    }
    return true;
}

static bool arguments_parse(arguments *args, int argc, char **argv)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *args = (arguments){.portfolio = {.seed = 1, .scale = 1.0},
                        .jobs = cores > 0 && cores < JOBS_MAX ? (uint32_t)cores : JOBS_MAX};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        args->lists = args->lists || strcmp(argv[i], "--list") == 0;
        args->fails_fast = args->fails_fast || strcmp(argv[i], "--fail-fast") == 0;
        if (strcmp(argv[i], "--list") == 0 || strcmp(argv[i], "--fail-fast") == 0) continue;
        if (i + 1 == argc || !parse_value(args, argv[i], argv[i + 1])) return false;
        i++;
    }
    args->names = argv + i;
    args->name_count = argc - i;
    return args->portfolio.scale > 0 && args->jobs > 0 && args->jobs <= JOBS_MAX;
}

int main(int argc, char **argv)
{
    arguments args;
    if (!arguments_parse(&args, argc, argv)) {
        fprintf(stderr,
                "usage: sched_tests [--list] [--seed N] [--scale F] [--jobs N] [--search NAME] "
                "[NAME...]\n"
                "       sched_tests --replay STRING NAME\n"
                "       sched_tests --plant BUG [NAME...]\n");
        return 2;
    }
    environment_fix();
    planted = args.plant;
    if (args.lists) {
        print_list();
        return 0;
    }
    if (args.replay != NULL) return replay_subject(&args);
    return run_wanted(&args);
}
