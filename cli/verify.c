/* SPDX-License-Identifier: Apache-2.0 */
/* streampool verify PATH...: runs every model below the paths on its test data and compares.
 *
 * A case is a folder with model.onnx and folders test_data_set_K; the sets hold one TensorProto per
 * file, input_J.pb and output_J.pb. Numbers begin with 0; a gap in the numbers fails the set or the
 * case. With fewer expected files than outputs the first outputs are compared, and the report says
 * how many. Models with an INFO.txt are compared as its reference allows (four times the difference
 * of two correct builds), others as ONNX's own cases are. Symbolic links are followed, and each
 * folder below a path is visited once. */
#include <dirent.h>
#include <errno.h>
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
#include "test_data.h"
#include "text.h"

typedef struct verify_run {
    sp_model_options options;
    const tensor_tolerance *tolerance; /* of all outputs; NULL: the tolerance of the case */
    unsigned passed, failed, skipped;
} verify_run;

typedef struct test_set {
    tensor_list inputs, wanted;
    sp_host_tensor *got; /* as many as `wanted`; allocated by the run */
} test_set;

typedef struct comparison {
    double largest; /* difference */
    uint32_t compared,
        output_count; /* compared < output_count if there are fewer files than outputs */
} comparison;

/* ---- one set ---- */

static void set_free(test_set *set)
{
    for (uint32_t i = 0; set->got != NULL && i < set->wanted.count; i++) {
        sp_host_tensor_free(&set->got[i]);
    }
    free(set->got);
    tensors_free(&set->inputs);
    tensors_free(&set->wanted);
}

static sp_status run_set(sp_model model, test_set *set)
{
    set->got = calloc((size_t)set->wanted.count + 1, sizeof *set->got);
    if (set->got == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a test set");
    return from_library(
        sp_model_run(model, set->inputs.list, set->inputs.count, set->got, set->wanted.count));
}

/* The tolerance of outputs of a type. `stated` is the set's bound, negative if there is none; it is
 * of products in f32. */
static tensor_tolerance tolerance_of(double stated, sp_dtype dtype, sp_precision precision)
{
    if (precision == SP_PRECISION_BF16) return (tensor_tolerance){8e-3, 8e-2};
    if (precision != SP_PRECISION_DEFAULT) return (tensor_tolerance){1e-3, 1e-2};
    if (stated >= 0) return (tensor_tolerance){stated > 1e-4 ? stated : 1e-4, 1e-3};
    const bool is_half = dtype == SP_F16 || dtype == SP_BF16;
    return is_half ? (tensor_tolerance){1e-3, 1e-2} : (tensor_tolerance){1e-5, 1e-3};
}

static sp_status compare_set(const test_set *set, const verify_run *totals, double stated,
                             comparison *out)
{
    for (uint32_t i = 0; i < set->wanted.count; i++) {
        const tensor_tolerance tolerance =
            totals->tolerance != NULL
                ? *totals->tolerance
                : tolerance_of(stated, set->wanted.list[i].dtype, totals->options.precision);
        tensor_difference difference;
        if (tensor_compare(&set->got[i], &set->wanted.list[i], tolerance, &difference) != SP_OK) {
            return fail_prefix(SP_MISMATCH, "output %u: ", i);
        }
        if (difference.bad_count > 0) {
            return fail(SP_MISMATCH,
                        "output %u: %llu elements differ too much, first at %llu: "
                        "got %.9g, expected %.9g",
                        i, (unsigned long long)difference.bad_count,
                        (unsigned long long)difference.first_bad, difference.got, difference.want);
        }
        if (difference.largest > out->largest) out->largest = difference.largest;
        out->compared++;
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

static sp_status verify_set(sp_model model, const char *folder, const char *info,
                            const verify_run *totals, unsigned set_number, comparison *out)
{
    test_set set = {0};
    sp_status status = tensors_read(folder, "input_%u.pb", &set.inputs);
    if (status == SP_OK) status = tensors_read(folder, "output_%u.pb", &set.wanted);
    if (status == SP_OK && set.wanted.count == 0) {
        status = fail(SP_IO, "%s has no output_0.pb", folder);
    }
    if (status == SP_OK) status = run_set(model, &set);
    const double stated = info != NULL ? 4 * stated_difference(info, set_number) : -1;
    if (status == SP_OK) status = compare_set(&set, totals, stated, out);
    set_free(&set);
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
    path_join(path, folder, "INFO.txt");
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = read_text(file);
    fclose(file);
    return text;
}

static void report_passed(const char *path, const comparison *seen)
{
    printf("passed   %s (", path);
    if (seen->compared < seen->output_count) {
        printf("compared %u of %u outputs, ", seen->compared, seen->output_count);
    }
    printf("largest difference %.3g)\n", seen->largest);
}

static void report_set(const char *path, sp_status status, const comparison *seen,
                       verify_run *totals)
{
    if (status == SP_OK) {
        report_passed(path, seen);
        totals->passed++;
    } else if (status == SP_UNSUPPORTED) {
        printf("skipped  %s: %s\n", path, failure_message());
        totals->skipped++;
    } else {
        printf("FAILED   %s: %s: %s\n", path, sp_status_name(status), failure_message());
        totals->failed++;
    }
}

static void fail_folder(const char *folder, const char *why, verify_run *totals)
{
    printf("FAILED   %s: %s\n", folder, why);
    totals->failed++;
}

static void verify_sets(const char *folder, sp_model model, const char *info, verify_run *totals)
{
    static const char pattern[] = "test_data_set_%u";
    sp_model_info about = {0};
    (void)sp_model_get_info(model, &about);
    unsigned count = 0;
    for (;; count++) {
        char name[NUMBERED_BYTES];
        char path[PATH_BYTES];
        name_numbered(name, pattern, count);
        path_join(path, folder, name);
        if (!path_exists(path)) break;
        comparison seen = {.output_count = about.output_count};
        const sp_status status = verify_set(model, path, info, totals, count, &seen);
        report_set(path, status, &seen, totals);
    }
    const sp_status status = number_check_last(folder, pattern, count);
    if (status != SP_OK) report_set(folder, status, NULL, totals);
}

static void verify_case(const char *folder, verify_run *totals)
{
    char path[PATH_BYTES];
    path_join(path, folder, "model.onnx");
    sp_model model;
    const sp_status status = from_library(sp_model_load(path, &totals->options, &model));
    if (status != SP_OK) {
        report_set(folder, status, NULL, totals);
        return;
    }
    char *info = read_info(folder);
    verify_sets(folder, model, info, totals);
    free(info);
    sp_model_release(model);
}

/* ---- all cases ---- */

static bool is_case(const char *folder)
{
    static const char pattern[] = "test_data_set_%u";
    char model[PATH_BYTES];
    char set[PATH_BYTES];
    unsigned least;
    path_join(model, folder, "model.onnx");
    path_join(set, folder, "test_data_set_0");
    if (!path_exists(model)) return false;
    return path_exists(set) ||
           (number_find(folder, pattern, 0, &least) == SP_OK && least != UINT32_MAX);
}

/* The visited folders: links may lead to a folder from several places, and from below itself. */
typedef struct visited_folders {
    struct visited_folder {
        dev_t device;
        ino_t inode;
    } *list;
    uint32_t count, capacity;
} visited_folders;

/* False if `path` is not a folder, or was visited before. */
static bool folder_visit(visited_folders *visited, const char *path, verify_run *totals)
{
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return false;
    for (uint32_t i = 0; i < visited->count; i++) {
        const struct visited_folder *known = &visited->list[i];
        if (known->device == info.st_dev && known->inode == info.st_ino) return false;
    }
    if (visited->count == visited->capacity) {
        const uint32_t capacity = 2 * visited->capacity + 16;
        struct visited_folder *grown = realloc(visited->list, capacity * sizeof *grown);
        if (grown == NULL) {
            fail_folder(path, "out of memory", totals);
            return false;
        }
        visited->list = grown;
        visited->capacity = capacity;
    }
    visited->list[visited->count++] = (struct visited_folder){info.st_dev, info.st_ino};
    return true;
}

static void verify_below(const char *folder, visited_folders *visited, verify_run *totals)
{
    if (is_case(folder)) {
        verify_case(folder, totals);
        return;
    }
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        const int error = errno;
        char why[256];
        snprintf(why, sizeof why, "cannot be read as a folder: %s", show_error(error).text);
        fail_folder(folder, why, totals);
        return;
    }
    for (int i = 0; i < count; i++) {
        char path[PATH_BYTES];
        path_join(path, folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && folder_visit(visited, path, totals)) {
            verify_below(path, visited, totals);
        }
        free(entries[i]);
    }
    free(entries);
}

/* A path without cases is a failure: it is probably mistyped. */
static void verify_path(const char *path, verify_run *totals)
{
    const verify_run before = *totals;
    visited_folders visited = {0};
    (void)folder_visit(&visited, path, totals);
    verify_below(path, &visited, totals);
    free(visited.list);
    const bool is_any = totals->passed > before.passed || totals->failed > before.failed ||
                        totals->skipped > before.skipped;
    if (is_any) return;
    fail_folder(path, "no folder with model.onnx and a numbered test_data_set in it or below",
                totals);
}

/* ---- the command ---- */

typedef struct verify_arguments {
    device_arguments device; /* first */
    bool has_tolerance;
    tensor_tolerance tolerance;
    text_list paths;
} verify_arguments;

/* A number of 0 or more, followed by `end`; *behind is after it. */
static bool parse_bound(const char *text, char end, const char **behind, double *out)
{
    char *stop;
    if ((text[0] < '0' || text[0] > '9') && text[0] != '.') return false; /* no sign, no nan */
    *out = strtod(text, &stop);
    *behind = stop + 1;
    const bool is_decimal = stop <= text + strspn(text, "0123456789.eE+-");
    return stop > text && is_decimal && *stop == end && *out <= DBL_MAX;
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
     .help =
         "Elements of floating-point outputs pass if |got - expected| <= ABSOLUTE + RELATIVE * "
         "|expected|, in place of the bounds of each case, or, with a precision of tf32 or f16, "
         "of 1e-3,1e-2, and of bf16 8e-3,8e-2.",
     .take = take_tolerance},
    DEVICE_OPTIONS,
};

static const cli_example examples[] = {
    {"verify models", "Every case in or below the folder, with a line for each set."},
    {"verify --device cuda:0 --tolerance 1e-3,1e-2 models/bert",
     "One case on a GPU, with other bounds."},
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
    .description =
        "Runs every model below the paths on its test data and compares. A case is a "
        "folder with model.onnx and folders test_data_set_K, each with input_J.pb and "
        "output_J.pb, numbered from 0 on. A gap in the numbers fails. With fewer expected "
        "files than outputs the first outputs are compared, and the line says how many. "
        "Prints a line for each set, and fails if one of them does.",
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
