/* SPDX-License-Identifier: Apache-2.0 */
/* streampool bench MODEL...: throughput and latencies of models under a rising number of
 * threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "command.h"
#include "failure.h"
#include "load.h"
#include "runner.h"
#include "sizes.h"
#include "text.h"

#define MAX_POINTS 64
#define MAX_THREADS 1024
#define MAX_MILLISECONDS 3600000

typedef struct bench_arguments {
    model_arguments model; /* first; its path is unused */
    const char *paths[LOAD_MAX_SIDES];
    uint32_t path_count;
    uint32_t threads[MAX_POINTS];
    uint32_t point_count; /* 0: the default */
    uint64_t window_ms, warm_up_ms;
    uint64_t rate;
    bool is_json;
} bench_arguments;

typedef struct bench_model {
    model_arguments arguments;
    model_runner runner;
    sp_host_tensor **outputs;    /* by thread */
    double best;                 /* highest rate of the points so far */
    sp_model_info before, after; /* a point */
} bench_model;

typedef struct bench_job {
    bench_model models[LOAD_MAX_SIDES];
    load_result results[LOAD_MAX_SIDES];
    uint32_t count;
    double best; /* of all models together */
} bench_job;

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

static bool take_json(void *arguments, const char *value)
{
    (void)value;
    ((bench_arguments *)arguments)->is_json = true;
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
    {.name = "--json", .help = "Print one JSON object per model and point.", .take = take_json},
    MODEL_OPTIONS,
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"bench model.onnx", "How the throughput changes with the number of threads."},
    {"bench model.onnx --threads 31 --rate 5000",
     "Latencies at 5,000 runs a second, served by 31 threads."},
    {"bench a.onnx b.onnx --threads 16 --json", "Two models at once, 16 threads each."},
};

/* ---- points ---- */

static sp_status call_model(void *ctx, uint32_t thread)
{
    const bench_model *model = ctx;
    return runner_run(&model->runner, model->outputs[thread]);
}

static sp_status outputs_create(bench_job *job, uint32_t threads)
{
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        model->outputs = calloc(threads, sizeof(sp_host_tensor *));
        if (model->outputs == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
        for (uint32_t i = 0; i < threads; i++) {
            TRY(runner_outputs_create(&model->runner, &model->outputs[i]));
        }
    }
    return SP_OK;
}

static void outputs_free(bench_job *job, uint32_t threads)
{
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        for (uint32_t i = 0; model->outputs != NULL && i < threads; i++) {
            runner_outputs_free(&model->runner, model->outputs[i]);
        }
        free(model->outputs);
        model->outputs = NULL;
    }
}

/* The last run of each thread has the bits of the first run. A thread may have had no arrival. */
static sp_status outputs_check(const bench_job *job, uint32_t threads)
{
    for (uint32_t m = 0; m < job->count; m++) {
        const bench_model *model = &job->models[m];
        for (uint32_t i = 0; i < threads; i++) {
            const bool has_run =
                model->runner.output_count > 0 && model->outputs[i][0].dtype != SP_DTYPE_NONE;
            if (!has_run || runner_is_equal(&model->runner, model->outputs[i])) continue;
            return fail(SP_INTERNAL, "%s: a run differs in bits from the first run",
                        model->arguments.path);
        }
    }
    return SP_OK;
}

/* ---- output ---- */

/* A text as a JSON string. */
static void print_json_text(const char *text)
{
    putchar('"');
    for (const char *at = text; *at != '\0'; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\') printf("\\%c", c);
        else if (c < 0x20) printf("\\u%04x", c);
        else putchar(c);
    }
    putchar('"');
}

static double microseconds(uint64_t ns)
{
    return (double)ns / 1000;
}

/* One row of output. */
typedef struct bench_row {
    const char *model;
    uint32_t threads;
    const load_result *result;
    double share; /* of the best rate of the points before */
    double merge; /* runs that were computed together, on average */
} bench_row;

static void print_row_json(const bench_row *row)
{
    const load_result *result = row->result;
    const latencies *all = &result->latencies;
    printf("{\"model\":");
    print_json_text(row->model);
    printf(",\"threads\":%u,\"per_second\":%.1f,\"share_of_best\":%.3f,\"runs_per_batch\":%.2f",
           row->threads, result->per_second, row->share, row->merge);
    printf(",\"runs\":%llu,\"missed\":%llu", (unsigned long long)all->count,
           (unsigned long long)result->missed);
    printf(",\"mean_us\":%.1f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f}\n",
           all->count > 0 ? microseconds(all->sum_ns) / (double)all->count : 0,
           microseconds(latencies_percentile(all, 0.5)),
           microseconds(latencies_percentile(all, 0.99)),
           microseconds(latencies_percentile(all, 0.999)), microseconds(all->max_ns));
}

static void print_head(void)
{
    printf("%7s %12s %8s %7s %11s %11s %11s %11s  %s\n", "threads", "runs/s", "of best", "batch",
           "p50 us", "p99 us", "p99.9 us", "max us", "model");
}

static void print_row_text(const bench_row *row)
{
    const load_result *result = row->result;
    const latencies *all = &result->latencies;
    printf("%7u %12.1f %8.2f %7.1f %11.1f %11.1f %11.1f %11.1f  %s", row->threads,
           result->per_second, row->share, row->merge, microseconds(latencies_percentile(all, 0.5)),
           microseconds(latencies_percentile(all, 0.99)),
           microseconds(latencies_percentile(all, 0.999)), microseconds(all->max_ns),
           show_name(row->model).text);
    if (result->missed > 0) {
        printf("  (%llu arrivals not served)", (unsigned long long)result->missed);
    }
    printf("\n");
}

/* `best`: the highest rate of the points before; the rate as a share of it. */
static double share_of_best(double *best, double rate)
{
    const double share = *best > 0 ? rate / *best : 1;
    if (rate > *best) *best = rate;
    return share;
}

static void info_add(sp_model_info *sum, const sp_model_info *info)
{
    sum->runs += info->runs;
    sum->batches += info->batches;
    sum->batched_runs += info->batched_runs;
}

/* Runs of the point by how many times the model was computed for them. */
static double runs_per_batch(const sp_model_info *before, const sp_model_info *after)
{
    const double runs = (double)(after->runs - before->runs);
    const double merged = (double)(after->batched_runs - before->batched_runs);
    const double batches = (double)(after->batches - before->batches);
    return runs > 0 ? runs / (runs - merged + batches) : 1;
}

static void print_point(const bench_arguments *arguments, bench_job *job, uint32_t threads)
{
    load_result total = {0};
    sp_model_info before = {0}, after = {0};
    for (uint32_t m = 0; m < job->count; m++) {
        bench_model *model = &job->models[m];
        info_add(&before, &model->before);
        info_add(&after, &model->after);
        const load_result *result = &job->results[m];
        const bench_row row = {.model = model->arguments.path,
                               .threads = threads,
                               .result = result,
                               .share = share_of_best(&model->best, result->per_second),
                               .merge = runs_per_batch(&model->before, &model->after)};
        if (arguments->is_json) print_row_json(&row);
        else print_row_text(&row);
        latencies_merge(&total.latencies, &result->latencies);
        total.per_second += result->per_second;
        total.missed += result->missed;
    }
    if (job->count > 1 && !arguments->is_json) {
        print_row_text(&(bench_row){.model = "all",
                                    .threads = threads,
                                    .result = &total,
                                    .share = share_of_best(&job->best, total.per_second),
                                    .merge = runs_per_batch(&before, &after)});
    }
    fflush(stdout);
}

/* ---- the command ---- */

static sp_status run_point(const bench_arguments *arguments, bench_job *job, uint32_t threads)
{
    const load_options load = {.threads = threads,
                               .warm_up_seconds = (double)arguments->warm_up_ms / 1000,
                               .window_seconds = (double)arguments->window_ms / 1000,
                               .rate = (double)arguments->rate};
    load_side sides[LOAD_MAX_SIDES];
    for (uint32_t m = 0; m < job->count; m++) {
        sides[m] = (load_side){.call = call_model, .ctx = &job->models[m]};
    }
    sp_status status = outputs_create(job, threads);
    for (uint32_t m = 0; status == SP_OK && m < job->count; m++) {
        status = sp_model_get_info(job->models[m].runner.model, &job->models[m].before);
    }
    if (status == SP_OK) status = load_run(&load, sides, job->count, job->results);
    for (uint32_t m = 0; status == SP_OK && m < job->count; m++) {
        status = sp_model_get_info(job->models[m].runner.model, &job->models[m].after);
    }
    if (status == SP_OK) status = outputs_check(job, threads);
    outputs_free(job, threads);
    if (status == SP_OK) print_point(arguments, job, threads);
    return status;
}

/* A file that cannot be loaded is named by runner_load. */
static sp_status model_open(const bench_arguments *arguments, bench_model *model, const char *path)
{
    model->arguments = arguments->model;
    model->arguments.path = path;
    TRY(runner_load(&model->arguments, &model->runner));
    sp_status status = runner_open_inputs(&model->arguments, &model->runner);
    if (status == SP_OK) {
        if (!arguments->is_json) sizes_print(&model->runner.inputs);
        status = runner_run_first(&model->arguments, &model->runner);
    }
    return status == SP_OK ? SP_OK : fail_prefix(status, "%s: ", path);
}

static sp_status run_all(bench_arguments *arguments, bench_job *job)
{
    static const uint32_t usual[] = {1, 2, 4, 8, 16, 31, 64};
    const uint32_t *points = arguments->point_count > 0 ? arguments->threads : usual;
    const size_t count = arguments->point_count > 0 ? arguments->point_count : COUNT_OF(usual);
    TRY(device_arguments_open(&arguments->model.device));
    for (uint32_t i = 0; i < arguments->path_count; i++) {
        job->count = i + 1;
        TRY(model_open(arguments, &job->models[i], arguments->paths[i]));
    }
    if (!arguments->is_json) print_head();
    for (size_t p = 0; p < count; p++) TRY(run_point(arguments, job, points[p]));
    return SP_OK;
}

static int bench_command(int argc, char **argv)
{
    bench_arguments arguments = {.window_ms = 2000, .warm_up_ms = 300};
    int code;
    if (arguments_parse(&sp__command_bench, argc, argv, &arguments, &code)) {
        bench_job *job = calloc(1, sizeof *job);
        const sp_status status = job != NULL ? run_all(&arguments, job)
                                             : fail(SP_OUT_OF_MEMORY, "no memory for the bench");
        if (status != SP_OK) failure_print(status);
        for (uint32_t i = 0; job != NULL && i < job->count; i++) {
            runner_close(&job->models[i].runner);
        }
        free(job);
        code = status == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    model_arguments_free(&arguments.model);
    return code;
}

const cli_command sp__command_bench = {
    .name = "bench",
    .summary = "throughput and latencies of models under a rising number of threads",
    .description =
        "Runs models from a rising number of threads. Prints for each number the runs per "
        "second, their share of the best of the smaller numbers, how many runs were computed "
        "together on average, and the latencies that half, 99 % and 99.9 % of the runs do not "
        "exceed. Each model has threads of its own; several models run at the same time. The "
        "options of inputs hold for each model. A run whose bits are not those of the model's "
        "first run is a failure.",
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
