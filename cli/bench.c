/* SPDX-License-Identifier: Apache-2.0 */
/* streampool bench MODEL...: throughput and latencies of models under a rising number of
 * threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/option.h>

#include "arguments.h"
#include "bench_report.h"
#include "command.h"
#include "failure.h"
#include "interrupt.h"
#include "process.h"
#include "progress.h"
#include "sizes.h"

#define MAX_POINTS 64
#define MAX_THREADS 1024
#define MAX_MILLISECONDS 3600000
#define MAX_IN_FLIGHT 4096

typedef struct bench_arguments {
    model_arguments model; /* first; its path is unused */
    const char *paths[LOAD_MAX_SIDES];
    uint32_t path_count;
    uint32_t threads[MAX_POINTS];
    uint32_t point_count; /* 0: the default */
    uint64_t window_ms, warm_up_ms;
    uint64_t rate;
    uint32_t in_flight;   /* 0: calls that return when the run is done */
    const char *batching; /* a value of STREAMPOOL_BATCHING, or NULL */
    bool has_queues;
    bench_format format;
} bench_arguments;

/* ---- arguments ---- */

static bool take_path(void *arguments, const char *value)
{
    bench_arguments *out = arguments;
    if (value[0] == '\0') return false;
    out->paths[out->path_count++] = value;
    return true;
}

static bool take_threads(void *arguments, const char *value)
{
    bench_arguments *out = arguments;
    char *text = strdup(value);
    char *rest = text;
    bool is_good = text != NULL;
    out->point_count = 0;
    for (char *number; is_good && (number = strsep(&rest, ",")) != NULL;) {
        uint64_t threads;
        is_good = out->point_count < MAX_POINTS && number_parse(number, 1, MAX_THREADS, &threads);
        if (is_good) out->threads[out->point_count++] = (uint32_t)threads;
    }
    free(text);
    return is_good;
}

static bool take_window(void *arguments, const char *value)
{
    return number_parse(value, 1, MAX_MILLISECONDS, &((bench_arguments *)arguments)->window_ms);
}

static bool take_warm_up(void *arguments, const char *value)
{
    return number_parse(value, 0, MAX_MILLISECONDS, &((bench_arguments *)arguments)->warm_up_ms);
}

static bool take_rate(void *arguments, const char *value)
{
    return number_parse(value, 1, 1000000000, &((bench_arguments *)arguments)->rate);
}

static bool take_in_flight(void *arguments, const char *value)
{
    uint64_t count;
    if (!number_parse(value, 1, MAX_IN_FLIGHT, &count)) return false;
    ((bench_arguments *)arguments)->in_flight = (uint32_t)count;
    return true;
}

static bool take_batching(void *arguments, const char *value)
{
    bench_arguments *out = arguments;
    out->has_queues = strcmp(value, "queue") == 0;
    out->batching = out->has_queues ? "combine" : value;
    return strcmp(out->batching, "off") == 0 || strcmp(out->batching, "combine") == 0;
}

static bool take_statistics(void *arguments, const char *value)
{
    (void)value;
    ((bench_arguments *)arguments)->format.has_statistics = true;
    return true;
}

static bool take_json(void *arguments, const char *value)
{
    (void)value;
    ((bench_arguments *)arguments)->format.is_json = true;
    return true;
}

static const cli_option options[] = {
    {.name = "--threads",
     .value = "LIST",
     .limits = "up to " TEXT_OF(MAX_POINTS) " numbers from 1 to " TEXT_OF(
         MAX_THREADS) ", separated by commas",
     .help = "How many threads call each model at the same time, one point of the bench for each "
             "number; 1,2,4,8,16,31,64 unless a list is given.",
     .take = take_threads},
    {.name = "--window",
     .value = "MS",
     .limits = "a number from 1 to " TEXT_OF(MAX_MILLISECONDS),
     .help = "The length of a point in milliseconds; 2000 unless a number is given.",
     .take = take_window},
    {.name = "--warm-up",
     .value = "MS",
     .limits = "a number from 0 to " TEXT_OF(MAX_MILLISECONDS),
     .help = "How long the threads run before a point begins; 300 unless a number is given.",
     .take = take_warm_up},
    {.name = "--rate",
     .value = "N",
     .limits = "a number from 1 to 1000000000",
     .help = "Open loop: runs of each model arrive at this rate, in a Poisson process, instead of "
             "one after the other on each thread. Latencies count from the arrival.",
     .take = take_rate},
    {.name = "--in-flight",
     .value = "N",
     .limits = "a number from 1 to " TEXT_OF(MAX_IN_FLIGHT),
     .help = "Each thread submits runs and keeps so many in flight: it waits for the oldest one "
             "before it submits the next. Not with --rate.",
     .take = take_in_flight},
    {.name = "--batching",
     .value = "MODE",
     .limits = "off, combine or queue",
     .help = "off: each run is computed alone. combine: runs that wait are computed together where "
             "that is faster. queue: the same, and each model's runs go through a batch queue. "
             "STREAMPOOL_BATCHING unless a mode is given.",
     .take = take_batching},
    {.name = "--statistics",
     .help = "Print for each point how many runs waited, how long, and the sizes of the batches. "
             "JSON always has them.",
     .take = take_statistics},
    {.name = "--json", .help = "Print one JSON object per model and point.", .take = take_json},
    MODEL_OPTIONS,
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"bench model.onnx", "How the throughput changes with the number of threads."},
    {"bench model.onnx --threads 31 --rate 5000",
     "Latencies at 5,000 runs a second, served by 31 threads."},
    {"bench a.onnx b.onnx --threads 16 --json", "Two models at once, 16 threads each."},
    {"bench model.onnx --threads 1 --in-flight 64 --batching queue --statistics",
     "One thread with 64 requests in a batch queue, and the batches that were made of them."},
};

/* ---- the command ---- */

/* What the line of progress says. */
typedef struct point_progress {
    uint32_t threads;
    size_t number, count; /* of the points; the first one is 1 */
} point_progress;

static bool point_go_on(void *ctx, double share)
{
    const point_progress *point = ctx;
    progress_show("point %zu of %zu, %u threads: %.0f %%", point->number, point->count,
                  point->threads, 100 * share);
    return !is_interrupted();
}

static sp_status run_point(const bench_arguments *arguments, bench_job *job,
                           point_progress *progress)
{
    const uint32_t threads = progress->threads;
    const load_options load = {.threads = threads,
                               .warm_up_seconds = (double)arguments->warm_up_ms / 1000,
                               .window_seconds = (double)arguments->window_ms / 1000,
                               .rate = (double)arguments->rate,
                               .in_flight = arguments->in_flight,
                               .go_on = point_go_on,
                               .ctx = progress};
    if (is_interrupted()) return fail(SP_CANCELLED, "interrupted");
    const sp_status status = bench_point_run(job, &load);
    progress_clear();
    TRY(status);
    bench_report_point(&arguments->format, job, threads);
    return SP_OK;
}

/* A file that cannot be loaded is named by runner_load. */
static sp_status model_open(const bench_arguments *arguments, bench_model *model, const char *path)
{
    model->arguments = arguments->model;
    model->arguments.path = path;
    TRY(runner_load(&model->arguments, &model->runner));
    sp_status status = runner_open_inputs(&model->arguments, &model->runner);
    if (status == SP_OK) {
        if (!arguments->format.is_json) sizes_print(&model->runner.inputs);
        status = runner_run_first(&model->arguments, &model->runner);
    }
    if (status == SP_OK && arguments->has_queues) {
        status = from_library(sp_batch_queue_create(model->runner.model, NULL, &model->queue));
    }
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s: ", path);
}

static sp_status run_all(bench_arguments *arguments, bench_job *job)
{
    static const uint32_t usual[] = {1, 2, 4, 8, 16, 31, 64};
    const uint32_t *points = arguments->point_count > 0 ? arguments->threads : usual;
    const size_t count = arguments->point_count > 0 ? arguments->point_count : COUNT_OF(usual);
    if (arguments->batching != NULL) CALL(sp_set_option("BATCHING", arguments->batching));
    TRY(device_arguments_open(&arguments->model.device));
    for (uint32_t i = 0; i < arguments->path_count; i++) {
        job->count = i + 1;
        TRY(model_open(arguments, &job->models[i], arguments->paths[i]));
    }
    job->rest_bytes = process_memory_read().now_bytes;
    bench_report_head(&arguments->format, job);
    fflush(stdout);
    for (size_t p = 0; p < count; p++) {
        point_progress progress = {.threads = points[p], .number = p + 1, .count = count};
        TRY(run_point(arguments, job, &progress));
    }
    return SP_OK;
}

static bool arguments_agree(const bench_arguments *arguments, int *exit_code)
{
    if (arguments->rate == 0 || arguments->in_flight == 0) return true;
    fprintf(stderr, "streampool bench: --rate and --in-flight exclude each other: arrivals are "
                    "served by calls that return when the run is done\n");
    *exit_code = SP_EXIT_USAGE;
    return false;
}

static int bench_command(int argc, char **argv)
{
    bench_arguments arguments = {.window_ms = 2000, .warm_up_ms = 300};
    int code;
    if (arguments_parse(&sp__command_bench, argc, argv, &arguments, &code) &&
        arguments_agree(&arguments, &code)) {
        interrupt_catch();
        bench_job *job = calloc(1, sizeof *job);
        const sp_status status = job != NULL ? run_all(&arguments, job)
                                             : fail(SP_OUT_OF_MEMORY, "no memory for the bench");
        if (is_interrupted()) fprintf(stderr, "streampool bench: interrupted\n");
        else if (status != SP_OK) failure_print(status);
        for (uint32_t i = 0; job != NULL && i < job->count; i++) {
            sp_batch_queue_release(job->models[i].queue);
            runner_close(&job->models[i].runner);
        }
        free(job);
        code = status == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    model_arguments_free(&arguments.model);
    if (is_interrupted()) interrupt_exit();
    return code;
}

const cli_command sp__command_bench = {
    .name = "bench",
    .summary = "throughput and latencies of models under a rising number of threads",
    .description =
        "Runs models from a rising number of threads. Prints how long the load and the first run "
        "of each model took (with its plan) and the memory of the process after them; then for "
        "each number of threads the runs per "
        "second, their share of the best of the smaller numbers, how many runs were computed "
        "together on average, how many processors the process used (CPU time by time), the "
        "latencies that half, 99 % and 99.9 % of the runs do not "
        "exceed, and the most memory of the process so far. Each model has threads of its own; "
        "several models run at the same time. The "
        "options of inputs hold for each model. A run whose bits are not those of the model's "
        "first run is a failure. Ctrl-C ends the bench: the points before it are printed.",
    .operand = "MODEL",
    .operand_help = MODEL_OPERAND_HELP,
    .take_operand = take_path,
    .min_operands = 1,
    .max_operands = LOAD_MAX_SIDES,
    .operand_completion = COMPLETE_FILE,
    .options = options,
    .option_count = COUNT_OF(options),
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = bench_command,
};
