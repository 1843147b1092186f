/* SPDX-License-Identifier: Apache-2.0 */
/* sched_tests: self tests of the engine, then every subject through its portfolio.
 *
 *     sched_tests [--list] [--seed N] [--scale F] [NAME...]
 *     sched_tests --replay STRING NAME      prints the trace of one schedule of a subject
 *     sched_tests --expect-bug NAME         0 only if this subject, or one that lists NAME as its
 *                                           planted bug, finds a bug within 10 s */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "subject.h"

#define BUG_SECONDS 10.0

typedef struct arguments {
    bool lists;
    uint64_t seed;
    double scale;
    const char *replay;
    const char *expected_bug;
    char **names;
    int name_count;
} arguments;

/* One exploration of the portfolio. */
typedef struct exploration {
    uint32_t bit;
    sp_sched_search search;
    sp_sched_level level;
    uint32_t threads_max; /* for so many threads at most */
} exploration;

static const exploration portfolio[] = {
    {SP_RUN_BOUNDED, SP_SEARCH_BOUNDED, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_DPOR, SP_SEARCH_DPOR, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_DPOR_WEAK, SP_SEARCH_DPOR, SP_LEVEL_WEAK, 2},
    {SP_RUN_PCT, SP_SEARCH_PCT, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_WALK, SP_SEARCH_WALK, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_WALK_WEAK, SP_SEARCH_WALK, SP_LEVEL_WEAK, 2},
};

static sp_explore_options options_for(const sp_subject *subject, const exploration *e,
                                      const arguments *args)
{
    sp_explore_options options = subject->options;
    options.search = e->search;
    options.level = e->level;
    options.restores_globals = true;
    options.seed = args->seed;
    options.preemption_bound = subject->thread_count <= 2 ? 3 : 2;
    options.max_seconds = (subject->seconds > 0 ? subject->seconds : 1.0) * args->scale;
    if (e->search == SP_SEARCH_PCT || e->search == SP_SEARCH_WALK) {
        const uint64_t schedules = subject->random_schedules;
        options.max_schedules =
            (uint64_t)((double)(schedules != 0 ? schedules : 20000) * args->scale) + 1;
    }
    return options;
}

static void print_line(const sp_subject *subject, const exploration *e,
                       const sp_explore_result *result)
{
    const double seconds = result->seconds > 0 ? result->seconds : 1e-9;
    const double runs = (double)(result->schedules + result->pruned);
    const char *end = result->verdict != SP_SCHED_OK ? "stopped"
                      : result->is_exhausted         ? "exhausted"
                                                     : "limit";
    printf("%-24s %-7s %-4s %9llu schedules %8llu pruned %7.3f s %9.0f/s  %-9s %s\n", subject->name,
           sp_sched_search_name(e->search), e->level == SP_LEVEL_WEAK ? "weak" : "hb",
           (unsigned long long)result->schedules, (unsigned long long)result->pruned,
           result->seconds, runs / seconds, end, sp_sched_verdict_name(result->verdict));
}

static void print_bug(const sp_subject *subject, const sp_explore_options *options,
                      const sp_explore_result *result)
{
    char *schedule = strdup(result->schedule);
    if (schedule == NULL) return;
    sp_explore_result again;
    if (strlen(schedule) < 2000) {
        sp_explore_replay(subject->test, subject->arg, options, schedule, stdout, &again);
    } else {
        printf("verdict: %s: %s\n", sp_sched_verdict_name(result->verdict), result->message);
    }
    printf("replay with: sched_tests --replay '%s' %s\n", schedule, subject->name);
    free(schedule);
}

static bool belongs(const sp_subject *subject, const exploration *e)
{
    return (subject->skip & e->bit) == 0 && subject->thread_count <= e->threads_max;
}

static bool explore_subject(const sp_subject *subject, const arguments *args)
{
    bool is_right = true;
    for (uint32_t i = 0; i < SP_COUNT_OF(portfolio); i++) {
        const exploration *e = &portfolio[i];
        if (!belongs(subject, e)) continue;
        const sp_explore_options options = options_for(subject, e, args);
        sp_explore_result result;
        sp_explore(subject->test, subject->arg, &options, &result);
        print_line(subject, e, &result);
        if (result.verdict != SP_SCHED_OK) {
            print_bug(subject, &options, &result);
            return false;
        }
        if (subject->must_exhaust && e->bit == SP_RUN_DPOR && !result.is_exhausted &&
            args->scale >= 1) {
            printf("%s: dpor did not reach its end\n", subject->name);
            is_right = false;
        }
    }
    return is_right;
}

/* A planted bug has to show whatever the subject's usual limits are. */
static bool finds_bug(const sp_subject *subject, const arguments *args, double *seconds_left)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(portfolio) && *seconds_left > 0; i++) {
        const exploration *e = &portfolio[i];
        if (!belongs(subject, e)) continue;
        sp_explore_options options = options_for(subject, e, args);
        if (options.max_seconds > *seconds_left) options.max_seconds = *seconds_left;
        sp_explore_result result;
        sp_explore(subject->test, subject->arg, &options, &result);
        *seconds_left -= result.seconds;
        print_line(subject, e, &result);
        if (result.verdict == SP_SCHED_OK) continue;
        printf("  %s\n", result.message);
        return true;
    }
    return false;
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

static int expect_bug(const arguments *args)
{
    double seconds_left = BUG_SECONDS;
    for (uint32_t i = 0; i < sp__subject_count; i++) {
        const sp_subject *subject = &sp__subjects[i];
        if (strcmp(subject->name, args->expected_bug) != 0 &&
            !lists_bug(subject, args->expected_bug)) {
            continue;
        }
        if (finds_bug(subject, args, &seconds_left)) return 0;
    }
    printf("%s: no bug found\n", args->expected_bug);
    return 1;
}

static bool is_wanted(const arguments *args, const char *name)
{
    for (int i = 0; i < args->name_count; i++) {
        if (strcmp(args->names[i], name) == 0) return true;
    }
    return args->name_count == 0;
}

static const sp_selftest *const selftests[] = {sp__selftests_litmus, sp__selftests_verdicts,
                                               sp__selftests_search};

static void list(void)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(selftests); i++) {
        for (const sp_selftest *t = selftests[i]; t->name != NULL; t++) printf("%s\n", t->name);
    }
    for (uint32_t i = 0; i < sp__subject_count; i++) {
        const sp_subject *subject = &sp__subjects[i];
        printf("%s\t%u threads\t%s\n", subject->name, subject->thread_count,
               subject->planted != NULL ? subject->planted : "");
    }
}

static int run_all(const arguments *args)
{
    bool is_right = true;
    uint32_t run_count = 0;
    for (uint32_t i = 0; i < SP_COUNT_OF(selftests); i++) {
        for (const sp_selftest *t = selftests[i]; t->name != NULL; t++) {
            if (!is_wanted(args, t->name)) continue;
            const bool passes = t->run();
            printf("self test: %-40s %s\n", t->name, passes ? "ok" : "FAILED");
            is_right = is_right && passes;
            run_count++;
        }
    }
    for (uint32_t i = 0; i < sp__subject_count; i++) {
        if (!is_wanted(args, sp__subjects[i].name)) continue;
        is_right = explore_subject(&sp__subjects[i], args) && is_right;
        fflush(stdout);
        run_count++;
    }
    if (run_count == 0) printf("no test of this name; see --list\n");
    return is_right && run_count > 0 ? 0 : 1;
}

static int replay(const arguments *args)
{
    for (uint32_t i = 0; i < sp__subject_count && args->name_count == 1; i++) {
        const sp_subject *subject = &sp__subjects[i];
        if (strcmp(subject->name, args->names[0]) != 0) continue;
        sp_explore_options options = subject->options;
        options.restores_globals = true;
        sp_explore_result result;
        sp_explore_replay(subject->test, subject->arg, &options, args->replay, stdout, &result);
        return result.verdict == SP_SCHED_OK ? 0 : 1;
    }
    fprintf(stderr, "--replay STRING NAME: no such subject\n");
    return 2;
}

static bool parse(arguments *args, int argc, char **argv)
{
    *args = (arguments){.seed = 1, .scale = 1.0};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--list") == 0) {
            args->lists = true;
            continue;
        }
        if (i + 1 == argc) return false;
        const char *value = argv[++i];
        if (strcmp(argv[i - 1], "--seed") == 0) {
            args->seed = strtoull(value, NULL, 0);
        } else if (strcmp(argv[i - 1], "--scale") == 0) {
            args->scale = strtod(value, NULL);
        } else if (strcmp(argv[i - 1], "--replay") == 0) {
            args->replay = value;
        } else if (strcmp(argv[i - 1], "--expect-bug") == 0) {
            args->expected_bug = value;
        } else {
            return false;
        }
    }
    args->names = argv + i;
    args->name_count = argc - i;
    return args->scale > 0;
}

int main(int argc, char **argv)
{
    arguments args;
    if (!parse(&args, argc, argv)) {
        fprintf(stderr, "usage: sched_tests [--list] [--seed N] [--scale F] [NAME...]\n"
                        "       sched_tests --replay STRING NAME\n"
                        "       sched_tests --expect-bug NAME\n");
        return 2;
    }
    if (args.lists) {
        list();
        return 0;
    }
    if (args.replay != NULL) return replay(&args);
    if (args.expected_bug != NULL) return expect_bug(&args);
    return run_all(&args);
}
