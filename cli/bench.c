/* SPDX-License-Identifier: Apache-2.0 */
/* streampool bench MODEL...: throughput and latencies of models under a rising number of
 * threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "against.h"
#include "arguments.h"
#include "bench_run.h"
#include "bench_steps.h"
#include "command.h"
#include "failure.h"
#include "interrupt.h"
#include "source.h"

#define MAX_THREADS 1024
#define MAX_MILLISECONDS 3600000
#define MAX_IN_FLIGHT 4096

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
        is_good =
            out->point_count < BENCH_MAX_POINTS && number_parse(number, 1, MAX_THREADS, &threads);
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

static bool take_per_op(void *arguments, const char *value)
{
    (void)value;
    ((bench_arguments *)arguments)->has_steps = true;
    return true;
}

static bool take_against_threads(void *arguments, const char *value)
{
    uint64_t count;
    if (!number_parse(value, 0, MAX_THREADS, &count)) return false;
    bench_arguments *out = arguments;
    out->against_threads = (uint32_t)count;
    out->has_against_threads = true;
    return true;
}

static bool take_against(void *arguments, const char *value)
{
    ((bench_arguments *)arguments)->against = value;
    return value[0] != '\0';
}

static bool take_svg(void *arguments, const char *value)
{
    ((bench_arguments *)arguments)->svg = value;
    return value[0] != '\0';
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
     .limits = "up to " TEXT_OF(BENCH_MAX_POINTS) " numbers from 1 to " TEXT_OF(
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
     .help =
         "Open loop: runs of each model arrive at this rate, in a Poisson process, instead of "
         "one after the other on each thread. Latencies count from the arrival, runs/s those that "
         "ended in the window.",
     .take = take_rate},
    {.name = "--in-flight",
     .value = "N",
     .limits = "a number from 1 to " TEXT_OF(MAX_IN_FLIGHT),
     .help = "Each thread submits runs and keeps so many in flight: it waits for the oldest one "
             "before it submits the next. Not with --rate or --against.",
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
             "JSON always has them. Not with --against.",
     .take = take_statistics},
    {.name = "--per-op",
     .help =
         "Before the points, time each step of a run on one thread for the length of a window, "
         "at most " TEXT_OF(BENCH_STEPS_RUNS) " runs: prints the median of each step, its share "
                                              "of the run, and where the op has a known number of "
                                              "multiply-adds its GFLOP/s and "
                                              "their share of what one core was measured to do; "
                                              "then the same by op type. On the "
                                              "cpu, for models that one plan computes.",
     .take = take_per_op},
    {.name = "--against",
     .value = "LIBRARY",
     .limits =
         "the file of a library: libonnxruntime.so of ONNX Runtime, version 1.13 or newer, or "
         "libopenvino_c.so of OpenVINO, version 2026.0 or newer",
     .help =
         "Run the same on another library, on its cpu. ONNX Runtime: one session, which all "
         "threads call, with one intra-op thread, so that a run uses its caller's thread alone. "
         "OpenVINO: an infer request for each thread, as many streams as threads, with one "
         "thread each, in f32, compiled for the sizes of the inputs. All its other options are as "
         "they are without a choice. Its outputs are compared first: differences "
         "above 1e-3 + 1 % are a failure. Each side has a process of its own; in a point they "
         "take turns: " TEXT_OF(AGAINST_TURNS) " windows a side share its length, each at least "
                                               "three runs long, and medians are printed. The "
                                               "ratio is streampool's runs per second "
                                               "by the other's. For one model, on the cpu.",
     .take = take_against,
     .completion = COMPLETE_FILE},
    {.name = "--against-threads",
     .value = "N",
     .limits = "a number from 0 to " TEXT_OF(MAX_THREADS),
     .help = "How many threads compute a run of the other library: 1 unless a number is given, 0 "
             "as many as it chooses.",
     .take = take_against_threads},
    {.name = "--svg",
     .value = "FILE",
     .limits = "a file, which is replaced",
     .help = "Write a picture of the points: runs per second by the number of threads, a line for "
             "each model or side.",
     .take = take_svg,
     .completion = COMPLETE_FILE},
    {.name = "--json",
     .help = "Print one JSON object per model and point, with --against per side and point, and "
             "with --per-op per step and op type.",
     .take = take_json},
    MODEL_OPTIONS,
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"bench model.onnx", "How the throughput changes with the number of threads."},
    {"bench model.onnx --against libonnxruntime.so",
     "The same beside ONNX Runtime, with the ratio for each number of threads."},
    {"bench model.onnx --threads 1 --per-op", "Where the time of a run goes."},
    {"bench model.onnx --threads 31 --rate 5000",
     "Latencies at 5,000 runs a second, served by 31 threads."},
    {"bench a.onnx b.onnx --threads 16 --json", "Two models at once, 16 threads each."},
    {"bench model.onnx --threads 1 --in-flight 64 --batching queue --statistics",
     "One thread with 64 requests in a batch queue, and the batches that were made of them."},
};

/* ---- the command ---- */

/* NULL, or what excludes --against. */
static const char *against_conflict(const bench_arguments *arguments)
{
    const char *device = arguments->model.device.device;
    if (arguments->in_flight > 0) return "--in-flight: runs of other libraries are calls";
    if (arguments->format.has_statistics) return "--statistics: other libraries have none";
    if (arguments->path_count > 1) return "several models: one is compared";
    if (device != NULL && strcmp(device, "cpu") != 0) return "--device: the cpu is compared";
    if (is_standard_input(arguments->paths[0])) return "standard input: both sides read the model";
    return NULL;
}

static bool arguments_agree(const bench_arguments *arguments, int *exit_code)
{
    const char *conflict = arguments->against != NULL ? against_conflict(arguments) : NULL;
    *exit_code = SP_EXIT_USAGE;
    if (conflict != NULL) {
        fprintf(stderr, "streampool bench: --against does not go with %s\n", conflict);
        return false;
    }
    if (arguments->rate > 0 && arguments->in_flight > 0) {
        fprintf(stderr, "streampool bench: --rate and --in-flight exclude each other: arrivals are "
                        "served by calls that return when the run is done\n");
        return false;
    }
    if (arguments->has_against_threads && arguments->against == NULL) {
        fprintf(stderr, "streampool bench: --against-threads is of the library that --against "
                        "names, and there is none\n");
        return false;
    }
    return true;
}

static void points_default(bench_arguments *arguments)
{
    static const uint32_t usual[] = {1, 2, 4, 8, 16, 31, 64};
    if (arguments->point_count > 0) return;
    memcpy(arguments->threads, usual, sizeof usual);
    arguments->point_count = COUNT_OF(usual);
}

static sp_status bench_alone(bench_arguments *arguments)
{
    bench_job *job = calloc(1, sizeof *job);
    if (job == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the bench");
    const sp_status status = bench_run(arguments, job);
    bench_job_close(job);
    free(job);
    return status;
}

/* The picture has the points before a failure or Ctrl-C, too. */
static sp_status bench_drawn(bench_arguments *arguments)
{
    char message[FAILURE_BYTES];
    if (arguments->svg != NULL) TRY(bench_picture_open(&arguments->picture, arguments->svg));
    const sp_status status =
        arguments->against != NULL ? against_run(arguments) : bench_alone(arguments);
    snprintf(message, sizeof message, "%s", status != SP_OK ? failure_message() : "");
    const sp_status of_picture = bench_picture_close(&arguments->picture);
    return status == SP_OK ? of_picture : fail(status, "%s", message);
}

static int bench_command(int argc, char **argv)
{
    bench_arguments arguments = {.window_ms = 2000, .warm_up_ms = 300, .against_threads = 1};
    int code;
    if (arguments_parse(&sp__command_bench, argc, argv, &arguments, &code) &&
        arguments_agree(&arguments, &code)) {
        interrupt_catch();
        points_default(&arguments);
        const sp_status status = bench_drawn(&arguments);
        if (is_interrupted()) fprintf(stderr, "streampool bench: interrupted\n");
        else if (status != SP_OK) failure_print(status);
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
