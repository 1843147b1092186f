/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: y = softmax(mask(scale(q k^T))) v, for some queries of a head at a time, whose scores
 * never leave the cache. The scores are computed transposed, [keys][queries]: then neither the keys
 * nor the weights of the second product are moved, since the left-hand side of a product may have
 * any strides, and a softmax is one of columns. Each value is rounded as by the kernels of the
 * steps. */
#include "base/macros.h"
#include "base/size.h"
#include "ops/cpu/gemm/gemm_part.h"
#include "ops/cpu/gemm/panel.h"
#include "ops/cpu/reduce/softmax_columns_f32.h"

enum { PANEL = SP_GEMM_PANEL };

/* The operands of one head. */
typedef struct head {
    const sp_attention_constants *k;
    /* The first three have elements of two bytes if the constants say so; mask: NULL without one.
     */
    const float *query, *key, *value, *mask;
    const uint8_t *condition; /* or NULL */
    float *y;
    int64_t y_first; /* of the head, an element of y */
} head;

/* What is computed at a time: queries [first, first + count), and panels of them. */
typedef struct query_part {
    int64_t first, count, panels;
} query_part;

/* ---- scale and mask ---- */

/* Whole vectors. */
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

/* Keys of a mask, and of a condition, that are transposed at a time: 4 KB of stack. */
enum { MASKED_KEYS = 64, FILLED_KEYS = 32 };

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
static SP_NOINLINE void add_rows(const sp_attention_operand *of, const float *mask, int64_t count,
                                 int64_t keys, int64_t width, float *scores)
{
    float panel[MASKED_KEYS * PANEL];
    for (int64_t key = 0; key < keys; key += MASKED_KEYS) {
        const int64_t some = sp_size_least(keys - key, MASKED_KEYS);
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

/* ---- conditions ---- */

/* Of a vector of scores, those become `fill` for which `marks` has a NaN. */
static SP_ALWAYS_INLINE void fill_marked(sp_vector marks, sp_vector fill, float *scores)
{
    const sp_vector_mask mask = sp_vector_unordered(marks, marks);
    sp_vector_store(scores, sp_vector_select(mask, fill, sp_vector_load(scores)));
}

/* NaN where a score is filled, else 0. */
static void find_marks(const head *h, const uint8_t *condition, int64_t count, float *marks)
{
    const bool fills_false = h->k->fills_false;
    SP_INDEPENDENT for (int64_t i = 0; i < count; i++)
    {
        marks[i] = (condition[i] == 0) == fills_false ? __builtin_nanf("") : 0.0f;
    }
}

/* The conditions of up to PANEL queries, some keys at a time. */
static SP_NOINLINE void fill_rows(const head *h, const uint8_t *condition, int64_t count,
                                  int64_t width, float *scores)
{
    float marks[PANEL * FILLED_KEYS], panel[FILLED_KEYS * PANEL];
    const sp_vector fill = sp_vector_splat(h->k->fill);
    for (int64_t key = 0; key < h->k->keys; key += FILLED_KEYS) {
        const int64_t some = sp_size_least(h->k->keys - key, FILLED_KEYS);
        for (int64_t i = 0; i < sp_size_least(count, PANEL); i++) {
            find_marks(h, condition + i * h->k->condition.row + key, some, marks + i * FILLED_KEYS);
        }
        sp_panel_transpose(marks, FILLED_KEYS, count, some, panel);
        for (int64_t i = 0; i < some; i++) {
            float *to = scores + (key + i) * width;
            for (int64_t c = 0; c < PANEL; c += SP_VECTOR) {
                fill_marked(sp_vector_load(panel + i * PANEL + c), fill, to + c);
            }
        }
    }
}

static void fill_scores(const head *h, const query_part *p, float *scores)
{
    const int64_t row = h->k->condition.row, width = p->panels * PANEL;
    if (row != 0) {
        for (int64_t c = 0; c < p->count; c += PANEL) {
            fill_rows(h, h->condition + (p->first + c) * row, p->count - c, width, scores + c);
        }
        return;
    }
    for (int64_t i = 0; i < h->k->keys; i++) { /* the same for all queries */
        if ((h->condition[i] == 0) != h->k->fills_false) continue;
        for (int64_t c = 0; c < width; c++) scores[i * width + c] = h->k->fill;
    }
}

static void mask_scores(const head *h, const query_part *p, float *scores)
{
    const bool is_last = h->k->is_condition_last && !SP_PLANTED(attention_fills_first);
    if (h->condition != NULL && !is_last) fill_scores(h, p, scores);
    if (h->mask != NULL) add_mask(h, p, scores);
    if (h->condition != NULL && is_last) fill_scores(h, p, scores);
}

/* ---- the products ---- */

static void round_operand(const head *h, float *x, int64_t count)
{
    if (h->k->rounding != SP_ROUNDING_NONE) SP_KERNEL(round_floats)(h->k->rounding, x, count);
}

/* `count` elements, `stride` apart from element `first` on, of f16 or bf16. */
static void widen(const head *h, const float *from, int64_t first, int64_t stride, int64_t count,
                  float *to)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] = SP_KERNEL(widen_half)(h->k->rounding, from, first + i * stride);
    }
}

/* Queries of two bytes as panels. */
static SP_NOINLINE void load_halves(const head *h, const query_part *p, float *panels)
{
    const int64_t depth = h->k->depth;
    float row[SP_ATTENTION_DEPTH];
    memset(panels, 0, (size_t)(p->panels * PANEL * depth) * sizeof *panels);
    for (int64_t q = 0; q < p->count; q++) {
        widen(h, h->query, (p->first + q) * h->k->query.row, 1, depth, row);
        float *to = panels + q / PANEL * PANEL * depth + q % PANEL;
        for (int64_t d = 0; d < depth; d++) to[d * PANEL] = row[d];
    }
}

/* The queries as panels, scaled; those beyond the last are zeros. */
static void load_queries(const head *h, const query_part *p, float *panels)
{
    const sp_attention_operand *of = &h->k->query;
    const int64_t depth = h->k->depth;
    if (h->k->is_half) {
        load_halves(h, p, panels);
        return;
    }
    for (int64_t i = 0; i < p->panels; i++) {
        sp_panel_transpose(h->query + (p->first + i * PANEL) * of->row, of->row,
                           p->count - i * PANEL, depth, panels + i * PANEL * depth);
    }
    if (!SP_PLANTED(attention_scales_late)) {
        scale_floats(&h->k->of_query, panels, p->panels * PANEL * depth);
    }
    round_operand(h, panels, p->panels * PANEL * depth);
}

/* Rows [first, last) of scores[keys][queries], each the sum of the product of the queries with the
 * keys. `key` is the first of them. */
static void compute_rows(const head *h, const query_part *p, const float *queries,
                         const sp_attention_operand *of, const float *key, int64_t count,
                         float *scores)
{
    const int64_t width = p->panels * PANEL;
    const sp_gemm_constants product = {.rows = count,
                                       .columns = width,
                                       .depth = h->k->depth,
                                       .a_row = of->row,
                                       .a_depth = of->column,
                                       .alpha = 1};
    const sp_gemm_operands operands = {.k = &product,
                                       .a = key,
                                       .b = queries,
                                       .y = scores,
                                       .y_row = width,
                                       .b_depth = PANEL,
                                       .b_panel = PANEL * h->k->depth};
    const sp_gemm_part part = {
        .end = p->panels, .whole = p->panels, .panels = p->panels, .last = count};
    SP_KERNEL(gemm_part)(&operands, &part);
}

/* The same of keys that are scaled or rounded, some at a time. */
static SP_NOINLINE void compute_scaled(const head *h, const query_part *p, const float *queries,
                                       float *scores)
{
    enum { FLOATS = 1024 };
    _Static_assert(FLOATS >= SP_ATTENTION_DEPTH, "one key fits");
    _Alignas(64) float scaled[FLOATS];
    const sp_attention_operand *key = &h->k->key;
    const sp_attention_operand rows = {.row = h->k->depth, .column = 1};
    const int64_t depth = h->k->depth, keys = h->k->keys, width = p->panels * PANEL;
    const int64_t most = FLOATS / depth;
    memset(scaled, 0, sizeof scaled); /* whole vectors are scaled */
    for (int64_t first = 0; first < keys; first += most) {
        const int64_t count = sp_size_least(most, keys - first);
        for (int64_t i = 0; i < count; i++) {
            if (h->k->is_half) {
                widen(h, h->key, (first + i) * key->row, key->column, depth, scaled + i * depth);
                continue;
            }
            const float *from = h->key + (first + i) * key->row;
            SP_INDEPENDENT for (int64_t d = 0; d < depth; d++)
            {
                scaled[i * depth + d] = from[d * key->column];
            }
        }
        scale_floats(&h->k->of_key, scaled, count * depth);
        round_operand(h, scaled, count * depth);
        compute_rows(h, p, queries, &rows, scaled, count, scores + first * width);
    }
}

static void compute_scores(const head *h, const query_part *p, const float *queries, float *scores)
{
    const sp_attention_constants *k = h->k;
    const bool is_plain = k->of_key.kind == SP_SCALE_NONE && k->rounding == SP_ROUNDING_NONE;
    if (!is_plain) compute_scaled(h, p, queries, scores);
    else compute_rows(h, p, queries, &k->key, h->key, k->keys, scores);
}

/* The product of the weights, transposed as the scores, with the values, in rows. */
static void weigh_values(const head *h, const query_part *p, const float *weights, float *y,
                         int64_t y_row)
{
    const sp_attention_constants *k = h->k;
    const int64_t panels = (k->columns + PANEL - 1) / PANEL;
    const sp_gemm_constants product = {.rows = p->count,
                                       .columns = k->columns,
                                       .depth = k->keys,
                                       .a_row = 1,
                                       .a_depth = p->panels * PANEL,
                                       .alpha = 1,
                                       .rounding = k->rounding};
    const sp_gemm_operands operands = {.k = &product,
                                       .a = weights,
                                       .b = h->value,
                                       .y = y,
                                       .y_row = y_row,
                                       .b_depth = k->value.row,
                                       .b_panel = PANEL,
                                       .is_b_half = k->is_half};
    const sp_gemm_part part = {
        .end = panels, .whole = k->columns / PANEL, .panels = panels, .last = p->count};
    if (k->rounding != SP_ROUNDING_NONE) SP_KERNEL(gemm_rounded)(&operands, &part, 1);
    else SP_KERNEL(gemm_part)(&operands, &part);
}

/* The same into a packed matrix. `rows` has room for the results, whose columns are no more than
 * the depth of the queries. */
static void pack_values(const head *h, const query_part *p, const float *weights, float *rows)
{
    const sp_attention_constants *k = h->k;
    weigh_values(h, p, weights, rows, k->columns);
    for (int64_t i = 0; i < p->count; i++) {
        const int64_t at = h->y_first + (p->first + i) * k->y.row;
        SP_KERNEL(narrow_pack_steps)(k->y_format, rows + i * k->columns, k->columns, h->y,
                                     k->y_lines, at / k->y_width, at % k->y_width);
    }
}

static void run_part(const head *h, const query_part *p)
{
    _Alignas(64) float queries[SP_ATTENTION_QUERIES], scores[SP_ATTENTION_SCORES];
    const int64_t width = p->panels * PANEL, keys = h->k->keys;
    load_queries(h, p, queries);
    compute_scores(h, p, queries, scores);
    if (SP_PLANTED(attention_scales_late)) scale_floats(&h->k->of_query, scores, width * keys);
    scale_floats(&h->k->of_scores, scores, width * keys);
    mask_scores(h, p, scores);
    sp_softmax_columns_f32(scores, width, width, keys);
    if (h->k->y_format != SP_PACK_NONE) {
        pack_values(h, p, scores, queries);
        return;
    }
    float *y = h->y + h->y_first + p->first * h->k->y.row;
    weigh_values(h, p, scores, y, h->k->y.row);
}

/* ---- tiles ---- */

static head find_head(const sp_tile *tile)
{
    const sp_attention_constants *k = tile->constants;
    uint32_t binding = 3;
    int64_t at[] = {k->query.first, k->key.first, k->value.first};
    head h = {.k = k};
    if (k->has_mask) h.mask = (const float *)tile->bindings[binding++] + k->mask.first;
    if (k->has_condition) {
        h.condition = (const uint8_t *)tile->bindings[binding++] + k->condition.first;
    }
    h.y = tile->bindings[binding];
    int64_t batch = tile->index[2];
    for (uint32_t i = k->batch_rank; i-- > 0; batch /= k->batch_dims[i]) {
        const int64_t entry = batch % k->batch_dims[i];
        at[0] += entry * k->query.batch[i];
        at[1] += entry * k->key.batch[i];
        at[2] += entry * k->value.batch[i];
        h.y_first += entry * k->y.batch[i];
        if (k->has_mask) h.mask += entry * k->mask.batch[i];
        if (k->has_condition) h.condition += entry * k->condition.batch[i];
    }
    const int64_t bytes = k->is_half ? 2 : sizeof(float);
    h.query = (const void *)((const char *)tile->bindings[0] + at[0] * bytes);
    h.key = (const void *)((const char *)tile->bindings[1] + at[1] * bytes);
    h.value = (const void *)((const char *)tile->bindings[2] + at[2] * bytes);
    return h;
}

sp_status SP_KERNEL(attention_f32)(const sp_tile *tile)
{
    const sp_attention_constants *k = tile->constants;
    const head h = find_head(tile);
    const int64_t width = (int64_t)tile->size[1] * PANEL;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    for (int64_t at = first; at < last; at += width) {
        query_part p = {.first = at, .count = last - at < width ? last - at : width};
        p.panels = (p.count + PANEL - 1) / PANEL;
        run_part(&h, &p);
    }
    return SP_OK;
}
