/* SPDX-License-Identifier: Apache-2.0 */
#include "portfolio.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define BUG_SECONDS 20.0

/* One exploration of the portfolio. */
typedef struct exploration {
    uint32_t bit;
    sp_sched_search search;
    sp_sched_level level;
    uint32_t threads_max; /* the maximum number of threads */
} exploration;

static const exploration portfolio[] = {
    {SP_RUN_BOUNDED, SP_SEARCH_BOUNDED, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_DPOR, SP_SEARCH_DPOR, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_DPOR_WEAK, SP_SEARCH_DPOR, SP_LEVEL_WEAK, 2},
    {SP_RUN_PCT, SP_SEARCH_PCT, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_WALK, SP_SEARCH_WALK, SP_LEVEL_HB, UINT32_MAX},
    {SP_RUN_WALK_WEAK, SP_SEARCH_WALK, SP_LEVEL_WEAK, 4},
};

static bool is_random(const exploration *e)
{
    return e->search == SP_SEARCH_PCT || e->search == SP_SEARCH_WALK;
}

static const char *why_not_exhausted(const sp_subject *subject, const exploration *e)
{
    return e->level == SP_LEVEL_WEAK && subject->inexhaustible_weak != NULL
               ? subject->inexhaustible_weak
               : subject->inexhaustible;
}

/* DPOR reaches its end for two threads, or the subject states why it cannot. */
static bool must_be_exhausted(const sp_subject *subject, const exploration *e)
{
    return e->search == SP_SEARCH_DPOR && subject->thread_count <= 2 &&
           why_not_exhausted(subject, e) == NULL;
}

static sp_explore_options options_for(const sp_subject *subject, const exploration *e,
                                      const sp_portfolio_options *given)
{
    sp_explore_options options = subject->options;
    options.search = e->search;
    options.level = e->level;
    options.restores_globals = true;
    options.seed = given->seed;
    options.preemption_bound = subject->thread_count <= 2 ? 3 : 2;
    double seconds = subject->seconds > 0 ? subject->seconds : 1.0;
    if (e->search == SP_SEARCH_DPOR && subject->dpor_seconds > 0) seconds = subject->dpor_seconds;
    options.max_seconds = seconds * given->scale;
    /* It ends by itself, later on a slow machine. */
    if (must_be_exhausted(subject, e)) {
        options.max_seconds = 4 * seconds * (given->scale > 1 ? given->scale : 1);
    }
    if (is_random(e)) {
        const uint64_t schedules = subject->random_schedules;
        options.max_schedules =
            (uint64_t)((double)(schedules != 0 ? schedules : 20000) * given->scale) + 1;
    }
    return options;
}

static const char *level_name(sp_sched_level level)
{
    return level == SP_LEVEL_WEAK ? "weak" : "hb";
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
           sp_sched_search_name(e->search), level_name(e->level),
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

static bool subject_has_exploration(const sp_subject *subject, const exploration *e,
                                    const sp_portfolio_options *given)
{
    if (given->search != NULL && strcmp(given->search, sp_sched_search_name(e->search)) != 0) {
        return false;
    }
    return (subject->skip & e->bit) == 0 && subject->thread_count <= e->threads_max;
}

/* ---- the same in a fresh process ---- */

static void hash_keep(void *ctx, uint64_t hash)
{
    *(uint64_t *)ctx = hash;
}

bool sp__portfolio_repeats(const sp_subject *subject, const sp_portfolio_options *given)
{
    uint64_t hash[2] = {0, 0};
    sp_explore_result result[2];
    char *schedule = NULL;
    bool is_same = true;
    for (uint32_t i = 0; i < 2; i++) {
        sp_explore_options options = subject->options;
        options.search = SP_SEARCH_WALK;
        options.restores_globals = true;
        options.seed = given->seed;
        options.max_schedules = 1;
        options.on_trace = hash_keep;
        options.on_trace_ctx = &hash[i];
        sp_explore(subject->test, subject->arg, &options, &result[i]);
        if (i == 0) schedule = strdup(result[0].schedule);
        is_same = schedule != NULL && strcmp(schedule, result[i].schedule) == 0;
    }
    free(schedule);
    is_same = is_same && hash[0] == hash[1] && result[0].steps == result[1].steps &&
              result[0].verdict == result[1].verdict;
    if (!is_same) {
        printf(
            "%s: nondeterminism: %llu steps in the first run of the process, %llu in the same run "
            "again, or other ones\n",
            subject->name, (unsigned long long)result[0].steps,
            (unsigned long long)result[1].steps);
    }
    return is_same;
}

/* ---- one subject ---- */

/* See must_be_exhausted. */
static bool exploration_is_complete(const sp_subject *subject, const exploration *e,
                                    const sp_explore_result *result,
                                    const sp_portfolio_options *given)
{
    if (e->search != SP_SEARCH_DPOR || subject->thread_count > 2 || result->is_exhausted) {
        return true;
    }
    const char *why = why_not_exhausted(subject, e);
    if (why != NULL) {
        printf("%-24s %-7s %-4s incomplete: %s\n", subject->name, sp_sched_search_name(e->search),
               level_name(e->level), why);
        return true;
    }
    printf("%s: dpor did not reach its end; give a reason in the table (inexhaustible)\n",
           subject->name);
    return given->scale < 1;
}

bool sp__portfolio_run(const sp_subject *subject, const sp_portfolio_options *given)
{
    bool is_right = sp__portfolio_repeats(subject, given);
    if (subject->planted == NULL) {
        printf("%s: the table must name a planted bug that this subject finds\n", subject->name);
        is_right = false;
    }
    for (uint32_t i = 0; i < SP_COUNT_OF(portfolio); i++) {
        const exploration *e = &portfolio[i];
        if (!subject_has_exploration(subject, e, given)) continue;
        const sp_explore_options options = options_for(subject, e, given);
        sp_explore_result result;
        sp_explore(subject->test, subject->arg, &options, &result);
        print_line(subject, e, &result);
        if (result.verdict != SP_SCHED_OK) {
            print_bug(subject, &options, &result);
            return false;
        }
        is_right = exploration_is_complete(subject, e, &result, given) && is_right;
    }
    return is_right;
}

/* Explores once; subtracts the used time from *seconds_left. */
static bool finds_bug(const sp_subject *subject, const exploration *e,
                      const sp_portfolio_options *given, double *seconds_left)
{
    sp_explore_options options = options_for(subject, e, given);
    if (options.max_seconds > *seconds_left) options.max_seconds = *seconds_left;
    sp_explore_result result;
    sp_explore(subject->test, subject->arg, &options, &result);
    *seconds_left -= result.seconds;
    print_line(subject, e, &result);
    if (result.verdict == SP_SCHED_OK) return false;
    printf("  %s\nfound by %s: %s\n", result.message, subject->name,
           sp_sched_verdict_name(result.verdict));
    return true;
}

/* What a search finds within its time depends on the machine: the random searches continue, each
 * round with another seed. */
bool sp__portfolio_finds_bug(const sp_subject *subject, const sp_portfolio_options *given)
{
    sp_portfolio_options options = *given;
    double seconds_left = BUG_SECONDS;
    bool is_searching = true;
    for (uint32_t round = 0; is_searching; round++) {
        options.seed = given->seed + round;
        is_searching = false;
        for (uint32_t i = 0; i < SP_COUNT_OF(portfolio) && seconds_left > 0; i++) {
            const exploration *e = &portfolio[i];
            if (!subject_has_exploration(subject, e, given) || (round > 0 && !is_random(e)))
                continue;
            if (finds_bug(subject, e, &options, &seconds_left)) return true;
            is_searching = true;
        }
    }
    printf("survived %s\n", subject->name);
    return false;
}

bool sp__portfolio_replay(const sp_subject *subject, const char *schedule)
{
    sp_explore_options options = subject->options;
    options.restores_globals = true;
    sp_explore_result result;
    sp_explore_replay(subject->test, subject->arg, &options, schedule, stdout, &result);
    return result.verdict == SP_SCHED_OK;
}
