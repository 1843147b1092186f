/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions whose kernel is as large as their stride: each output has one tap, so
 * they are pointwise convolutions with a filter for each tap, and a copy that puts the results of a
 * tap at their places. Segments have the channels of the transposed convolution's. */
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "plan/plan_blocks_maps.h"
#include "tensor/collapse.h"

/* The results of the taps are lanes of blocks, each tap's from a block of its own on; or they are
 * channels (filter, tap), in blocks or plain. */
typedef enum tap_layout { TAPS_OF_BLOCKS, TAPS_OF_CHANNELS, TAPS_OF_ROWS } tap_layout;

typedef struct transposed {
    const sp_conv_transpose_constants *k;
    tap_layout layout;
    int64_t images, taps, filters; /* filters: in whole blocks if the taps are of blocks */
    int64_t in, out;               /* pixels */
    sp_conv_constants conv;        /* the pointwise one */
} transposed;

static int64_t product(const int64_t *sizes)
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Has each output exactly one tap? */
static bool find_transposed(const sp_conv_transpose_constants *k, transposed *out)
{
    const sp_window_constants *w = &k->window;
    for (int i = 0; i < 3; i++) {
        const bool is_apart = w->kernel[i] == w->stride[i] && w->pad[i] == 0;
        if (!is_apart || (w->kernel[i] > 1 && w->dilation[i] != 1)) return false;
        if (w->in[i] < 1 || w->out[i] != w->in[i] * w->stride[i]) return false;
    }
    *out = (transposed){.k = k, .taps = product(w->kernel), .filters = k->filters};
    if (k->groups != 1 || out->taps > k->segment || k->segment % out->taps != 0) return false;
    if (k->channels < 1 || k->filters < 1) return false;
    out->images = w->planes / k->filters;
    out->in = product(w->in);
    out->out = product(w->out);
    return true;
}

static void set_conv(transposed *t, int64_t rows, int64_t columns)
{
    const int64_t channels =
        SP_PLANTED(transposed_segment) ? t->k->segment : t->k->segment / t->taps;
    t->conv = (sp_conv_constants){.groups = 1,
                                  .channels = t->k->channels,
                                  .filters = t->filters * t->taps,
                                  .in_h = rows,
                                  .in_w = columns,
                                  .out_h = rows,
                                  .out_w = columns,
                                  .kernel_h = 1,
                                  .kernel_w = 1,
                                  .stride_h = 1,
                                  .stride_w = 1,
                                  .dilation_h = 1,
                                  .dilation_w = 1,
                                  .segment = channels,
                                  .planes = t->images * t->filters * t->taps,
                                  .has_bias = t->k->has_bias,
                                  .activation = t->k->activation};
}

/* ---- the copy to the places of the results ---- */

/* Strides of the results and of the outputs: of an image, a filter or block of filters, and a
 * pixel; of the results those of a tap, too. */
typedef struct place_strides {
    int64_t x[4], y[3];
} place_strides;

static bool find_copy(const transposed *t, const place_strides *s, int64_t filters, int64_t lanes,
                      sp_copy_constants *out)
{
    const sp_window_constants *w = &t->k->window;
    const int64_t *in = w->in, *kernel = w->kernel, *size = w->out;
    const int64_t pixel = s->x[2], tap = s->x[3], to = s->y[2];
    const int64_t dims[] = {t->images, filters,   in[0], kernel[0], in[1],
                            kernel[1], kernel[2], in[2], lanes};
    const int64_t x[] = {s->x[0],
                         s->x[1],
                         in[1] * in[2] * pixel,
                         kernel[1] * kernel[2] * tap,
                         in[2] * pixel,
                         kernel[2] * tap,
                         tap,
                         pixel,
                         1};
    const int64_t plane = size[1] * size[2] * to, row = size[2] * to;
    const int64_t y[] = {s->y[0], s->y[1], kernel[0] * plane, plane, kernel[1] * row,
                         row,     to,      kernel[2] * to,    1};
    int64_t d[9], a[9], b[9];
    memcpy(d, dims, sizeof d);
    memcpy(a, x, sizeof a);
    memcpy(b, y, sizeof b);
    const uint32_t rank = sp__collapse(9, d, a, b);
    const uint64_t count = (uint64_t)(t->images * filters * t->out * lanes);
    if (rank > SP_KERNEL_RANK) return false;
    *out =
        (sp_copy_constants){.rank = rank, .element_bytes = sizeof(float), .count = (int64_t)count};
    memcpy(out->dims, d, rank * sizeof *d);
    memcpy(out->x, a, rank * sizeof *a);
    memcpy(out->y, b, rank * sizeof *b);
    return true;
}

/* Blocks of outputs from blocks of results. */
static bool find_block_copy(const transposed *t, sp_copy_constants *out)
{
    const int64_t blocks = t->filters / SP_CHANNEL_BLOCK, in = t->in * SP_CHANNEL_BLOCK;
    const int64_t to = t->out * SP_CHANNEL_BLOCK;
    const place_strides s = {.x = {t->taps * blocks * in, in, SP_CHANNEL_BLOCK, blocks * in},
                             .y = {blocks * to, to, SP_CHANNEL_BLOCK}};
    return find_copy(t, &s, blocks, SP_CHANNEL_BLOCK, out);
}

static bool find_plain_copy(const transposed *t, sp_copy_constants *out)
{
    const place_strides s = {.x = {t->filters * t->taps * t->in, t->taps * t->in, 1, t->in},
                             .y = {t->filters * t->out, t->out, 1}};
    return find_copy(t, &s, t->filters, 1, out);
}

static sp_plan_step copy_step(const sp_plan_step *step, const sp_copy_constants *k,
                              const sp_plan_binding *bindings)
{
    return (sp_plan_step){.kernel = SP_KERNEL_ID_copy_strided,
                          .node_name = step->node_name,
                          .op_name = "Reorder",
                          .binding_count = 2,
                          .bindings = bindings,
                          .constants = k,
                          .constant_bytes = sizeof *k};
}

/* ---- weights ---- */

/* A copy of a constant that is made once a model: [rows][columns], by strides. */
static sp_status pack_copy(sp_block_pass *pass, const sp_plan_binding *constant,
                           const int64_t dims[2], const int64_t strides[2], sp_plan_binding *out)
{
    sp_copy_constants k = {.element_bytes = sizeof(float),
                           .count = dims[0] * dims[1],
                           .dims = {dims[0], dims[1]},
                           .x = {strides[0], strides[1]},
                           .y = {dims[1], 1}};
    k.rank = sp__collapse(2, k.dims, k.x, k.y);
    const sp_packing what = {.kernel = SP_KERNEL_ID_copy_strided,
                             .constant_bytes = sizeof k,
                             .constants = &k,
                             .bytes = (uint64_t)k.count * sizeof(float)};
    return sp__plan_pack(pass->builder, constant->index, &what, out);
}

/* A number for each result of a filter. */
static sp_status pack_bias(sp_block_pass *pass, const transposed *t, const sp_plan_binding *bias,
                           sp_plan_binding *out)
{
    return pack_copy(pass, bias, (int64_t[]){t->filters, t->taps}, (int64_t[]){1, 0}, out);
}

/* Weights and bias in the lanes of the taps, each of which begins with a block. */
static sp_status pack_lanes(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                            sp_block_operands *out)
{
    const int64_t lanes = t->taps * t->filters, filters = t->k->filters;
    int32_t *rows = sp_calloc((size_t)lanes, sizeof *rows);
    if (rows == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
    sp_block_rows from = {.panels = lanes / SP_CHANNEL_BLOCK, .rows = rows};
    for (int64_t i = 0; i < lanes; i++) {
        const int64_t f = i % t->filters;
        rows[i] = f < filters ? (int32_t)(f * t->taps + i / t->filters) : -1;
    }
    from.depth = t->k->channels;
    from.row_stride = 1;
    from.depth_stride = filters * t->taps;
    sp_status status = sp__block_pack_rows(pass, &step->bindings[1], &from, &out->weights);
    for (int64_t i = 0; i < lanes; i++) rows[i] = rows[i] < 0 ? -1 : (int32_t)(i % t->filters);
    from.depth = 1;
    if (status == SP_OK && t->k->has_bias) {
        status = sp__block_pack_rows(pass, &step->bindings[2], &from, &out->bias);
    }
    sp_free(rows);
    return status;
}

/* As columns of a matrix, whose bias is a list. */
static sp_status pack_channels(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                               const sp_blocked_call *call, sp_block_operands *out)
{
    const int64_t columns = t->filters * t->taps;
    sp_pack pack = call->weights;
    pack.matrix.depth_stride = columns;
    pack.matrix.column_stride = 1;
    SP_TRY(sp__plan_pack_matrix(pass->builder, step->bindings[1].index, &pack, &out->weights));
    return t->k->has_bias ? pack_bias(pass, t, &step->bindings[2], &out->bias) : SP_OK;
}

/* ---- the steps ---- */

/* The pointwise convolution in blocks, which writes *root. */
static sp_status add_blocked(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                             sp_blocked_call *call, uint32_t root)
{
    sp_block_operands operands = {0};
    sp_plan_step conv = *step;
    sp_plan_binding bindings[SP_MAX_BINDINGS];
    memcpy(bindings, step->bindings, step->binding_count * sizeof *bindings);
    bindings[step->binding_count - 1].index = root;
    conv.bindings = bindings;
    SP_TRY(sp__block_set_maps(pass, step->bindings[0].index, call, &operands));
    if (t->layout == TAPS_OF_BLOCKS) SP_TRY(pack_lanes(pass, t, step, &operands));
    else SP_TRY(pack_channels(pass, t, step, call, &operands));
    return sp__block_add_call(pass, &conv, SP_KERNEL_ID_conv_blocked_f32, call, &operands);
}

static sp_status run_blocks(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                            sp_blocked_call *call, const sp_copy_constants *copy)
{
    const sp_image_form y = {t->images, t->k->filters, t->out, NULL};
    uint32_t root, to;
    SP_TRY(sp__block_add_root(pass, &call->y, &root));
    SP_TRY(add_blocked(pass, t, step, call, root));
    const sp_block_value from = pass->values[root];
    SP_TRY(sp__block_write(pass, sp__block_output(step)->index, &y, &to));
    const sp_plan_binding bindings[2] = {sp__block_binding(from.blocked, &from.form, false),
                                         sp__block_binding(to, &y, true)};
    const sp_plan_step place = copy_step(step, copy, bindings);
    return sp__plan_add_step(pass->builder, &place);
}

/* The plain results `root` are copied to the outputs. */
static sp_status place_plain(sp_block_pass *pass, const sp_plan_step *step, uint32_t root,
                             const sp_copy_constants *copy)
{
    const uint64_t bytes = (uint64_t)copy->count * sizeof(float);
    const sp_plan_binding bindings[2] = {{.where = SP_PLACE_ARENA, .index = root, .bytes = bytes},
                                         *sp__block_output(step)};
    const sp_plan_step place = copy_step(step, copy, bindings);
    return sp__block_plain(pass, &place);
}

static sp_status run_channels(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                              sp_blocked_call *call, const sp_copy_constants *copy)
{
    uint32_t root;
    SP_TRY(sp__block_add_recorded(pass, copy->count, &root));
    SP_TRY(add_blocked(pass, t, step, call, root));
    return place_plain(pass, step, root, copy);
}

static sp_status run_rows(sp_block_pass *pass, const transposed *t, const sp_plan_step *step,
                          const sp_blocked_call *call, const sp_copy_constants *copy)
{
    const int64_t filters = t->filters * t->taps;
    sp_plan_binding bindings[4] = {step->bindings[0]};
    uint32_t root, count = 2;
    SP_TRY(sp__block_add_recorded(pass, copy->count, &root));
    SP_TRY(pack_copy(pass, &step->bindings[1], (int64_t[]){filters, t->k->channels},
                     (int64_t[]){1, filters}, &bindings[1]));
    if (t->k->has_bias) SP_TRY(pack_bias(pass, t, &step->bindings[2], &bindings[count++]));
    bindings[count] = *sp__block_output(step);
    bindings[count++].index = root;
    sp_plan_step rows = *step;
    rows.kernel = SP_KERNEL_ID_conv_rows_f32;
    rows.binding_count = count;
    rows.bindings = bindings;
    rows.constants = &call->constants;
    rows.constant_bytes = sizeof call->constants;
    SP_TRY(sp__block_plain(pass, &rows));
    return place_plain(pass, step, root, copy);
}

/* ---- the choice ---- */

static bool find_blocked(const sp_block_pass *pass, const sp_plan_step *step, transposed *t,
                         sp_blocked_call *call)
{
    set_conv(t, 1, t->in); /* of neighbours in a row, as many as there are are computed together */
    const uint32_t x = step->bindings[0].index;
    if (!sp__blocked_conv(&t->conv, true, call)) return false;
    if (sp__block_is_like(pass, x, &call->x)) return true;
    return sp__blocked_conv(&t->conv, false, call);
}

/* The results of few filters are rows; those of filters that fill blocks stay in blocks. */
static bool find_layout(const sp_block_pass *pass, const sp_plan_step *step, transposed *t,
                        sp_blocked_call *call, sp_copy_constants *copy)
{
    const int64_t lanes = sp__channel_blocks(t->k->filters) * SP_CHANNEL_BLOCK;
    const sp_window_constants *w = &t->k->window;
    t->layout = TAPS_OF_ROWS;
    set_conv(t, w->in[0] * w->in[1], w->in[2]);
    if (sp__blocked_rows(&t->conv, call)) return find_plain_copy(t, copy);
    if (lanes * 2 > t->k->filters * 3) {
        t->layout = TAPS_OF_CHANNELS;
        return find_blocked(pass, step, t, call) && find_plain_copy(t, copy);
    }
    t->layout = TAPS_OF_BLOCKS;
    t->filters = lanes;
    return find_blocked(pass, step, t, call) && find_block_copy(t, copy);
}

sp_status sp__block_transposed(sp_block_pass *pass, const sp_plan_step *step, bool *is_done)
{
    const sp_conv_transpose_constants *k = step->constants;
    const sp_plan_binding *x = &step->bindings[0], *y = sp__block_output(step);
    transposed t;
    sp_blocked_call call;
    sp_copy_constants copy;
    if (x->where != SP_PLACE_ARENA || !find_transposed(k, &t)) return SP_OK;
    if (!sp__block_is_packable(pass, &step->bindings[1])) return SP_OK;
    if (k->has_bias && !sp__block_is_packable(pass, &step->bindings[2])) return SP_OK;
    if (!sp__block_is_whole(pass, x, t.images * k->channels * t.in)) return SP_OK;
    if (!sp__block_is_whole(pass, y, t.images * k->filters * t.out)) return SP_OK;
    if (k->filters > SP_BLOCK_PLANES / t.taps) return SP_OK;
    SP_TRY(sp__block_regroup(pass, x->index, t.images));
    if (!find_layout(pass, step, &t, &call, &copy)) return SP_OK;
    *is_done = true;
    switch (t.layout) {
    case TAPS_OF_ROWS:
        return run_rows(pass, &t, step, &call, &copy);
    case TAPS_OF_CHANNELS:
        return run_channels(pass, &t, step, &call, &copy);
    default:
        return run_blocks(pass, &t, step, &call, &copy);
    }
}
