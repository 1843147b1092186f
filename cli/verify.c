/* SPDX-License-Identifier: Apache-2.0 */
/* streampool verify PATH...: runs every model below the paths on its test
 * data and compares.
 *
 * A case is a folder with model.onnx and folders test_data_set_K; the sets hold one TensorProto per
 * file, input_J.pb and output_J.pb. Models with an INFO.txt are compared as its reference allows
 * (four times the difference of two correct builds), others as ONNX's own cases are. */
#include <dirent.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <streampool/device.h>
#include <streampool/model.h>

#include "arguments.h"
#include "command.h"
#include "device_options.h"
#include "failure.h"
#include "tensors.h"

#define PATH_BYTES 4096
#define MAX_TENSORS 64

typedef struct verify_run {
    sp_model_options options;
    const tensor_tolerance *tolerance; /* of all outputs; NULL: what the case says */
    unsigned passed, failed, skipped;
} verify_run;

typedef struct test_set {
    sp_host_tensor inputs[MAX_TENSORS];
    sp_host_tensor wanted[MAX_TENSORS];
    sp_host_tensor got[MAX_TENSORS];
    uint32_t input_count, output_count;
} test_set;

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

static void join(char *out, const char *folder, const char *name)
{
    snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

/* ---- one set ---- */

static void set_free(test_set *set)
{
    for (uint32_t i = 0; i < MAX_TENSORS; i++) {
        tensor_free(&set->inputs[i]);
        tensor_free(&set->wanted[i]);
        tensor_free(&set->got[i]);
    }
    free(set);
}

static sp_status read_tensors(const char *folder, const char *prefix, sp_host_tensor *arrays,
                              uint32_t *count)
{
    for (*count = 0; *count < MAX_TENSORS; (*count)++) {
        char name[64];
        char path[PATH_BYTES];
        snprintf(name, sizeof name, "%s_%u.pb", prefix, *count);
        join(path, folder, name);
        if (!exists(path)) return SP_OK;
        TRY(tensor_read(path, &arrays[*count]));
    }
    return fail(SP_UNSUPPORTED, "%s has more than %d tensors", folder, MAX_TENSORS);
}

static sp_status run_set(sp_model model, test_set *set)
{
    sp_host_tensor described[MAX_TENSORS] = {0};
    CALL(sp_model_infer(model, set->inputs, set->input_count, described, set->output_count));
    for (uint32_t i = 0; i < set->output_count; i++) {
        TRY(tensor_room(&described[i], &set->got[i]));
    }
    return from_library(
        sp_model_run(model, set->inputs, set->input_count, set->got, set->output_count));
}

static sp_status compare_set(const test_set *set, tensor_tolerance tolerance, double *largest)
{
    *largest = 0;
    for (uint32_t i = 0; i < set->output_count; i++) {
        tensor_difference difference;
        if (tensor_compare(&set->got[i], &set->wanted[i], tolerance, &difference) != SP_OK) {
            return fail_prefix(SP_MISMATCH, "output %u: ", i);
        }
        if (difference.bad_count > 0) {
            return fail(SP_MISMATCH,
                        "output %u: %llu elements differ too much, first at %llu: "
                        "got %.9g, expected %.9g",
                        i, (unsigned long long)difference.bad_count,
                        (unsigned long long)difference.first_bad, difference.got, difference.want);
        }
        if (difference.largest > *largest) *largest = difference.largest;
    }
    return SP_OK;
}

/* The largest difference between two correct builds of the reference, as INFO.txt states it for the
 * set; 0 if it does not. */
static double stated_difference(const char *info, unsigned set_number)
{
    char prefix[32];
    snprintf(prefix, sizeof prefix, "set %u:", set_number);
    const char *line = strstr(info, prefix);
    if (line == NULL) return 0;
    const char *end = strchr(line, '\n');
    const char *mark = strstr(line, "optimised| max ");
    if (mark == NULL || (end != NULL && mark > end)) return 0;
    return strtod(mark + strlen("optimised| max "), NULL);
}

static tensor_tolerance tolerance_of(const char *info, unsigned set_number, const test_set *set)
{
    if (info != NULL) {
        const double stated = 4 * stated_difference(info, set_number);
        return (tensor_tolerance){stated > 1e-4 ? stated : 1e-4, 1e-3};
    }
    const bool is_half = set->output_count > 0 &&
                         (set->wanted[0].dtype == SP_F16 || set->wanted[0].dtype == SP_BF16);
    return is_half ? (tensor_tolerance){1e-3, 1e-2} : (tensor_tolerance){1e-5, 1e-3};
}

static sp_status verify_set(sp_model model, const char *folder, const char *info,
                            const tensor_tolerance *asked, unsigned set_number, double *largest)
{
    test_set *set = calloc(1, sizeof *set);
    if (set == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a test set");
    sp_status status = read_tensors(folder, "input", set->inputs, &set->input_count);
    if (status == SP_OK) status = read_tensors(folder, "output", set->wanted, &set->output_count);
    if (status == SP_OK && set->output_count == 0) {
        status = fail(SP_IO, "%s has no output_0.pb", folder);
    }
    if (status == SP_OK) status = run_set(model, set);
    if (status == SP_OK) {
        const tensor_tolerance stated = tolerance_of(info, set_number, set);
        status = compare_set(set, asked != NULL ? *asked : stated, largest);
    }
    set_free(set);
    return status;
}

/* ---- one case ---- */

/* The file's text, or NULL if it cannot be read. */
static char *read_text(FILE *file)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) return NULL;
    const size_t len = (size_t)info.st_size;
    char *text = calloc(len + 1, 1);
    if (text == NULL || fread(text, 1, len, file) == len) return text;
    free(text);
    return NULL;
}

static char *read_info(const char *folder)
{
    char path[PATH_BYTES];
    join(path, folder, "INFO.txt");
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = read_text(file);
    fclose(file);
    return text;
}

static void report(const char *path, sp_status status, double largest, verify_run *totals)
{
    if (status == SP_OK) {
        printf("passed   %s (largest difference %.3g)\n", path, largest);
        totals->passed++;
    } else if (status == SP_UNSUPPORTED) {
        printf("skipped  %s: %s\n", path, failure_message());
        totals->skipped++;
    } else {
        printf("FAILED   %s: %s: %s\n", path, sp_status_name(status), failure_message());
        totals->failed++;
    }
}

static void verify_case(const char *folder, verify_run *totals)
{
    char path[PATH_BYTES];
    join(path, folder, "model.onnx");
    sp_model model;
    const sp_status status = from_library(sp_model_load(path, &totals->options, &model));
    if (status != SP_OK) {
        report(folder, status, 0, totals);
        return;
    }
    char *info = read_info(folder);
    for (unsigned i = 0;; i++) {
        char name[64];
        snprintf(name, sizeof name, "test_data_set_%u", i);
        join(path, folder, name);
        if (!exists(path)) break;
        double largest = 0;
        const sp_status result = verify_set(model, path, info, totals->tolerance, i, &largest);
        report(path, result, largest, totals);
    }
    free(info);
    sp_model_release(model);
}

/* ---- all cases ---- */

static bool is_case(const char *folder)
{
    char model[PATH_BYTES];
    char set[PATH_BYTES];
    join(model, folder, "model.onnx");
    join(set, folder, "test_data_set_0");
    return exists(model) && exists(set);
}

static void verify_below(const char *folder, verify_run *totals)
{
    if (is_case(folder)) {
        verify_case(folder, totals);
        return;
    }
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        printf("FAILED   %s: cannot be read\n", folder);
        totals->failed++;
        return;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        struct stat info;
        join(path, folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
            verify_below(path, totals);
        }
        free(entries[i]);
    }
    free(entries);
}

/* Nothing to verify is a mistyped path, not a success. */
static void verify_path(const char *path, verify_run *totals)
{
    const verify_run before = *totals;
    verify_below(path, totals);
    const bool is_any = totals->passed > before.passed || totals->failed > before.failed ||
                        totals->skipped > before.skipped;
    if (is_any) return;
    printf("FAILED   %s: no folder with model.onnx and test_data_set_0 in it or below\n", path);
    totals->failed++;
}

/* ---- the command ---- */

typedef struct verify_arguments {
    device_arguments device; /* first */
    bool has_tolerance;
    tensor_tolerance tolerance;
    text_list paths;
} verify_arguments;

/* A number of 0 or more, ended by `end`. */
static bool parse_bound(const char *text, char end, const char **behind, double *out)
{
    char *stop;
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false; /* no sign, no nan */
    *out = strtod(text, &stop);
    *behind = stop + 1;
    return stop > text && *stop == end && *out <= DBL_MAX;
}

static bool take_tolerance(void *arguments, const char *value)
{
    verify_arguments *out = arguments;
    const char *rest;
    const char *comma = strchr(value, ',');
    out->has_tolerance = true;
    if (!parse_bound(value, comma != NULL ? ',' : '\0', &rest, &out->tolerance.absolute)) {
        return false;
    }
    return comma == NULL || parse_bound(rest, '\0', &rest, &out->tolerance.relative);
}

static bool take_path(void *arguments, const char *value)
{
    return value[0] != '\0' && text_list_add(&((verify_arguments *)arguments)->paths, value);
}

static const cli_option options[] = {
    {.name = "--tolerance",
     .value = "ABSOLUTE[,RELATIVE]",
     .limits = "a bound, or two with a comma between them, each a decimal number of 0 or more; the "
               "second is 0 if it is left out",
     .help = "Elements of floating-point outputs pass if |got - expected| <= ABSOLUTE + RELATIVE * "
             "|expected|, in place of the bounds of each case.",
     .take = take_tolerance},
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"verify models", "Every case in or below the folder, with a line for each set."},
    {"verify --device cuda:0 --tolerance 1e-3,1e-2 models/bert",
     "One case on a GPU, with bounds of your own."},
};

static int verify_run_all(verify_arguments *arguments)
{
    verify_run totals = {0};
    const sp_status status = device_arguments_open(&arguments->device);
    if (status != SP_OK) {
        failure_print(status);
        return EXIT_FAILURE;
    }
    totals.options = arguments->device.options;
    totals.tolerance = arguments->has_tolerance ? &arguments->tolerance : NULL;
    for (uint32_t i = 0; i < arguments->paths.count; i++) {
        verify_path(arguments->paths.texts[i], &totals);
    }
    printf("%u passed, %u failed, %u skipped\n", totals.passed, totals.failed, totals.skipped);
    return totals.failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static int verify_command(int argc, char **argv)
{
    verify_arguments arguments = {0};
    int code;
    if (arguments_parse(&sp__command_verify, argc, argv, &arguments, &code)) {
        code = verify_run_all(&arguments);
    }
    text_list_free(&arguments.paths);
    return code;
}

const cli_command sp__command_verify = {
    .name = "verify",
    .summary = "run models on their test data and compare",
    .description = "Runs every model below the paths on its test data and compares. A case is a "
                   "folder with model.onnx and folders test_data_set_K, each with input_J.pb and "
                   "output_J.pb. Prints a line for each set, and fails if one of them does.",
    .operand = "PATH",
    .operand_help = "a folder with cases in it or below",
    .take_operand = take_path,
    .min_operands = 1,
    .max_operands = UINT32_MAX,
    .operand_completion = COMPLETE_FOLDER,
    .options = options,
    .option_count = COUNT_OF(options),
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = verify_command,
};
