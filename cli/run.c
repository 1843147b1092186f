/* SPDX-License-Identifier: Apache-2.0 */
/* streampool run MODEL: runs a model from several threads at the same time, and prints the
 * throughput and whether every run gave the same bits. primitive: threads and clock of the
 * operating system, as in a user's program. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <streampool/device.h>
#include <streampool/model.h>

#include "arguments.h"
#include "command.h"
#include "failure.h"
#include "inputs.h"
#include "outputs.h"
#include "sizes.h"
#include "source.h"
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
    sp_model model;
    model_inputs inputs;
    sp_host_tensor *expected; /* of the first run */
    uint32_t output_count;
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

/* ---- inputs and outputs ---- */

static sp_status check_made_up(const model_inputs *inputs, uint64_t max_bytes)
{
    uint64_t bytes = 0; /* each has at most 2^40 */
    for (uint32_t i = 0; i < inputs->count; i++) {
        bytes += inputs->tensors[i].data == NULL ? inputs->tensors[i].bytes : 0;
    }
    if (max_bytes == 0 || bytes <= max_bytes) return SP_OK;
    return fail(SP_EXHAUSTED,
                "the generated inputs would have %llu bytes; --max-memory allows %llu",
                (unsigned long long)bytes, (unsigned long long)max_bytes);
}

/* Zeroed: the first run allocates their memory. */
static sp_status make_outputs(uint32_t count, sp_host_tensor **out)
{
    *out = calloc((size_t)count + 1, sizeof **out);
    return *out != NULL ? SP_OK : fail(SP_OUT_OF_MEMORY, "no memory for %u outputs", count);
}

static void free_outputs(sp_host_tensor *outputs, uint32_t count)
{
    for (uint32_t i = 0; outputs != NULL && i < count; i++) sp_host_tensor_free(&outputs[i]);
    free(outputs);
}

static bool has_all_data(const model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        if (inputs->tensors[i].data == NULL) return false;
    }
    return true;
}

/* Checks the first plan before inputs of any size are generated. With the data of all inputs the
 * check could be a run: then the run itself checks. */
static sp_status check_plan(const run_arguments *arguments, const run_job *job)
{
    sp_host_tensor *outputs;
    if (has_all_data(&job->inputs)) return SP_OK;
    TRY(make_outputs(job->output_count, &outputs));
    const sp_status status = from_library(sp_model_infer(
        job->model, job->inputs.tensors, job->inputs.count, outputs, job->output_count));
    free(outputs);
    if (status != SP_OK && status != SP_UNSUPPORTED) return status;
    return check_made_up(&job->inputs, arguments->model.device.options.max_run_bytes);
}

static sp_status load_inputs(const run_arguments *arguments, run_job *job)
{
    TRY(inputs_open(job->model, &arguments->model, &job->inputs));
    TRY(check_plan(arguments, job));
    return inputs_fill(&job->inputs);
}

static sp_status run_once(const run_job *job, sp_host_tensor *outputs)
{
    return from_library(sp_model_run(job->model, job->inputs.tensors, job->inputs.count, outputs,
                                     job->output_count));
}

/* Sizes are chosen by the first partial plan; a later one, which depends on values, may refuse
 * them. */
static sp_status run_first(run_job *job)
{
    TRY(make_outputs(job->output_count, &job->expected));
    const sp_status status = run_once(job, job->expected);
    if (status != SP_MISMATCH || !sizes_are_chosen(&job->inputs)) return status;
    char message[FAILURE_BYTES - 64];
    snprintf(message, sizeof message, "%s", failure_message());
    return fail(status, "%s (with chosen sizes; set others by --dim and --shape)", message);
}

/* ---- threads ---- */

static bool outputs_are_equal(const run_job *job, const sp_host_tensor *outputs)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        const sp_host_tensor *expected = &job->expected[i];
        if (outputs[i].bytes != expected->bytes) return false;
        if (expected->bytes == 0) continue;
        if (memcmp(outputs[i].data, expected->data, expected->bytes) != 0) return false;
    }
    return true;
}

static void job_note_failure(run_job *job)
{
    if (atomic_fetch_add(&job->failures, 1) != 0) return;
    snprintf(job->message, sizeof job->message, "%s", failure_message());
}

static void *run_thread(void *arg)
{
    run_job *job = arg;
    sp_host_tensor *outputs = NULL;
    if (make_outputs(job->output_count, &outputs) != SP_OK) job_note_failure(job);
    for (uint64_t i = 0; i < job->repeat && atomic_load(&job->failures) == 0; i++) {
        if (run_once(job, outputs) != SP_OK) {
            job_note_failure(job);
        } else if (!outputs_are_equal(job, outputs)) {
            atomic_fetch_add(&job->differing, 1);
        }
    }
    free_outputs(outputs, job->output_count);
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

static sp_status print_outputs(const run_job *job)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        sp_port port;
        CALL(sp_model_get_output(job->model, i, &port));
        printf("output %s: %s %s\n", show_name(port.name).text,
               sp_dtype_name(job->expected[i].dtype),
               show_shape(job->expected[i].rank, job->expected[i].shape).text);
    }
    return SP_OK;
}

/* Prints the results of all runs. */
static sp_status report_runs(const run_arguments *arguments, run_job *job, double seconds)
{
    sp_model_info info;
    CALL(sp_model_get_info(job->model, &info));
    const uint64_t runs = arguments->threads * arguments->repeat;
    TRY(print_outputs(job));
    print_cpu_steps(job->model, &info);
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
    sp_model_info info;
    double seconds = 0;
    CALL(sp_model_get_info(job->model, &info));
    job->output_count = info.output_count;
    TRY(load_inputs(arguments, job));
    TRY(run_first(job));
    TRY(output_files_write(job->model, files, job->expected));
    job->repeat = arguments->repeat;
    TRY(run_threads(job, (uint32_t)arguments->threads, &seconds));
    if (atomic_load(&job->failures) > 0) return fail(SP_FAILED, "%s", job->message);
    return report_runs(arguments, job, seconds);
}

static sp_status load_model(run_arguments *arguments, sp_model *out)
{
    model_source source;
    TRY(device_arguments_open(&arguments->model.device));
    sp_status status = source_open(arguments->model.path, &source);
    if (status == SP_OK) {
        status = source_load(&source, &arguments->model.device.options, out);
    }
    source_close(&source);
    return status;
}

static sp_status run_all(run_arguments *arguments, run_job *job)
{
    output_files files;
    TRY(load_model(arguments, &job->model));
    sp_status status =
        output_files_open(job->model, &arguments->outputs, arguments->output_folder, &files);
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
        free_outputs(job.expected, job.output_count);
        inputs_close(&job.inputs);
        sp_model_release(job.model);
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
