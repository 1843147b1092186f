/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: run until a bug is found or the search or its limits end. */
#include "explore.h"

#include <string.h>
#include <time.h>

#include "strategy.h"

#define RUNS_BETWEEN_CLOCKS 64u /* reading the clock costs as much as several runs */

/* Processor time of this process, so that limits do not depend on other load. */
static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const sp_strategy *search_start(sp_sched_search search)
{
    switch (search) {
    case SP_SEARCH_DPOR:
        return sp__dpor_start();
    case SP_SEARCH_PCT:
        return sp__pct_start();
    case SP_SEARCH_WALK:
        return sp__walk_start();
    default:
        return sp__bounded_start();
    }
}

static void result_add_run(sp_explore_result *result)
{
    const sp_engine *engine = &sp__engine;
    result->steps += engine->step;
    if (engine->is_pruned) {
        result->pruned++;
        return;
    }
    result->schedules++;
    if (engine->verdict == SP_SCHED_OK && engine->options.on_trace != NULL) {
        engine->options.on_trace(engine->options.on_trace_ctx, sp__deps_trace_hash());
    }
}

static bool is_at_limit(const sp_explore_result *result, double start)
{
    const sp_explore_options *options = &sp__engine.options;
    const uint64_t runs = result->schedules + result->pruned;
    if (options->max_schedules != 0 && runs >= options->max_schedules) return true;
    if (options->max_seconds <= 0 || runs % RUNS_BETWEEN_CLOCKS != 0) return false;
    return seconds_now() - start >= options->max_seconds;
}

static void result_fill(sp_explore_result *result, double start)
{
    result->seconds = seconds_now() - start;
    result->verdict = sp__engine.verdict;
    memcpy(result->message, sp__engine.message, sizeof result->message);
    result->schedule = sp__schedule_string();
}

void sp_explore(sp_sched_test test, void *arg, const sp_explore_options *options,
                sp_explore_result *result)
{
    *result = (sp_explore_result){0};
    sp__engine_setup(test, arg, options);
    sp__engine.strategy = search_start(sp__engine.options.search);
    const double start = seconds_now();
    for (;;) {
        sp__engine_run_once();
        result_add_run(result);
        if (sp__engine.verdict != SP_SCHED_OK) break;
        if (!sp__engine.strategy->advance()) {
            result->is_exhausted = true;
            break;
        }
        if (is_at_limit(result, start)) break;
    }
    result_fill(result, start);
}

void sp_explore_replay(sp_sched_test test, void *arg, const sp_explore_options *options,
                       const char *schedule, FILE *trace, sp_explore_result *result)
{
    *result = (sp_explore_result){0};
    sp_explore_options changed = options != NULL ? *options : (sp_explore_options){0};
    changed.search = SP_SEARCH_WALK; /* unused: the string gives the choices */
    changed.on_trace = NULL;
    uint32_t count = 0;
    const uint8_t *choices = sp__schedule_parse(schedule, &changed, &count);
    sp__engine_setup(test, arg, &changed);
    if (choices == NULL) {
        result->verdict = SP_SCHED_NONDETERMINISM;
        snprintf(result->message, sizeof result->message, "this is not a schedule string");
        result->schedule = "";
        return;
    }
    sp__engine.strategy = sp__replay_start(choices, count);
    sp__engine.is_tracing = trace != NULL;
    const double start = seconds_now();
    sp__engine_run_once();
    result_add_run(result);
    result_fill(result, start);
    if (trace != NULL) sp__trace_print(trace, result);
}

const char *sp_sched_verdict_name(sp_sched_verdict verdict)
{
    static const char *const names[] = {
#define SP_SCHED_VERDICT_NAME(code, name) name,
        SP_SCHED_VERDICTS(SP_SCHED_VERDICT_NAME)
#undef SP_SCHED_VERDICT_NAME
    };
    return (uint32_t)verdict < SP_COUNT_OF(names) ? names[verdict] : "unknown";
}

const char *sp_sched_search_name(sp_sched_search search)
{
    static const char *const names[] = {"bounded", "dpor", "pct", "walk"};
    return (uint32_t)search < SP_COUNT_OF(names) ? names[search] : "unknown";
}
