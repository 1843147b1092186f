/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a batch has the bits of a run of that row alone, at every position, for every model of
 * shared data with a free batch axis. */
#include <string.h>

#include "base/heap.h"
#include "run_fixture.h"

#define MOST 64
#define SHARED (-1) /* an input shared by all rows */

typedef struct batch_model {
    const char *name;
    int in_axis[4]; /* the axis of rows of each input and output */
    int out_axis[4];
    int64_t size; /* of all free axes from the third on; 0: as in the file */
} batch_model;

static const batch_model batch_models[] = {
    {.name = "basic_pitch"},
    {.name = "magika_v3_3"},
    {.name = "ppocr_cls"},
    {.name = "ppocr_v4_det", .size = 64},
    {.name = "silero_vad_v4", .in_axis = {0, SHARED, 1, 1}, .out_axis = {0, 1, 1}},
    {.name = "silero_vad_v5", .in_axis = {0, 1, SHARED}, .out_axis = {0, 1}},
    {.name = "super_resolution_10"},
    {.name = "torch_bert"},
    {.name = "torch_conv1d"},
    {.name = "torch_encoder"},
    {.name = "torch_linear"},
    {.name = "torch_lstm"},
    {.name = "torch_mha"},
    {.name = "torch_mlp"},
    {.name = "torch_resnet"},
};

/* The memory layout of a tensor of n rows: `outer` times n pieces of `inner` bytes. */
typedef struct row_layout {
    uint64_t outer, inner;
} row_layout;

static row_layout layout_of(const sp_shape *row, sp_dtype dtype, int axis)
{
    row_layout layout = {1, sp_dtype_bytes(dtype)};
    for (int i = 0; i < (int)row->rank; i++) {
        uint64_t *which = i < axis ? &layout.outer : &layout.inner;
        if (i != axis) *which *= (uint64_t)row->dims[i];
    }
    return layout;
}

/* Row `index` of the generated rows: the file's row, rotated by that many elements. */
static void make_row(const sp_array *file, row_layout layout, uint32_t index, char *out)
{
    const uint64_t bytes = layout.outer * layout.inner;
    const uint64_t turn = index * sp_dtype_bytes(file->dtype) % bytes;
    memcpy(out, (const char *)file->data + turn, bytes - turn);
    memcpy(out + bytes - turn, file->data, turn);
}

/* Copies row `at` of n in or out of a batch. */
static void copy_row(row_layout layout, char *batch, uint64_t n, uint64_t at, char *row, bool is_in)
{
    for (uint64_t i = 0; i < layout.outer; i++) {
        char *place = batch + (i * n + at) * layout.inner;
        char *piece = row + i * layout.inner;
        memcpy(is_in ? place : piece, is_in ? piece : place, layout.inner);
    }
}

typedef struct batch_case {
    const batch_model *like;
    model_case c;
    sp_shape shapes[FIXTURE_PORTS]; /* of the inputs for one row */
    sp_host_tensor outputs[FIXTURE_PORTS];
    char *alone[MOST][FIXTURE_PORTS]; /* the result of each row alone */
} batch_case;

static row_layout input_layout(const batch_case *b, uint32_t i)
{
    return layout_of(&b->shapes[i], b->c.inputs[i].dtype, b->like->in_axis[i]);
}

/* Runs a batch of n rows that starts with row `first`. The caller frees the outputs. */
static void run_batch(const batch_case *b, uint32_t first, uint32_t n, uint32_t most,
                      sp_host_tensor *outputs)
{
    sp_host_tensor inputs[FIXTURE_PORTS];
    char *batches[FIXTURE_PORTS] = {0};
    for (uint32_t i = 0; i < b->c.input_count; i++) {
        inputs[i] = tensor_of(&b->c.inputs[i], NULL);
        if (b->like->in_axis[i] == SHARED) continue;
        const row_layout layout = input_layout(b, i);
        const uint64_t bytes = layout.outer * layout.inner;
        memcpy(inputs[i].shape, b->shapes[i].dims, b->shapes[i].rank * sizeof(int64_t));
        inputs[i].shape[b->like->in_axis[i]] = n;
        inputs[i].bytes = bytes * n;
        inputs[i].data = batches[i] = sp_malloc(bytes * n);
        char *row = sp_malloc(bytes);
        for (uint32_t k = 0; k < n; k++) {
            make_row(&b->c.inputs[i], layout, (first + k) % most, row);
            copy_row(layout, batches[i], n, k, row, true);
        }
        sp_free(row);
    }
    memset(outputs, 0, FIXTURE_PORTS * sizeof *outputs);
    CHECK_OK(sp_model_run(b->c.model, inputs, b->c.input_count, outputs, b->c.output_count));
    for (uint32_t i = 0; i < b->c.input_count; i++) sp_free(batches[i]);
}

static row_layout output_layout(const batch_case *b, const sp_host_tensor *output, uint32_t i)
{
    sp_shape row = {.rank = output->rank};
    memcpy(row.dims, output->shape, output->rank * sizeof(int64_t));
    CHECK(b->like->out_axis[i] < (int)row.rank);
    return layout_of(&row, output->dtype, b->like->out_axis[i]);
}

static bool has_bits_of_rows_alone(const batch_case *b, uint32_t first, uint32_t n, uint32_t most)
{
    sp_host_tensor outputs[FIXTURE_PORTS];
    bool is_same = true;
    run_batch(b, first, n, most, outputs);
    for (uint32_t i = 0; i < b->c.output_count; i++) {
        const row_layout layout = output_layout(b, &outputs[i], i);
        const uint64_t bytes = layout.outer * layout.inner;
        CHECK_EQ_INT(outputs[i].shape[b->like->out_axis[i]], n);
        char *row = sp_malloc(bytes);
        for (uint32_t k = 0; k < n; k++) {
            copy_row(layout, outputs[i].data, n, k, row, false);
            is_same = is_same && memcmp(row, b->alone[(first + k) % most][i], bytes) == 0;
        }
        sp_free(row);
        sp_host_tensor_free(&outputs[i]);
    }
    return is_same;
}

/* Chooses the shapes of one row: those of the file, or of a smaller picture, which has its first
 * elements. */
static void choose_shapes(batch_case *b)
{
    for (uint32_t i = 0; i < b->c.input_count; i++) {
        b->shapes[i] = b->c.inputs[i].shape;
        const int axis = b->like->in_axis[i];
        if (axis != SHARED) CHECK_EQ_INT(b->shapes[i].dims[axis], 1);
        for (uint32_t k = 2; b->like->size > 0 && k < b->shapes[i].rank; k++) {
            CHECK(b->shapes[i].dims[k] >= b->like->size);
            b->shapes[i].dims[k] = b->like->size;
        }
    }
}

/* Fewer sizes if `most` is small: 1, 4, 13, then the largest. */
static uint32_t next_size(uint32_t n, uint32_t most)
{
    const uint32_t next = most == MOST ? n + 1 : n * 3 + 1;
    return n < most && next > most ? most : next;
}

static void check_model(const batch_model *like)
{
    batch_case *b = sp_calloc(1, sizeof *b);
    b->like = like;
    const uint32_t most = (uint32_t)test_count(MOST, 13);
    /* Every size is a plan, with one context per run slot. */
    const sp_model_options options = {.max_plans = 2};
    const bool is_there = case_open(like->name, &options, &b->c);
    if (!is_there) {
        sp_free(b);
        SKIP("no shared data");
    }
    choose_shapes(b);
    for (uint32_t row = 0; row < most; row++) {
        run_batch(b, row, 1, most, b->outputs);
        for (uint32_t i = 0; i < b->c.output_count; i++) b->alone[row][i] = b->outputs[i].data;
    }
    for (uint32_t n = 1; n <= most; n = next_size(n, most)) {
        if (!has_bits_of_rows_alone(b, n, n, most)) {
            CHECK(false);
            test_note("%s: a batch of %u has other bits than its rows alone", like->name, n);
        }
    }
    for (uint32_t row = 0; row < most; row++) {
        for (uint32_t i = 0; i < b->c.output_count; i++) sp_free(b->alone[row][i]);
    }
    case_close(&b->c);
    sp_free(b);
}

TEST(a_row_of_a_batch_has_the_bits_of_the_row_alone_in_every_model)
{
    for (size_t i = 0; i < SP_COUNT_OF(batch_models); i++) check_model(&batch_models[i]);
}

TEST_MAIN
