/* SPDX-License-Identifier: Apache-2.0 */
/* streampool run MODEL: runs a model from some threads at the same time, tells how fast, and
 * whether every run gave the same bits.
 * primitive: threads and clock of the operating system, since this is what a user would write. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <streampool/device.h>
#include <streampool/model.h>

#include "command.h"
#include "failure.h"
#include "limits.h"
#include "tensors.h"
#include "text.h"

#define MAX_PORTS 64
/* Values of inputs up to this size may decide what the plan is. */
#define DECIDING_BYTES 512
#define MAX_THREADS 1024

/* The NAME=FILE of one kind of option. */
typedef struct run_files {
    const char *names[MAX_PORTS];
    const char *files[MAX_PORTS];
    uint32_t count;
} run_files;

typedef struct run_arguments {
    const char *path;
    run_files inputs;
    run_files outputs;
    const char *device;
    sp_model_options options;
    uint32_t threads;
    uint32_t repeat;
} run_arguments;

typedef struct run_job {
    sp_model model;
    sp_host_tensor inputs[MAX_PORTS];
    uint32_t input_count;
    sp_host_tensor expected[MAX_PORTS]; /* of the first run */
    uint32_t output_count;
    uint32_t repeat;
    atomic_uint failures;
    atomic_uint differing;
    char message[FAILURE_BYTES]; /* of the first failure; written by the thread that counted it */
} run_job;

/* ---- arguments ---- */

static void print_usage(void)
{
    fprintf(stderr,
            "usage: streampool run MODEL [--device NAME] [--input NAME=FILE]... "
            "[--output NAME=FILE]... [--threads N] [--repeat K] " SP_LIMITS_USAGE "\n"
            "  a device is cpu or cuda:N; a FILE is one array of NumPy (.npy) or one ONNX "
            "TensorProto (.pb);\n"
            "  inputs not given are made up; outputs are those of the first run\n" SP_LIMITS_HELP);
}

static bool parse_count(const char *text, uint32_t max, uint32_t *out)
{
    char *end;
    const unsigned long value = strtoul(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < 1 || value > max) return false;
    *out = (uint32_t)value;
    return true;
}

static bool parse_file(char *text, run_files *out)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || out->count == MAX_PORTS) return false;
    *equals = '\0';
    out->names[out->count] = text;
    out->files[out->count] = equals + 1;
    out->count++;
    return true;
}

static bool parse_arguments(int argc, char **argv, run_arguments *out)
{
    *out = (run_arguments){.device = "cpu", .threads = 1, .repeat = 1};
    for (int i = 1; i < argc; i++) {
        const bool has_value = i + 1 < argc;
        const sp_limits_match limit = sp__limits_parse(argc, argv, &i, &out->options);
        if (limit == SP_LIMITS_WRONG) return false;
        if (limit == SP_LIMITS_TAKEN) continue;
        if (strcmp(argv[i], "--input") == 0 && has_value) {
            if (!parse_file(argv[++i], &out->inputs)) return false;
        } else if (strcmp(argv[i], "--output") == 0 && has_value) {
            if (!parse_file(argv[++i], &out->outputs)) return false;
        } else if (strcmp(argv[i], "--device") == 0 && has_value) {
            out->device = argv[++i];
        } else if (strcmp(argv[i], "--threads") == 0 && has_value) {
            if (!parse_count(argv[++i], MAX_THREADS, &out->threads)) return false;
        } else if (strcmp(argv[i], "--repeat") == 0 && has_value) {
            if (!parse_count(argv[++i], UINT32_MAX, &out->repeat)) return false;
        } else if (argv[i][0] != '-' && out->path == NULL) {
            out->path = argv[i];
        } else {
            return false;
        }
    }
    return out->path != NULL;
}

/* ---- inputs and outputs ---- */

static const char *file_of(const run_files *given, const char *name)
{
    for (uint32_t i = 0; i < given->count; i++) {
        if (strcmp(given->names[i], name) == 0) return given->files[i];
    }
    return NULL;
}

/* What the plan depends on: files, and what is made up and small. `out` describes all inputs, with
 * the data of those that are there. */
static sp_status load_deciding(const run_arguments *arguments, run_job *job, sp_host_tensor *out)
{
    for (uint32_t i = 0; i < job->input_count; i++) {
        sp_port port;
        CALL(sp_model_get_input(job->model, i, &port));
        const char *file = file_of(&arguments->inputs, port.name);
        TRY(tensor_describe(&port, &out[i]));
        if (file != NULL) TRY(tensor_read(file, &job->inputs[i]));
        else if (port.decides_shapes && out[i].bytes <= DECIDING_BYTES) {
            TRY(tensor_make(&port, &job->inputs[i]));
        } else {
            continue;
        }
        out[i] = job->inputs[i];
    }
    return SP_OK;
}

static sp_status check_made_up(const sp_host_tensor *inputs, uint32_t count, uint64_t max_bytes)
{
    uint64_t bytes = 0; /* each has at most 2^40 */
    for (uint32_t i = 0; i < count; i++) bytes += inputs[i].data == NULL ? inputs[i].bytes : 0;
    if (max_bytes == 0 || bytes <= max_bytes) return SP_OK;
    return fail(SP_EXHAUSTED, "the inputs to be made up have %llu bytes; --max-memory allows %llu",
                (unsigned long long)bytes, (unsigned long long)max_bytes);
}

/* A plan that is refused is refused before inputs of any size are made up. Where shapes depend on
 * values that the model computes this checks the first plan, and the run checks the others. */
static sp_status check_plan(const run_arguments *arguments, const run_job *job,
                            const sp_host_tensor *inputs)
{
    sp_host_tensor outputs[MAX_PORTS] = {0};
    const sp_status status = from_library(
        sp_model_infer(job->model, inputs, job->input_count, outputs, job->output_count));
    if (status != SP_OK && status != SP_UNSUPPORTED) return status;
    return check_made_up(inputs, job->input_count, arguments->options.max_run_bytes);
}

static sp_status load_inputs(const run_arguments *arguments, run_job *job)
{
    sp_host_tensor inputs[MAX_PORTS] = {0};
    sp_model_info info;
    CALL(sp_model_get_info(job->model, &info));
    for (uint32_t i = 0; i < arguments->inputs.count; i++) {
        uint32_t index;
        CALL(sp_model_find_input(job->model, arguments->inputs.names[i], &index));
    }
    job->input_count = info.input_count;
    job->output_count = info.output_count;
    TRY(load_deciding(arguments, job, inputs));
    TRY(check_plan(arguments, job, inputs));
    for (uint32_t i = 0; i < info.input_count; i++) {
        sp_port port;
        if (job->inputs[i].data != NULL) continue;
        CALL(sp_model_get_input(job->model, i, &port));
        TRY(tensor_make(&port, &job->inputs[i]));
    }
    return SP_OK;
}

/* Before anything runs. */
static sp_status check_outputs(const run_files *asked, sp_model model)
{
    for (uint32_t i = 0; i < asked->count; i++) {
        uint32_t index;
        CALL(sp_model_find_output(model, asked->names[i], &index));
        TRY(tensor_check_name(asked->files[i]));
    }
    return SP_OK;
}

static sp_status write_outputs(const run_files *asked, const run_job *job)
{
    for (uint32_t i = 0; i < asked->count; i++) {
        uint32_t index;
        CALL(sp_model_find_output(job->model, asked->names[i], &index));
        TRY(tensor_write(asked->files[i], asked->names[i], &job->expected[index]));
    }
    return SP_OK;
}

static sp_status make_outputs(const run_job *job, sp_host_tensor *outputs)
{
    sp_host_tensor described[MAX_PORTS] = {0};
    CALL(sp_model_infer(job->model, job->inputs, job->input_count, described, job->output_count));
    for (uint32_t i = 0; i < job->output_count; i++) {
        TRY(tensor_room(&described[i], &outputs[i]));
    }
    return SP_OK;
}

static sp_status run_once(const run_job *job, sp_host_tensor *outputs)
{
    return from_library(
        sp_model_run(job->model, job->inputs, job->input_count, outputs, job->output_count));
}

/* ---- threads ---- */

static bool is_equal(const run_job *job, const sp_host_tensor *arrays)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        if (memcmp(arrays[i].data, job->expected[i].data, arrays[i].bytes) != 0) return false;
    }
    return true;
}

static void note_failure(run_job *job)
{
    if (atomic_fetch_add(&job->failures, 1) != 0) return;
    snprintf(job->message, sizeof job->message, "%s", failure_message());
}

static void *run_thread(void *arg)
{
    run_job *job = arg;
    sp_host_tensor outputs[MAX_PORTS] = {0};
    if (make_outputs(job, outputs) != SP_OK) note_failure(job);
    for (uint32_t i = 0; i < job->repeat && atomic_load(&job->failures) == 0; i++) {
        if (run_once(job, outputs) != SP_OK) {
            note_failure(job);
        } else if (!is_equal(job, outputs)) {
            atomic_fetch_add(&job->differing, 1);
        }
    }
    for (uint32_t i = 0; i < job->output_count; i++) tensor_free(&outputs[i]);
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

static sp_status run_job_all(const run_arguments *arguments, run_job *job)
{
    sp_model_options options = arguments->options;
    CALL(sp_device_open(arguments->device, &options.device));
    CALL(sp_model_load(arguments->path, &options, &job->model));
    TRY(check_outputs(&arguments->outputs, job->model));
    TRY(load_inputs(arguments, job));
    TRY(make_outputs(job, job->expected));
    TRY(run_once(job, job->expected));
    TRY(write_outputs(&arguments->outputs, job));
    job->repeat = arguments->repeat;
    double seconds = 0;
    TRY(run_threads(job, arguments->threads, &seconds));
    if (atomic_load(&job->failures) > 0) return fail(SP_FAILED, "%s", job->message);

    sp_model_info info;
    CALL(sp_model_get_info(job->model, &info));
    const uint64_t runs = (uint64_t)arguments->threads * arguments->repeat;
    for (uint32_t i = 0; i < job->output_count; i++) {
        sp_port port;
        CALL(sp_model_get_output(job->model, i, &port));
        printf("output %s: %s %s\n", port.name, sp_dtype_name(job->expected[i].dtype),
               show_shape(job->expected[i].rank, job->expected[i].shape).text);
    }
    print_cpu_steps(job->model, &info);
    printf("%u threads, %llu runs, %.1f runs/s, at most %u at once, %u sessions\n",
           arguments->threads, (unsigned long long)runs, (double)runs / seconds,
           info.most_in_flight, info.session_count);
    const uint32_t differing = atomic_load(&job->differing);
    if (differing > 0) return fail(SP_INTERNAL, "%u runs gave other bits", differing);
    printf("bits equal\n");
    return SP_OK;
}

int sp__command_run(int argc, char **argv)
{
    run_arguments arguments;
    if (!parse_arguments(argc, argv, &arguments)) {
        print_usage();
        return SP_EXIT_USAGE;
    }
    run_job *job = calloc(1, sizeof *job);
    if (job == NULL) return EXIT_FAILURE;
    const sp_status status = run_job_all(&arguments, job);
    if (status != SP_OK) failure_print(status);
    for (uint32_t i = 0; i < MAX_PORTS; i++) {
        tensor_free(&job->inputs[i]);
        tensor_free(&job->expected[i]);
    }
    sp_model_release(job->model);
    free(job);
    return status == SP_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
