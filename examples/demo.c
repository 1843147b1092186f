/* SPDX-License-Identifier: Apache-2.0 */
/* Finds a face with one model from 1, 2, 8 and 31 threads at the same time.
 *
 * First each thread's picture is run alone; then all of them together must give the same bits, and
 * thread 0 the result of another program. The face is drawn into a copy of its picture. The exit
 * code is 1 if bits differ, the reference is missed, or no face is found. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <streampool/model.h>

#include "common.h"
#include "detector.h"
#include "face.h"
#include "parallel.h"
#include "picture.h"
#include "png.h"

#define EXIT_USAGE 2
#define MAX_FACES 8
#define ENLARGE 4 /* scale of the written pictures */

static const int thread_counts[] = {1, 2, 8, PARALLEL_MAX_THREADS};

typedef struct demo_state {
    sp_model model;
    rgb_picture picture;
    detector_input inputs[PARALLEL_MAX_THREADS];
    detector_result expected[PARALLEL_MAX_THREADS];
    detector_result reference;
    bool has_reference;
} demo_state;

/* ---- files ---- */

/* The four outputs in sequence, as little-endian floats, which is their layout in memory. */
static bool read_result(const char *path, detector_result *out)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return false;
    }
    const bool is_read = fread(out, sizeof *out, 1, file) == 1 && fgetc(file) == EOF;
    fclose(file);
    if (!is_read) fprintf(stderr, "%s: must have %zu bytes\n", path, sizeof *out);
    return is_read;
}

static bool read_picture(const demo_arguments *arguments, rgb_picture *out)
{
    char path[PATH_BYTES];
    if (!path_join(arguments->data, "astronaut.ppm", path)) return false;
    const char *used = arguments->input != NULL ? arguments->input : path;
    return picture_read_ppm(used, DETECTOR_SIDE, DETECTOR_SIDE, out);
}

static bool demo_load(const demo_arguments *arguments, demo_state *demo)
{
    char path[PATH_BYTES];
    if (!read_picture(arguments, &demo->picture)) return false;
    demo->has_reference = arguments->input == NULL;
    if (!path_join(arguments->data, "reference.f32", path)) return false;
    if (demo->has_reference && !read_result(path, &demo->reference)) return false;
    if (!path_join(arguments->data, "model.onnx", path)) return false;
    if (sp_model_load(path, NULL, &demo->model) == SP_OK) return true;
    fprintf(stderr, "%s: %s\n", path, sp_last_error());
    return false;
}

/* ---- running ---- */

static bool run_alone(demo_state *demo)
{
    for (int i = 0; i < PARALLEL_MAX_THREADS; i++) {
        detector_prepare(&demo->picture, i, &demo->inputs[i]);
        if (!detector_run(demo->model, &demo->inputs[i], &demo->expected[i])) return false;
    }
    return true;
}

/* Prints the device and the head of the table. */
static bool print_head(const demo_state *demo)
{
    sp_model_info model;
    sp_device_info device;
    if (sp_model_get_info(demo->model, &model) != SP_OK) return false;
    if (sp_device_get_info(model.device, &device) != SP_OK) return false;
    printf("%u nodes on the device %s; at most %u runs at once\n\n", model.node_count, device.kind,
           device.run_slots);
    printf("%7s  %8s  %15s  %16s  %14s  %8s\n", "", "", "difference to", "", "most in flight",
           "computed");
    printf("%7s  %8s  %15s  %16s  %14s  %8s\n", "threads", "runs/s", "the reference", "bits equal",
           "so far", "together");
    return true;
}

static sp_model_info info_of(sp_model model)
{
    sp_model_info info = {0};
    (void)sp_model_get_info(model, &info);
    return info;
}

/* `merged` is how many runs were computed together with others. */
static void print_row(const demo_state *demo, int threads, const parallel_outcome *outcome,
                      uint64_t merged)
{
    char difference[32] = "none";
    if (demo->has_reference) {
        snprintf(difference, sizeof difference, "%.2e", (double)outcome->difference);
    }
    char equal[64];
    snprintf(equal, sizeof equal, "%llu of %llu", (unsigned long long)outcome->equal_runs,
             (unsigned long long)outcome->runs);
    const sp_model_info info = info_of(demo->model);
    printf("%7d  %8.1f  %15s  %16s  %14u  %8llu\n", threads,
           (double)outcome->runs / outcome->seconds, difference, equal, info.most_in_flight,
           (unsigned long long)merged);
    fflush(stdout);
}

/* False if a run fails or gives wrong numbers. */
static bool run_together(const demo_state *demo, double seconds)
{
    const parallel_work work = {
        .model = demo->model,
        .inputs = demo->inputs,
        .expected = demo->expected,
        .reference = demo->has_reference ? &demo->reference : NULL,
        .seconds = seconds,
    };
    bool are_equal = true;
    bool are_close = true;
    for (size_t i = 0; i < sizeof thread_counts / sizeof thread_counts[0]; i++) {
        parallel_outcome outcome;
        const uint64_t before = info_of(demo->model).batched_runs;
        if (!parallel_run(&work, thread_counts[i], &outcome)) return false;
        print_row(demo, thread_counts[i], &outcome, info_of(demo->model).batched_runs - before);
        are_equal = are_equal && outcome.equal_runs == outcome.runs;
        are_close = are_close && outcome.is_close;
    }
    printf("\n");
    if (!are_equal) printf("FAILED: bits differ\n");
    if (!are_close) printf("FAILED: the reference is missed\n");
    return are_equal && are_close;
}

/* ---- faces ---- */

static int to_pixels(float fraction, int side)
{
    return (int)lrintf(fminf(fmaxf(fraction, -1), 2) * (float)side);
}

static void print_face(const found_face *face)
{
    static const char *const names[FACE_POINTS] = {"right eye", "left eye",  "nose",
                                                   "mouth",     "right ear", "left ear"};
    printf("a face found: score %.3f, box from (%d, %d) to (%d, %d) of %d x %d pixels\n",
           (double)face->score, to_pixels(face->corners[0].x, DETECTOR_SIDE),
           to_pixels(face->corners[0].y, DETECTOR_SIDE),
           to_pixels(face->corners[1].x, DETECTOR_SIDE),
           to_pixels(face->corners[1].y, DETECTOR_SIDE), DETECTOR_SIDE, DETECTOR_SIDE);
    for (int i = 0; i < FACE_POINTS; i++) {
        printf("  %-9s (%d, %d)\n", names[i], to_pixels(face->points[i].x, DETECTOR_SIDE),
               to_pixels(face->points[i].y, DETECTOR_SIDE));
    }
}

static void draw_face(rgb_picture *picture, const found_face *face)
{
    static const rgb_colour green = {0, 255, 0};
    static const rgb_colour yellow = {255, 230, 0};
    picture_draw_box(picture, to_pixels(face->corners[0].x, picture->width),
                     to_pixels(face->corners[0].y, picture->height),
                     to_pixels(face->corners[1].x, picture->width),
                     to_pixels(face->corners[1].y, picture->height), 3, green);
    for (int i = 0; i < FACE_POINTS; i++) {
        picture_draw_dot(picture, to_pixels(face->points[i].x, picture->width),
                         to_pixels(face->points[i].y, picture->height), 4, yellow);
    }
}

static bool write_picture(const char *folder, const char *name, const rgb_picture *picture)
{
    char path[PATH_BYTES];
    return path_join(folder, name, path) && png_write(path, picture);
}

/* Writes the input picture, and a copy with its faces; false if no face is found. */
static bool show_faces(const demo_state *demo, const char *folder)
{
    found_face faces[MAX_FACES];
    const int count = faces_find(&demo->expected[0], faces, MAX_FACES);
    if (count == 0) printf("FAILED: no face found\n");
    rgb_picture large;
    if (!picture_enlarge(&demo->picture, ENLARGE, &large)) return false;
    bool is_written = write_picture(folder, "demo_input.png", &large);
    for (int i = 0; i < count; i++) {
        print_face(&faces[i]);
        draw_face(&large, &faces[i]);
    }
    is_written = write_picture(folder, "demo_face.png", &large) && is_written;
    picture_deinit(&large);
    return is_written && count > 0;
}

/* ---- the program ---- */

static bool run_demo(const demo_arguments *arguments, demo_state *demo)
{
    if (!demo_load(arguments, demo) || !print_head(demo) || !run_alone(demo)) return false;
    const bool is_right = run_together(demo, arguments->seconds);
    return show_faces(demo, arguments->output) && is_right;
}

int main(int argc, char **argv)
{
    demo_arguments arguments;
    if (!arguments_parse(argc, argv, "--picture", &arguments)) {
        fprintf(stderr,
                "usage: demo DATA_FOLDER OUTPUT_FOLDER [--seconds S] [--picture FILE.ppm]\n");
        return EXIT_USAGE;
    }
    demo_state *demo = calloc(1, sizeof *demo);
    if (demo == NULL) {
        fprintf(stderr, "out of memory\n");
        return EXIT_FAILURE;
    }
    const bool is_right = run_demo(&arguments, demo);
    sp_model_release(demo->model);
    picture_deinit(&demo->picture);
    free(demo);
    return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
