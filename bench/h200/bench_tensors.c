/* SPDX-License-Identifier: Apache-2.0 */
/* Models on a GPU as PyTorch runs them: with tensors on the GPU, each call waited for. Runs of one
 * row from 1, 8 and 31 threads, beside sp_model_run of the same row in host memory; and batches of
 * 64 and 256 rows from one thread, in f32 and with bf16 products. Prints one JSON line per case;
 * bench/h200/bench_torch.py prints PyTorch's for the same networks, bench/h200/compare.py both. */
#include <streampool/device.h>
#include <streampool/model.h>
#include <streampool/model_tensors.h>
#include <streampool/stream.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/heap.h"
#include "bench_threads.h"

#define MOST_ROWS 256

static const uint32_t points[] = {1, 8, 31};
static const int64_t batches[] = {64, MOST_ROWS};
#define POINTS 3
#define BATCHES 2

static const char *const names[] = {"torch_linear",  "torch_mlp",      "torch_mha",
                                    "torch_encoder", "torch_encoder6", "torch_conv1d",
                                    "torch_lstm",    "torch_bert",     "torch_resnet"};
#define NAMES (sizeof names / sizeof names[0])

typedef struct subject {
    sp_device device;
    sp_model model;
    sp_host_tensor input; /* of `rows` rows */
    sp_tensor x;          /* the same on the GPU */
    uint64_t row_bytes;
    uint64_t output_bytes; /* of a row */
} subject;

static void *memory_of(uint64_t bytes)
{
    void *data = sp_malloc(bytes);
    if (data != NULL) return data;
    fprintf(stderr, "benchmark: no memory\n");
    exit(1);
}

/* ---- calls ---- */

static void run_on_tensors(void *ctx, uint64_t count)
{
    const subject *s = ctx;
    const sp_model_tensor input = {.tensor = s->x};
    sp_stream stream;
    bench_check(sp_stream_current(s->device, &stream) == SP_OK, sp_last_error());
    for (uint64_t i = 0; i < count; i++) {
        sp_model_tensor output = {0};
        bench_check(sp_model_run_tensors(s->model, stream, NULL, &input, 1, &output, 1) == SP_OK,
                    sp_last_error());
        bench_check(sp_stream_synchronize(stream) == SP_OK, sp_last_error());
        sp_tensor_release(output.tensor);
    }
}

static void run_on_host(void *ctx, uint64_t count)
{
    const subject *s = ctx;
    const uint64_t bytes = s->output_bytes * (uint64_t)s->input.shape[0];
    void *data = memory_of(bytes);
    for (uint64_t i = 0; i < count; i++) {
        sp_host_tensor output = {.data = data, .capacity = bytes};
        bench_check(sp_model_run(s->model, &s->input, 1, &output, 1) == SP_OK, sp_last_error());
    }
    sp_free(data);
}

/* ---- subjects ---- */

static void set_rows(subject *s, int64_t rows)
{
    sp_host_tensor *input = &s->input;
    input->shape[0] = rows;
    input->bytes = s->row_bytes * (uint64_t)rows;
    sp_tensor_release(s->x);
    bench_check(sp_tensor_from_host(s->device, input->dtype, input->rank, input->shape, input->data,
                                    input->bytes, &s->x) == SP_OK,
                sp_last_error());
}

static void fill(void *data, sp_dtype dtype, uint64_t count)
{
    uint32_t state = 7;
    for (uint64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        if (dtype == SP_I64) ((int64_t *)data)[i] = (int64_t)(state >> 8) % 1000;
        else ((float *)data)[i] = (float)(state >> 8) / (float)(1u << 23) - 1;
    }
}

/* False if the folder has no such model. */
static bool subject_open(subject *s, const char *folder, const char *name, sp_precision precision)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/models/%s/model.onnx", folder, name);
    const sp_model_options options = {.device = s->device, .precision = precision};
    if (access(path, F_OK) != 0) return false;
    bench_check(sp_model_load(path, &options, &s->model) == SP_OK, sp_last_error());
    sp_port port;
    bench_check(sp_model_get_input(s->model, 0, &port) == SP_OK, sp_last_error());
    bench_check(port.dtype == SP_F32 || port.dtype == SP_I64, "the input's type");
    uint64_t count = 1;
    for (uint32_t d = 1; d < port.rank; d++) count *= (uint64_t)port.shape[d];
    s->row_bytes = count * (port.dtype == SP_I64 ? sizeof(int64_t) : sizeof(float));
    s->input = (sp_host_tensor){.dtype = port.dtype, .rank = port.rank};
    memcpy(s->input.shape, port.shape, sizeof port.shape);
    s->input.data = memory_of(s->row_bytes * MOST_ROWS);
    fill(s->input.data, port.dtype, count * MOST_ROWS);
    set_rows(s, 1);
    sp_host_tensor output = {0};
    bench_check(sp_model_run(s->model, &s->input, 1, &output, 1) == SP_OK, sp_last_error());
    s->output_bytes = output.bytes;
    sp_host_tensor_free(&output);
    return true;
}

static void subject_close(subject *s)
{
    sp_tensor_release(s->x);
    s->x = (sp_tensor){0};
    sp_model_release(s->model);
    sp_free(s->input.data);
}

/* Both ways have the same bits. */
static void check_bits(const subject *s)
{
    const uint64_t bytes = s->output_bytes * (uint64_t)s->input.shape[0];
    void *data = memory_of(bytes);
    sp_host_tensor wanted = {0};
    const sp_model_tensor input = {.tensor = s->x};
    sp_model_tensor output = {0};
    bench_check(sp_model_run(s->model, &s->input, 1, &wanted, 1) == SP_OK, sp_last_error());
    bench_check(sp_model_run_tensors(s->model, (sp_stream){0}, NULL, &input, 1, &output, 1) ==
                    SP_OK,
                sp_last_error());
    bench_check(sp_tensor_read(output.tensor, data, bytes) == SP_OK, sp_last_error());
    bench_check(memcmp(data, wanted.data, bytes) == 0, "the bits of a run on tensors");
    sp_tensor_release(output.tensor);
    sp_host_tensor_free(&wanted);
    sp_free(data);
}

/* ---- cases ---- */

static void print_case(const char *name, const char *memory, const char *type, int64_t rows,
                       uint32_t threads, const bench_figure *figure)
{
    printf("{\"case\":\"%s_%s\",\"type\":\"%s\",\"rows\":%d,\"threads\":%u,"
           "\"samples_per_second\":%.0f,\"min\":%.0f,\"max\":%.0f}\n",
           name, memory, type, (int)rows, threads, (double)rows * 1e9 / figure->median,
           (double)rows * 1e9 / figure->max, (double)rows * 1e9 / figure->min);
    fflush(stdout);
}

static void bench_rows(subject *s, const char *name)
{
    bench_figure on_tensors[POINTS], on_host[POINTS];
    const bench_side sides[] = {{run_on_tensors, s, on_tensors}, {run_on_host, s, on_host}};
    bench_threads(sides, 2, points, POINTS);
    for (uint32_t i = 0; i < POINTS; i++) {
        print_case(name, "tensors", "f32", 1, points[i], &on_tensors[i]);
        print_case(name, "host", "f32", 1, points[i], &on_host[i]);
    }
}

static void bench_batches(subject *s, const char *name, const char *type)
{
    for (uint32_t i = 0; i < BATCHES; i++) {
        set_rows(s, batches[i]);
        check_bits(s);
        const bench_figure figure = bench_ns(run_on_tensors, s);
        print_case(name, "tensors", type, batches[i], 1, &figure);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_tensors DATA, a folder with models/torch_mlp/model.onnx\n");
        return 2;
    }
    bench_header("bench_tensors");
    subject s = {0};
    bench_check(sp_device_open("cuda:0", &s.device) == SP_OK, sp_last_error());
    for (uint32_t i = 0; i < NAMES; i++) {
        if (!subject_open(&s, argv[1], names[i], SP_PRECISION_DEFAULT)) continue;
        check_bits(&s);
        bench_rows(&s, names[i]);
        bench_batches(&s, names[i], "f32");
        subject_close(&s);
        bench_check(subject_open(&s, argv[1], names[i], SP_PRECISION_BF16), "the file is gone");
        bench_batches(&s, names[i], "bf16");
        subject_close(&s);
    }
    sp_device_close(s.device);
    return 0;
}
