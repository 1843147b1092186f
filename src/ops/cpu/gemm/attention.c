/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: y = softmax(scale(q k^T) + mask) v, for some queries of a head at a time, whose scores
 * never leave the cache. The scores are computed transposed, [keys][queries]: then neither the keys
 * nor the weights of the second product are moved, since the left-hand side of a product may have
 * any strides, and a softmax is one of columns. Each value is rounded as by the kernels of the
 * steps. */
#include "base/macros.h"
#include "ops/cpu/gemm/gemm_part.h"
#include "ops/cpu/gemm/panel.h"
#include "ops/cpu/reduce/softmax_columns_f32.h"

enum { PANEL = SP_GEMM_PANEL };

/* The operands of one head. */
typedef struct head {
    const sp_attention_constants *k;
    const float *query, *key, *value, *mask; /* mask: NULL without one */
    float *y;
} head;

/* What is computed at a time: queries [first, first + count), and panels of them. */
typedef struct query_part {
    int64_t first, count, panels;
} query_part;

/* ---- scale and mask ---- */

static void scale_floats(const sp_attention_scale *scale, float *x, int64_t count)
{
    const sp_vector by = sp_vector_splat(scale->number);
    if (scale->kind == SP_SCALE_DIVIDES) {
        for (int64_t i = 0; i < count; i += SP_VECTOR) {
            sp_vector_store(x + i, sp_vector_load(x + i) / by);
        }
    } else if (scale->kind == SP_SCALE_MULTIPLIES) {
        for (int64_t i = 0; i < count; i += SP_VECTOR) {
            sp_vector_store(x + i, sp_vector_load(x + i) * by);
        }
    }
}

/* One mask for all queries. */
static void add_row(const float *mask, int64_t keys, int64_t width, float *scores)
{
    for (int64_t i = 0; i < keys; i++, scores += width) {
        const sp_vector addend = sp_vector_splat(mask[i]);
        for (int64_t c = 0; c < width; c += SP_VECTOR) {
            sp_vector_store(scores + c, sp_vector_load(scores + c) + addend);
        }
    }
}

/* Adds masks of up to PANEL queries to their scores, some keys at a time. */
static void add_rows(const sp_attention_operand *of, const float *mask, int64_t count, int64_t keys,
                     int64_t width, float *scores)
{
    enum { KEYS = 64 };
    float panel[KEYS * PANEL];
    for (int64_t key = 0; key < keys; key += KEYS) {
        const int64_t some = keys - key < KEYS ? keys - key : KEYS;
        sp_panel_transpose(mask + key, of->row, count, some, panel);
        for (int64_t i = 0; i < some; i++) {
            float *to = scores + (key + i) * width;
            for (int64_t c = 0; c < PANEL; c += SP_VECTOR) {
                sp_vector_store(to + c,
                                sp_vector_load(to + c) + sp_vector_load(panel + i * PANEL + c));
            }
        }
    }
}

static void add_mask(const head *h, const query_part *p, float *scores)
{
    const sp_attention_operand *of = &h->k->mask;
    const int64_t keys = h->k->keys, width = p->panels * PANEL;
    const int64_t first = SP_PLANTED(attention_first_mask) ? 0 : p->first;
    if (of->row == 0) {
        add_row(h->mask, keys, width, scores);
        return;
    }
    for (int64_t c = 0; c < p->count; c += PANEL) {
        add_rows(of, h->mask + (first + c) * of->row, p->count - c, keys, width, scores + c);
    }
}

/* ---- the products ---- */

/* The queries as panels, scaled; those beyond the last are zeros. */
static void load_queries(const head *h, const query_part *p, float *panels)
{
    const sp_attention_operand *of = &h->k->query;
    const int64_t depth = h->k->depth;
    for (int64_t i = 0; i < p->panels; i++) {
        sp_panel_transpose(h->query + (p->first + i * PANEL) * of->row, of->row,
                           p->count - i * PANEL, depth, panels + i * PANEL * depth);
    }
    if (SP_PLANTED(attention_scales_late)) return;
    scale_floats(&h->k->of_query, panels, p->panels * PANEL * depth);
}

/* scores[keys][queries], each the sum of the product of the queries with the keys. */
static void compute_scores(const head *h, const query_part *p, const float *queries, float *scores)
{
    const sp_attention_constants *k = h->k;
    const int64_t width = p->panels * PANEL;
    const sp_gemm_constants product = {.rows = k->keys,
                                       .columns = width,
                                       .depth = k->depth,
                                       .a_row = k->key.row,
                                       .a_depth = k->key.column,
                                       .alpha = 1,
                                       .is_padded = true};
    const sp_gemm_operands operands = {.k = &product,
                                       .a = h->key,
                                       .b = queries,
                                       .y = scores,
                                       .y_row = width,
                                       .b_depth = PANEL,
                                       .b_panel = PANEL * k->depth};
    const sp_gemm_part part = {
        .end = p->panels, .whole = p->panels, .panels = p->panels, .last = k->keys};
    SP_KERNEL(gemm_part)(&operands, &part);
}

/* The product of the weights, transposed as the scores, with the values. */
static void weigh_values(const head *h, const query_part *p, const float *weights)
{
    const sp_attention_constants *k = h->k;
    const int64_t panels = (k->columns + PANEL - 1) / PANEL;
    const sp_gemm_constants product = {.rows = p->count,
                                       .columns = k->columns,
                                       .depth = k->keys,
                                       .a_row = 1,
                                       .a_depth = p->panels * PANEL,
                                       .alpha = 1};
    const sp_gemm_operands operands = {.k = &product,
                                       .a = weights,
                                       .b = h->value,
                                       .y = h->y + p->first * k->y.row,
                                       .y_row = k->y.row,
                                       .b_depth = k->value.row,
                                       .b_panel = PANEL};
    const sp_gemm_part part = {
        .end = panels, .whole = k->columns / PANEL, .panels = panels, .last = p->count};
    SP_KERNEL(gemm_part)(&operands, &part);
}

static void run_part(const head *h, const query_part *p)
{
    _Alignas(64) float queries[SP_ATTENTION_QUERIES], scores[SP_ATTENTION_SCORES];
    const int64_t width = p->panels * PANEL, keys = h->k->keys;
    load_queries(h, p, queries);
    compute_scores(h, p, queries, scores);
    if (SP_PLANTED(attention_scales_late)) scale_floats(&h->k->of_query, scores, width * keys);
    scale_floats(&h->k->of_scores, scores, width * keys);
    if (h->mask != NULL) add_mask(h, p, scores);
    sp_softmax_columns_f32(scores, width, width, keys);
    weigh_values(h, p, scores);
}

/* ---- tiles ---- */

static head find_head(const sp_tile *tile)
{
    const sp_attention_constants *k = tile->constants;
    head h = {.k = k,
              .query = (const float *)tile->bindings[0] + k->query.first,
              .key = (const float *)tile->bindings[1] + k->key.first,
              .value = (const float *)tile->bindings[2] + k->value.first,
              .y = tile->bindings[k->has_mask ? 4 : 3]};
    if (k->has_mask) h.mask = (const float *)tile->bindings[3] + k->mask.first;
    int64_t batch = tile->index[2];
    for (uint32_t i = k->batch_rank; i-- > 0; batch /= k->batch_dims[i]) {
        const int64_t at = batch % k->batch_dims[i];
        h.query += at * k->query.batch[i];
        h.key += at * k->key.batch[i];
        h.value += at * k->value.batch[i];
        h.y += at * k->y.batch[i];
        if (k->has_mask) h.mask += at * k->mask.batch[i];
    }
    return h;
}

sp_status SP_KERNEL(attention_f32)(const sp_tile *tile)
{
    const sp_attention_constants *k = tile->constants;
    const head h = find_head(tile);
    const int64_t width = k->part_panels * PANEL;
    const int64_t first = tile->index[0] * k->tile_rows;
    const int64_t last = first + k->tile_rows < k->rows ? first + k->tile_rows : k->rows;
    for (int64_t at = first; at < last; at += width) {
        query_part p = {.first = at, .count = last - at < width ? last - at : width};
        p.panels = (p.count + PANEL - 1) / PANEL;
        run_part(&h, &p);
    }
    return SP_OK;
}
