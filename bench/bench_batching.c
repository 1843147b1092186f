/* SPDX-License-Identifier: Apache-2.0 */
/* Threads against batches: rates, latencies and costs of models under callers of one row each, with
 * combining on and off, and ONNX Runtime's in the same run. NOTES.md says what the figures are. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arguments.h"
#include "base/macros.h"
#include "base/thread.h"
#include "batching_report.h"
#include "bench.h"
#include "text.h"

#define MAX_MODELS 64
#define MAX_CALLERS 1024

/* The program's list of commands, which its help prints: none here. */
const cli_command *const sp__commands[] = {NULL};
const size_t sp__command_count = 0;

/* Those of the goals that are for certain models. */
static const char *const usual_models[] = {"torch_mlp",    "torch_linear",  "torch_encoder",
                                           "torch_bert",   "silero_vad_v5", "ppocr_cls",
                                           "torch_conv1d", "torch_lstm",    "policy_go1"};

typedef struct arguments {
    turns_options turns;
    const char *folder; /* of models */
    bool is_json, has_pairs;
    turns_model models[MAX_MODELS];
    char paths[MAX_MODELS][1024];
    uint32_t model_count;
} arguments;

static _Noreturn void usage(FILE *out, int code)
{
    fputs("usage: bench_batching [OPTION]... [MODEL]...\n"
          "\n"
          "MODEL is the name of a folder with a file model.onnx in DIR, or an ONNX file.\n"
          "  --models DIR     folder of models; default: the models of the tests\n"
          "  --threads LIST   numbers of callers, ascending; default: 1,2,8,31,128 and the cores\n"
          "  --windows N      windows of each kind, 1 to 32, whose median counts; default: 5\n"
          "  --seconds S      length of a window; default: 0.5\n"
          "  --ort PATH       libonnxruntime.so; default: where bench/peers puts it\n"
          "  --no-ort         no figures of ONNX Runtime\n"
          "  --device NAME    device of the models, as for streampool run; default: cpu\n"
          "  --no-pairs       not each model at once with the next one\n"
          "  --json           JSON lines\n",
          out);
    exit(code);
}

static _Noreturn void refuse(const char *option, const char *value, const char *allowed)
{
    fprintf(stderr, "bench_batching: %s cannot be '%s': %s\n", option, value, allowed);
    exit(SP_EXIT_USAGE);
}

/* ---- options ---- */

static void threads_take(turns_options *out, const char *value)
{
    static const char allowed[] = "ascending numbers from 1 to " TEXT_OF(
        MAX_CALLERS) ", separated by commas, at most " TEXT_OF(FIGURES_MAX_POINTS);
    uint64_t last = 0;
    char *text = strdup(value);
    char *rest = text;
    out->point_count = 0;
    for (char *number; (number = strsep(&rest, ",")) != NULL;) {
        const bool has_room = out->point_count < FIGURES_MAX_POINTS;
        if (!has_room || !number_parse(number, last + 1, MAX_CALLERS, &last)) {
            refuse("--threads", value, allowed);
        }
        out->points[out->point_count++] = (uint32_t)last;
    }
    free(text);
}

static void threads_default(turns_options *out)
{
    static const uint32_t usual[] = {1, 2, 8, 31, 128};
    uint32_t cores = out->cores <= MAX_CALLERS ? out->cores : 0;
    for (uint32_t i = 0; i < SP_COUNT_OF(usual); i++) {
        if (cores > 0 && cores < usual[i]) out->points[out->point_count++] = cores;
        if (cores <= usual[i]) cores = 0;
        out->points[out->point_count++] = usual[i];
    }
    if (cores > 0) out->points[out->point_count++] = cores;
}

static double seconds_parse(const char *value)
{
    char *end;
    const double seconds = strtod(value, &end);
    if (*end != '\0' || !(seconds >= 0.01 && seconds <= 3600)) {
        refuse("--seconds", value, "a number from 0.01 to 3600");
    }
    return seconds;
}

static uint32_t turns_parse(const char *value)
{
    uint64_t turns;
    if (!number_parse(value, 1, FIGURES_MAX_TURNS, &turns)) {
        refuse("--windows", value, "a number from 1 to " TEXT_OF(FIGURES_MAX_TURNS));
    }
    return (uint32_t)turns;
}

static const char *library_choose(const char *given, bool is_excluded, const char *device)
{
    if (is_excluded) return NULL;
    if (given != NULL) {
        if (!file_exists(given)) refuse("--ort", given, "no such file; bench/peers downloads it");
        return given;
    }
    if (device != NULL && strcmp(device, "cpu") != 0) return NULL;
    if (file_exists(SP_BENCH_PEER)) return SP_BENCH_PEER;
    fputs(
        "bench_batching: without ONNX Runtime: bench/peers downloads it, --no-ort leaves it out\n",
        stderr);
    return NULL;
}

/* ---- models ---- */

static void model_add(arguments *self, const char *name)
{
    if (self->model_count == MAX_MODELS) {
        refuse("MODEL", name, "at most " TEXT_OF(MAX_MODELS) " models can be given");
    }
    char *path = self->paths[self->model_count];
    const size_t room = sizeof self->paths[0];
    const int length = text_ends_in(name, ".onnx")
                           ? snprintf(path, room, "%s", name)
                           : snprintf(path, room, "%s/%s/model.onnx", self->folder, name);
    if (length < 0 || (size_t)length >= room) refuse("MODEL", name, "its path is too long");
    if (!file_exists(path)) {
        fprintf(stderr, "bench_batching: %s: there is no %s; --models names the folder of models\n",
                name, path);
        exit(EXIT_FAILURE);
    }
    self->models[self->model_count++] = (turns_model){.name = name, .path = path};
}

static void models_take(arguments *self, int count, char **names)
{
    const bool is_usual = count == 0;
    for (int i = 0; i < count; i++) model_add(self, names[i]);
    for (size_t i = 0; is_usual && i < SP_COUNT_OF(usual_models); i++) {
        model_add(self, usual_models[i]);
    }
}

static void arguments_take(arguments *self, int argc, char **argv)
{
    enum { MODELS = 1, THREADS, WINDOWS, SECONDS, ORT, NO_ORT, DEVICE, NO_PAIRS, JSON, HELP };
    static const struct option options[] = {{"models", required_argument, NULL, MODELS},
                                            {"threads", required_argument, NULL, THREADS},
                                            {"windows", required_argument, NULL, WINDOWS},
                                            {"seconds", required_argument, NULL, SECONDS},
                                            {"ort", required_argument, NULL, ORT},
                                            {"no-ort", no_argument, NULL, NO_ORT},
                                            {"device", required_argument, NULL, DEVICE},
                                            {"no-pairs", no_argument, NULL, NO_PAIRS},
                                            {"json", no_argument, NULL, JSON},
                                            {"help", no_argument, NULL, HELP},
                                            {0}};
    const char *library = NULL;
    bool is_without = false;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case MODELS:
            self->folder = optarg;
            break;
        case THREADS:
            threads_take(&self->turns, optarg);
            break;
        case WINDOWS:
            self->turns.turns = turns_parse(optarg);
            break;
        case SECONDS:
            self->turns.seconds = seconds_parse(optarg);
            break;
        case ORT:
            library = optarg;
            break;
        case NO_ORT:
            is_without = true;
            break;
        case DEVICE:
            self->turns.device = optarg;
            break;
        case NO_PAIRS:
            self->has_pairs = false;
            break;
        case JSON:
            self->is_json = true;
            break;
        case HELP:
            usage(stdout, EXIT_SUCCESS);
        default:
            usage(stderr, SP_EXIT_USAGE);
        }
    }
    if (self->turns.point_count == 0) threads_default(&self->turns);
    self->turns.library = library_choose(library, is_without, self->turns.device);
    models_take(self, argc - optind, argv + optind);
}

/* ---- the benchmark ---- */

static sp_status models_measure(const arguments *self, figures *room)
{
    for (uint32_t i = 0; i < self->model_count; i++) {
        TRY(turns_measure(&self->turns, &self->models[i], room));
        if (self->is_json) report_print_json(room);
        else report_print(room);
    }
    return SP_OK;
}

static sp_status pairs_measure(const arguments *self)
{
    for (uint32_t i = 0; self->has_pairs && i + 1 < self->model_count; i++) {
        const turns_model *pair = &self->models[i];
        pair_figures result;
        TRY(turns_measure_pair(&self->turns, &pair[0], &pair[1], &result));
        if (self->is_json) report_print_pair_json(pair[0].name, pair[1].name, &result);
        else report_print_pair(pair[0].name, pair[1].name, &result);
    }
    return SP_OK;
}

int main(int argc, char **argv)
{
    static arguments self = {.turns = {.turns = 5, .seconds = 0.5},
                             .folder = SP_BENCH_DATA "/models",
                             .has_pairs = true};
    static figures room;
    self.turns.cores = sp_thread_core_count();
    arguments_take(&self, argc, argv);
    if (self.is_json) bench_header("bench_batching");
    sp_status status = models_measure(&self, &room);
    if (status == SP_OK) status = pairs_measure(&self);
    if (status == SP_OK) return EXIT_SUCCESS;
    fprintf(stderr, "bench_batching: %s: %s\n", sp_status_name(status), failure_message());
    return EXIT_FAILURE;
}
