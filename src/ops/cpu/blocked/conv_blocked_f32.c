/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution over images in blocks of channels. Same sum as conv_f32: over (channel, kernel row,
 * kernel column) in order, in segments, padding taps included, then the bias, then the activation.
 *
 * The input of a block of outputs is copied with its padding, a segment of channels at a time; that
 * of a pointwise convolution is read where it is, in whatever lanes its channels are. Between two
 * segments the sums wait in y.
 *
 * A second kernel computes a band of rows at a time and stores the maxima over windows of them. */
#include "ops/cpu/blocked/band.h"
#include "ops/cpu/blocked/blocked_block.h"
#include "ops/cpu/blocked/conv_edges.h"

/* Outputs of a pointwise convolution that read a segment of channels one after the other. */
enum { DIRECT_COLUMNS = 4 * SP_BLOCKED_OUTPUTS };

/* Weights of the filters that are computed together, in elements, that do not stay in a second
 * cache of 1 to 2 MB until the next outputs need them. Fetching those that do stay costs more than
 * it saves. */
enum { MANY_WEIGHTS = 200 * 1024 };

typedef struct conv {
    const sp_blocked_constants *k;
    const float *x, *w; /* of the image and the group; if there are `places`, of the image */
    float *y;           /* of the first block of filters, from that row and column on */
    int64_t y_first_row, y_first_column;
    int64_t y_row, y_plane; /* floats of a row of y, and of a block */
    const int64_t *places;  /* NULL, or of the group's channels in x */
    sp_epilogue_lists lists;
    sp_epilogue epilogue; /* of the panels that are computed */
    bool is_direct;       /* x is read where it is */
    sp_patch patch;       /* else; if it is, its columns only */
    int64_t channels;     /* of a segment */
    int64_t first_block, last_block;
    int64_t offsets[SP_CONV_MAX_SEGMENT + 1]; /* of the taps of a segment, and one more */
    uint8_t sides[SP_CONV_MAX_SEGMENT];       /* of the same, if padding is skipped */
} conv;

static int64_t blocks_of(int64_t channels)
{
    return (channels + SP_BLOCK - 1) / SP_BLOCK;
}

/* ---- inputs ---- */

static void find_offsets(conv *c)
{
    const sp_conv_constants *k = &c->k->of;
    const int64_t taps = k->kernel_h * k->kernel_w;
    const int64_t plane = c->is_direct ? k->in_h * k->in_w * SP_BLOCK : c->patch.plane;
    if (c->is_direct) c->offsets[0] = 0;
    else sp_patch_taps(&c->patch, c->offsets);
    for (int64_t channel = 1; channel < c->channels; channel++) {
        const int64_t at = c->k->is_plain ? channel * plane
                                          : channel / SP_BLOCK * plane +
                                                (channel % SP_BLOCK ^ SP_PLANTED(blocks_swapped));
        for (int64_t t = 0; t < taps; t++) {
            c->offsets[channel * taps + t] = at + c->offsets[t];
        }
    }
}

/* The tiles of a group among those of the grid's first dimension. */
static int64_t splits_of(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    return (blocks_of(b->of.filters) + tile->size[0] - 1) / tile->size[0];
}

/* A block of outputs. */
typedef struct out_block {
    int64_t row, rows, column, columns;
} out_block;

/* Of tiles [first, last) of the group, whose patches have up to `patch_floats` floats. */
static void conv_init(conv *c, const sp_tile *tile, const out_block *of, int64_t group,
                      int64_t first, int64_t last, int64_t patch_floats)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t all_blocks = blocks_of(k->filters), image = tile->index[2];
    const int64_t taps = k->channels * k->kernel_h * k->kernel_w;
    const int64_t index = image * k->groups + group;
    const int64_t in = b->is_plain ? k->channels : blocks_of(k->channels) * SP_BLOCK;
    c->k = b;
    c->x = (const float *)tile->bindings[0] + index * in * k->in_h * k->in_w;
    c->places = NULL;
    if (b->has_offsets) {
        c->x =
            (const float *)tile->bindings[0] + image * b->x_blocks * SP_BLOCK * k->in_h * k->in_w;
        c->places = (const int64_t *)tile->bindings[2] + group * k->channels;
    }
    c->w = (const float *)tile->bindings[1] + group * all_blocks * SP_BLOCK * taps;
    c->lists = sp_epilogue_find(tile, group * k->filters);
    sp_epilogue_init(&c->epilogue, tile);
    c->first_block = first * tile->size[0];
    c->y_first_row = c->y_first_column = 0;
    c->y_row = k->out_w * SP_BLOCK;
    c->y_plane = k->out_h * c->y_row;
    c->y = sp_epilogue_output(tile) + (index * all_blocks + c->first_block) * c->y_plane;
    c->last_block = sp_size_least(last * tile->size[0], all_blocks);
    c->channels = sp_size_least(k->segment / (k->kernel_h * k->kernel_w), k->channels);
    c->is_direct = !b->is_plain && sp_blocked_is_direct(k);
    if (c->is_direct) {
        c->patch = (sp_patch){.rows = 1, .columns = sp_size_least(of->columns, DIRECT_COLUMNS)};
    } else {
        c->patch.most = patch_floats;
        sp_patch_choose(&c->patch, k, b->is_plain ? 1 : SP_BLOCK,
                        b->is_plain ? c->channels : blocks_of(c->channels), of->rows, of->columns);
    }
    if (c->places == NULL) find_offsets(c);
    if (b->skips_padding) sp_edge_sides(k, c->channels, c->sides);
    c->offsets[c->channels * k->kernel_h * k->kernel_w] = 0;
}

/* ---- outputs ---- */

/* A row of outputs of a few panels. */
typedef struct out_row {
    const sp_blocked_segment *s;
    const float *x, *w; /* of the first output; of the first panel */
    float *y;
    int64_t columns;
    const float *ahead, *ahead_end; /* the panels that are needed next and not yet fetched */
    unsigned sides;                 /* that padding is skipped at: of sp_blocked_side */
} out_row;

#define RUN_CASE(n)                                                                                \
    case n:                                                                                        \
        if ((n) * sp_blocked_registers(panels, has_half) <= SP_BLOCKED_SUMS &&                     \
            (n) <= SP_BLOCKED_OUTPUTS) {                                                           \
            const int64_t outputs = (n) <= SP_BLOCKED_OUTPUTS ? (n) : 1;                           \
            if (can_skip && (sides != 0 || r->s->gap > 0)) {                                       \
                sp_blocked_run_edge(panels, outputs, sides, r->s, x, r->w, ahead, y);              \
            } else {                                                                               \
                sp_blocked_run(panels, has_half, outputs, step, taps, r->s, x, r->w, ahead, y);    \
            }                                                                                      \
        }                                                                                          \
        break

/* Pieces of about the same size, of at most `most` outputs. Padding is skipped by loops over
 * blocked inputs, a tap at a time, of so many whole panels as most layers have: each is compiled
 * again. */
static SP_ALWAYS_INLINE void run_row(const int64_t panels, const bool has_half, const int64_t step,
                                     const int64_t taps, out_row *r, int64_t most)
{
    const bool is_used = panels == 1 || panels == 2 || panels == 4;
    const bool can_skip = is_used && !has_half && step == SP_BLOCK && taps == 1;
    const int64_t pieces = (r->columns + most - 1) / most;
    const float *x = r->x;
    float *y = r->y;
    for (int64_t left = r->columns, i = pieces; i > 0; i--) {
        const int64_t count = (left + i - 1) / i;
        const float *ahead = NULL;
        if (r->ahead < r->ahead_end) {
            ahead = r->ahead;
            r->ahead += r->s->panel;
        }
        unsigned sides = r->sides;
        if (i < pieces) sides &= ~(unsigned)SP_BLOCKED_LEFT;
        if (i > 1) sides &= ~(unsigned)SP_BLOCKED_RIGHT;
        switch (count) {
            RUN_CASE(14);
            RUN_CASE(13);
            RUN_CASE(12);
            RUN_CASE(11);
            RUN_CASE(10);
            RUN_CASE(9);
            RUN_CASE(8);
            RUN_CASE(7);
            RUN_CASE(6);
            RUN_CASE(5);
            RUN_CASE(4);
            RUN_CASE(3);
            RUN_CASE(2);
            RUN_CASE(1);
        default:
            break;
        }
        left -= count;
        x += count * step;
        y += count * SP_BLOCK;
    }
}

/* How inputs lie: outputs next to each other, outputs a block apart, or those whose channels are
 * next to each other, too. */
typedef enum input_form { INPUT_PLAIN, INPUT_BLOCKED, INPUT_CHANNELS } input_form;

/* So many taps of so many panels are computed at a time from INPUT_CHANNELS. */
#if SP_VECTOR == 16
enum { CHANNELS = 4, CHANNELS_PANELS = 4 };
#else
enum { CHANNELS = 1, CHANNELS_PANELS = 0 };
#endif

#define RUN_ROW(name, panels, has_half)                                                            \
    static SP_NOINLINE void run_row_##name(out_row *r, input_form form, int64_t most)              \
    {                                                                                              \
        const bool has_channels = (panels) == CHANNELS_PANELS && !(has_half);                      \
        if (form == INPUT_PLAIN) run_row(panels, has_half, 1, 1, r, most);                         \
        else if (has_channels && form == INPUT_CHANNELS)                                           \
            run_row(panels, has_half, SP_BLOCK, has_channels ? CHANNELS : 1, r, most);             \
        else run_row(panels, has_half, SP_BLOCK, 1, r, most);                                      \
    }
RUN_ROW(1, 1, false)
RUN_ROW(2, 2, false)
RUN_ROW(4, 4, false)
RUN_ROW(2_half, 2, true)
#if SP_VECTOR == 16
RUN_ROW(3, 3, false)
RUN_ROW(8, 8, false)
RUN_ROW(3_half, 3, true)
RUN_ROW(4_half, 4, true)
#else
RUN_ROW(1_half, 1, true)
#endif

/* The most outputs of so many panels. */
static int64_t outputs_of(int64_t panels, bool has_half)
{
    return sp_size_least(SP_BLOCKED_SUMS / sp_blocked_registers(panels, has_half),
                         SP_BLOCKED_OUTPUTS);
}

/* Is there a loop for so many panels of which the last is half a panel? */
static bool can_have_half(int64_t panels)
{
#if SP_VECTOR == 16
    return panels >= 2 && panels <= 4;
#else
    return panels <= 2 && outputs_of(panels, true) > 0;
#endif
}

/* Of `left` panels, those that are computed next for rows of so many outputs. Panels and outputs of
 * about the same number load least. */
#if SP_VECTOR == 16
static int64_t panels_of(int64_t outputs, int64_t left, bool has_half)
{
    (void)has_half;
    if (left >= 8 && outputs * 8 <= SP_BLOCKED_SUMS) return 8;
    if (left == 3 || left == 5) return 3;
    return sp_size_least(left, 4);
}
#else
static int64_t panels_of(int64_t outputs, int64_t left, bool has_half)
{
    int64_t panels = 4;
    outputs = sp_size_least(outputs, SP_BLOCKED_OUTPUTS);
    if (has_half && left == 2 && outputs > 3 && outputs_of(2, true) > 3) return 2;
    while (panels > 1 && panels * outputs * SP_BLOCK_VECTORS > SP_BLOCKED_SUMS) panels /= 2;
    while (panels > left && panels > 1) panels /= 2;
    return panels;
}
#endif

static input_form form_of(const conv *c, const sp_blocked_segment *s)
{
    if (c->k->is_plain) return INPUT_PLAIN;
    const bool has_channels = c->is_direct && c->places == NULL && s->depth % CHANNELS == 0;
    return has_channels ? INPUT_CHANNELS : INPUT_BLOCKED;
}

/* All rows of a patch, from `first` on, for `panels` panels of filters. */
static void run_panels(const conv *c, sp_blocked_segment *s, int64_t panels, bool has_half,
                       out_row row, int64_t first, int64_t rows)
{
    const input_form form = form_of(c, s);
    const int64_t most = outputs_of(panels, has_half);
    row.s = s;
    for (int64_t r = 0; r < rows; r++) {
        if (c->k->skips_padding) sp_edge_runs(&c->k->of, first + r, s);
        switch (has_half ? -panels : panels) {
#if SP_VECTOR == 16
        case 8:
            run_row_8(&row, form, most);
            break;
        case 3:
            run_row_3(&row, form, most);
            break;
        case -4:
            run_row_4_half(&row, form, most);
            break;
        case -3:
            run_row_3_half(&row, form, most);
            break;
#else
        case -1:
            run_row_1_half(&row, form, most);
            break;
#endif
        case -2:
            run_row_2_half(&row, form, most);
            break;
        case 4:
            run_row_4(&row, form, most);
            break;
        case 2:
            run_row_2(&row, form, most);
            break;
        default:
            run_row_1(&row, form, most);
            break;
        }
        row.x += c->patch.out_row;
        row.y += c->y_row;
    }
}

/* Finds the panels that follow those from block f on: of the next filters, or of the next segment.
 */
static void find_ahead(const conv *c, const sp_blocked_segment *s, int64_t f, int64_t panels,
                       out_row *row)
{
    const int64_t blocks = c->last_block - c->first_block;
    int64_t count = sp_size_least(panels, c->last_block - f - panels);
    row->ahead = row->w + panels * s->panel;
    if (count == 0 && !s->is_last) {
        count = sp_size_least(panels, blocks);
        row->ahead = row->w + (c->first_block - f) * s->panel + s->depth * SP_BLOCK;
    }
    if (blocks * s->panel < MANY_WEIGHTS) count = 0;
    row->ahead_end = row->ahead + count * s->panel;
}

/* Are there as few filters in the last block as half of it has lanes? */
static bool uses_half(int64_t filters)
{
    const int64_t rest = filters % SP_BLOCK, most = SP_HALF + (SP_PLANTED(half_of_more) ? 1 : 0);
    return rest > 0 && rest <= most;
}

/* A segment of all filters. */
static void run_filters(const conv *c, sp_blocked_segment *s, const out_block *o, const float *x,
                        const float *w)
{
    const sp_conv_constants *k = &c->k->of;
    float *y =
        c->y + (o->row - c->y_first_row) * c->y_row + (o->column - c->y_first_column) * SP_BLOCK;
    const bool is_half_used = c->last_block == blocks_of(k->filters) && uses_half(k->filters);
    unsigned sides = 0;
    if (c->k->skips_padding && o->column == 0) sides |= SP_BLOCKED_LEFT;
    if (c->k->skips_padding && o->column + o->columns == k->out_w) sides |= SP_BLOCKED_RIGHT;
    int64_t panels;
    for (int64_t f = c->first_block; f < c->last_block; f += panels) {
        panels = panels_of(o->columns, c->last_block - f, is_half_used);
        const bool has_half = is_half_used && f + panels == c->last_block && can_have_half(panels);
        if (s->is_last) {
            sp_epilogue_load(s->epilogue, &c->lists, f * SP_BLOCK, panels * SP_BLOCK, k->filters);
        }
        out_row row = {.x = x,
                       .w = w + f * s->panel,
                       .y = y + (f - c->first_block) * c->y_plane,
                       .columns = o->columns,
                       .sides = sides};
        find_ahead(c, s, f, panels, &row);
        run_panels(c, s, panels, has_half, row, o->row, o->rows);
    }
}

/* A segment of inputs at a time is in the patch. */
static void run_block(conv *c, const out_block *o, float *patch)
{
    const sp_conv_constants *k = &c->k->of;
    const int64_t taps = k->kernel_h * k->kernel_w, all_taps = k->channels * taps;
    const int64_t step = c->k->is_plain ? 1 : SP_BLOCK;
    sp_blocked_segment s = {.offsets = c->offsets,
                            .sides = c->sides,
                            .epilogue = &c->epilogue,
                            .panel = all_taps * SP_BLOCK,
                            .plane = c->y_plane};
    for (int64_t first = 0; first < k->channels; first += c->channels) {
        const int64_t channels = sp_size_least(c->channels, k->channels - first);
        /* A segment of fewer channels than a block may begin inside it. */
        const bool is_inside = !c->k->is_plain && c->places == NULL;
        const int64_t inside = is_inside ? first % SP_BLOCK : 0;
        const float *in = c->x + (first - inside) * k->in_h * k->in_w;
        s.depth = channels * taps;
        if (c->places != NULL) {
            in = c->x;
            memcpy(c->offsets, c->places + first, (size_t)channels * sizeof *c->offsets);
        }
        s.is_first = first == 0;
        s.is_last = first + channels == k->channels;
        if (c->is_direct) {
            in += (o->row * k->in_w + o->column) * step;
        } else if (c->k->is_plain) {
            sp_patch_copy(&c->patch, false, in, channels, o->row, o->rows, o->column, 0, patch);
            in = patch;
        } else {
            sp_patch_copy(&c->patch, true, in, blocks_of(inside + channels), o->row, o->rows,
                          o->column, 0, patch);
            in = patch;
        }
        run_filters(c, &s, o, in + inside, c->w + first * taps * SP_BLOCK);
    }
}

/* The outputs of the tiles along the grid's second dimension. A dispatch has tiles of whole rows,
 * or of columns of the only row. */
static out_block outputs_of_tiles(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t first = tile->index[1];
    const int64_t last = first + (SP_PLANTED(block_of_one_row) ? 1 : tile->count[1]);
    const int64_t begin = first * tile->size[1], end = last * tile->size[1];
    if (k->out_h == 1) return (out_block){0, 1, begin, sp_size_least(end, k->out_w) - begin};
    return (out_block){begin, sp_size_least(end, k->out_h) - begin, 0, k->out_w};
}

/* Up to as many rows and columns as the convolution was begun for. */
static void run_outputs(conv *c, const out_block *of, float *patch)
{
    const int64_t last_row = of->row + of->rows, last_column = of->column + of->columns;
    out_block o;
    for (o.row = of->row; o.row < last_row; o.row += c->patch.rows) {
        o.rows = sp_size_least(c->patch.rows, last_row - o.row);
        for (o.column = of->column; o.column < last_column; o.column += c->patch.columns) {
            o.columns = sp_size_least(c->patch.columns, last_column - o.column);
            run_block(c, &o, patch);
        }
    }
}

/* Tiles [first, last) of a group. */
static void run_group(const sp_tile *tile, int64_t group, int64_t first, int64_t last)
{
    const out_block of = outputs_of_tiles(tile);
    conv c;
    conv_init(&c, tile, &of, group, first, last, SP_PATCH_ELEMENTS);
    float patch[SP_PATCH_ELEMENTS];
    run_outputs(&c, &of, patch);
}

sp_status SP_KERNEL(conv_blocked_f32)(const sp_tile *tile)
{
    const int64_t splits = splits_of(tile);
    const int64_t first = tile->index[0], last = first + tile->count[0];
    for (int64_t at = first; at < last;) {
        const int64_t group = at / splits, end = sp_size_least((group + 1) * splits, last);
        run_group(tile, group, at - group * splits, end - group * splits);
        at = end;
    }
    return SP_OK;
}

/* ---- of which only maxima are stored ---- */

/* Computes the rows of results up to `last`. */
static void band_compute(sp_band *b, conv *c, int64_t last, float *patch)
{
    const int64_t first = b->in_end;
    const int64_t begin = sp_size_least(b->in_column < 0 ? 0 : b->in_column, b->pool->in_w);
    const int64_t end = sp_size_least(b->in_column + b->in_width, b->pool->in_w);
    const out_block of = {.row = first < 0 ? 0 : first,
                          .rows = sp_size_least(last, b->pool->in_h) - (first < 0 ? 0 : first),
                          .column = begin,
                          .columns = end - begin};
    sp_band_pad(b, first, last);
    c->y = b->results;
    c->y_row = b->in_width * SP_BLOCK;
    c->y_plane = b->rows * c->y_row;
    c->y_first_row = b->in_row;
    c->y_first_column = b->in_column;
    if (of.rows > 0 && of.columns > 0) run_outputs(c, &of, patch);
    b->in_end = last;
}

/* Rows [first, last) of the maxima of the band's columns. y is of the first block of filters. */
static void band_run(sp_band *b, conv *c, int64_t first, int64_t last, float *patch, float *y)
{
    const sp_conv_constants *pool = b->pool;
    const int64_t span = sp_window_span(pool->kernel_h, pool->dilation_h);
    const int64_t together = (b->rows - span) / pool->stride_h + 1;
    b->in_column = b->column * pool->stride_w - pool->pad_left;
    b->in_row = b->in_end = first * pool->stride_h - pool->pad_top;
    for (int64_t row = first; row < last; row += together) {
        const int64_t rows = sp_size_least(together, last - row);
        sp_band_move(b, row * pool->stride_h - pool->pad_top);
        band_compute(b, c, b->in_row + (rows - 1) * pool->stride_h + span, patch);
        for (int64_t f = 0; f < b->blocks; f++) {
            for (int64_t r = 0; r < rows; r++) {
                const float *x =
                    b->results + (f * b->rows + r * pool->stride_h) * b->in_width * SP_BLOCK;
                float *to = y + ((f * pool->out_h + row + r) * pool->out_w + b->column) * SP_BLOCK;
                sp_max_row(&b->window, x, to, sp_size_least(b->columns, pool->out_w - b->column));
            }
        }
    }
}

sp_status SP_KERNEL(conv_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_conv_pool_constants *k = tile->constants; /* begins with the convolution's */
    const sp_conv_constants *pool = &k->pool;
    const int64_t blocks = blocks_of(k->conv.of.filters);
    const int64_t first = sp_tile_first(tile, 1);
    const int64_t last =
        sp_size_least((tile->index[1] + (int64_t)tile->count[1]) * tile->size[1], pool->out_h);
    float patch[SP_POOLED_PATCH_ELEMENTS], results[SP_POOLED_ELEMENTS];
    for (uint32_t i = 0; i < tile->count[0]; i++) {
        const int64_t split = tile->index[0] + i;
        conv c;
        sp_band b;
        sp_band_init(&b, pool, tile->size[0], results);
        const out_block of = {.rows = b.rows, .columns = sp_size_least(b.in_width, pool->in_w)};
        conv_init(&c, tile, &of, 0, split, split + 1, SP_POOLED_PATCH_ELEMENTS);
        b.blocks = c.last_block - c.first_block;
        float *y = sp_epilogue_output(tile) +
                   (tile->index[2] * blocks + c.first_block) * pool->out_h * pool->out_w * SP_BLOCK;
        for (b.column = 0; b.column < pool->out_w; b.column += b.columns) {
            band_run(&b, &c, first, last, patch, y);
        }
    }
    return SP_OK;
}
