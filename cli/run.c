/* SPDX-License-Identifier: Apache-2.0 */
/* streampool run MODEL: runs a model from several threads at the same time, and prints the
 * throughput and whether every run gave the same bits. primitive: threads and clock of the
 * operating system, as in a user's program. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <streampool/device.h>
#include <streampool/model.h>

#include "arguments.h"
#include "command.h"
#include "failure.h"
#include "outputs.h"
#include "runner.h"
#include "sizes.h"
#include "tensors.h"
#include "text.h"

#define MAX_THREADS 1024
#define MAX_REPEAT 4294967295

typedef struct run_arguments {
    model_arguments model; /* first */
    text_list outputs;     /* NAME=FILE, or FILE.npz */
    const char *output_folder;
    uint64_t threads;
    uint64_t repeat;
} run_arguments;

typedef struct run_job {
    model_runner runner;
    uint64_t repeat;
    atomic_uint failures;
    atomic_uint differing;
    char message[FAILURE_BYTES]; /* of the first failure; written by the thread that raised
                                    `failures` from 0 */
} run_job;

/* ---- arguments ---- */

static bool take_output(void *arguments, const char *value)
{
    const bool is_good = has_name_and_value(value) || text_ends_in(value, ".npz");
    return is_good && text_list_add(&((run_arguments *)arguments)->outputs, value);
}

static bool take_output_folder(void *arguments, const char *value)
{
    ((run_arguments *)arguments)->output_folder = value;
    return value[0] != '\0';
}

static bool take_threads(void *arguments, const char *value)
{
    return number_parse(value, 1, MAX_THREADS, &((run_arguments *)arguments)->threads);
}

static bool take_repeat(void *arguments, const char *value)
{
    return number_parse(value, 1, MAX_REPEAT, &((run_arguments *)arguments)->repeat);
}

static const cli_option options[] = {
    MODEL_OPTIONS,
    {.name = "--output",
     .value = "NAME=FILE",
     .limits = "an output's name and a file named " WRITABLE_FILES
               "; or FILE.npz alone, an archive of all outputs",
     .help = "Write an output of the first run to a file. An existing file is replaced and keeps "
             "its mode. Outputs with the same .npz file share it.",
     .take = take_output,
     .completion = COMPLETE_FILE,
     .is_repeatable = true},
    {.name = "--output-dir",
     .value = "DIR",
     .limits = "a folder, which is created if it does not exist",
     .help = "Write all outputs of the first run, each to DIR/NAME.npy; bf16, which NumPy does not "
             "have, to DIR/NAME.pb.",
     .take = take_output_folder,
     .completion = COMPLETE_FOLDER},
    {.name = "--threads",
     .value = "N",
     .limits = "a number from 1 to " TEXT_OF(MAX_THREADS),
     .help = "How many threads run the model at the same time; 1 unless a number is given.",
     .take = take_threads},
    {.name = "--repeat",
     .value = "K",
     .limits = "a number from 1 to " TEXT_OF(MAX_REPEAT),
     .help = "How often each thread runs the model; 1 unless a number is given.",
     .take = take_repeat},
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"run model.onnx --threads 8 --repeat 100",
     "Eight threads run the model on generated inputs; prints runs per second, and whether all "
     "runs gave the same bits."},
    {"run model.onnx --input image=cat.npy --output scores=scores.npy",
     "Runs the model on a file and writes a file."},
    {"run model.onnx --shape image=1x3x224x224 --seed 7 --output-dir out",
     "Generates an input of this shape and writes all outputs."},
    {"run - --dim batch=4 <model.onnx", "Reads the model from standard input."},
};

/* ---- threads ---- */

static void job_note_failure(run_job *job)
{
    if (atomic_fetch_add(&job->failures, 1) != 0) return;
    snprintf(job->message, sizeof job->message, "%s", failure_message());
}

static void *run_thread(void *arg)
{
    run_job *job = arg;
    sp_host_tensor *outputs = NULL;
    if (runner_outputs_create(&job->runner, &outputs) != SP_OK) job_note_failure(job);
    for (uint64_t i = 0; i < job->repeat && atomic_load(&job->failures) == 0; i++) {
        if (runner_run(&job->runner, outputs) != SP_OK) {
            job_note_failure(job);
        } else if (!runner_is_equal(&job->runner, outputs)) {
            atomic_fetch_add(&job->differing, 1);
        }
    }
    runner_outputs_free(&job->runner, outputs);
    return NULL;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static sp_status run_threads(run_job *job, uint32_t count, double *seconds)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    if (threads == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %u threads", count);
    const double start = seconds_now();
    uint32_t started = 0;
    int error = 0;
    while (started < count && error == 0) {
        error = pthread_create(&threads[started], NULL, run_thread, job);
        if (error == 0) started++;
    }
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    *seconds = seconds_now() - start;
    free(threads);
    if (error == 0) return SP_OK;
    return fail(SP_EXHAUSTED,
                "the system refused to start thread sp-run (error %d): raise its limit of threads",
                error);
}

/* ---- the command ---- */

static void print_cpu_steps(sp_model model, const sp_model_info *info)
{
    sp_model_cpu_op op;
    if (info->cpu_step_count == 0) return;
    printf("%u of %u steps on the cpu", info->cpu_step_count, info->step_count);
    for (uint32_t i = 0; sp_model_get_cpu_op(model, i, &op) == SP_OK; i++) {
        printf("%s %s %u", i == 0 ? ":" : ",", op.name, op.step_count);
    }
    printf("; a run has %u segments\n", info->segment_count);
}

static sp_status print_outputs(const model_runner *runner)
{
    for (uint32_t i = 0; i < runner->output_count; i++) {
        const sp_host_tensor *output = &runner->expected[i];
        sp_port port;
        CALL(sp_model_get_output(runner->model, i, &port));
        printf("output %s: %s %s\n", show_name(port.name).text, sp_dtype_name(output->dtype),
               show_shape(output->rank, output->shape).text);
    }
    return SP_OK;
}

/* Prints the results of all runs. */
static sp_status report_runs(const run_arguments *arguments, run_job *job, double seconds)
{
    sp_model_info info;
    CALL(sp_model_get_info(job->runner.model, &info));
    const uint64_t runs = arguments->threads * arguments->repeat;
    TRY(print_outputs(&job->runner));
    print_cpu_steps(job->runner.model, &info);
    printf("%u threads, %llu runs, %.1f runs/s, at most %u at once, %u contexts\n",
           (unsigned)arguments->threads, (unsigned long long)runs, (double)runs / seconds,
           info.most_in_flight, info.context_count);
    const uint32_t differing = atomic_load(&job->differing);
    if (differing > 0)
        return fail(SP_INTERNAL, "%u runs differ in bits from the first run", differing);
    printf("bits equal\n");
    return SP_OK;
}

static sp_status run_model(const run_arguments *arguments, const output_files *files, run_job *job)
{
    double seconds = 0;
    TRY(runner_open_inputs(&arguments->model, &job->runner));
    sizes_print(&job->runner.inputs);
    TRY(runner_run_first(&arguments->model, &job->runner));
    TRY(output_files_write(job->runner.model, files, job->runner.expected));
    job->repeat = arguments->repeat;
    TRY(run_threads(job, (uint32_t)arguments->threads, &seconds));
    if (atomic_load(&job->failures) > 0) return fail(SP_FAILED, "%s", job->message);
    return report_runs(arguments, job, seconds);
}

static sp_status run_all(run_arguments *arguments, run_job *job)
{
    output_files files;
    TRY(device_arguments_open(&arguments->model.device));
    TRY(runner_load(&arguments->model, &job->runner));
    sp_status status =
        output_files_open(job->runner.model, &arguments->outputs, arguments->output_folder, &files);
    if (status == SP_OK) status = run_model(arguments, &files, job);
    output_files_close(&files);
    return status;
}

static int run_command(int argc, char **argv)
{
    run_arguments arguments = {.threads = 1, .repeat = 1};
    int code;
    if (arguments_parse(&sp__command_run, argc, argv, &arguments, &code)) {
        run_job job = {0};
        const sp_status status = run_all(&arguments, &job);
        if (status != SP_OK) failure_print(status);
        runner_close(&job.runner);
        code = status == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    model_arguments_free(&arguments.model);
    text_list_free(&arguments.outputs);
    return code;
}

const cli_command sp__command_run = {
    .name = "run",
    .summary = "run a model from several threads at the same time",
    .description =
        "Runs a model once and writes its outputs, then from several threads at the same "
        "time. Prints the outputs' types and shapes, runs per second, and whether every "
        "run gave the bits of the first one; other bits are a failure. Inputs without a "
        "file are generated.",
    .operand = "MODEL",
    .operand_help = MODEL_OPERAND_HELP,
    .take_operand = take_model,
    .min_operands = 1,
    .max_operands = 1,
    .operand_completion = COMPLETE_FILE,
    .options = options,
    .option_count = COUNT_OF(options),
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = run_command,
};
