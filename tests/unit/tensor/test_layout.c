/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts compared with a naive model: the list of the first bytes of all elements. */
#include "tensor/layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "support/model_data.h"
#include "support/test.h"

enum { STORAGE_BYTES = 4096, MOST = 4096 };

/* ---- the model ---- */

typedef struct model {
    uint32_t rank;
    int64_t dims[SP_MAX_RANK];
    uint32_t count;
    int64_t places[MOST]; /* first byte of each element, in order */
} model;

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static uint32_t count_of(const model *m)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < m->rank; i++) count *= (uint32_t)m->dims[i];
    return count;
}

static void coordinates(const model *m, uint32_t index, int64_t *at)
{
    for (uint32_t i = m->rank; i-- > 0;) {
        at[i] = index % m->dims[i];
        index /= (uint32_t)m->dims[i];
    }
}

static int64_t place(const model *m, const int64_t *at)
{
    int64_t index = 0;
    for (uint32_t i = 0; i < m->rank; i++) index = index * m->dims[i] + at[i];
    return m->places[index];
}

/* Checks each element of a layout by its definition. */
static void check_layout(const sp_layout *layout, const model *want)
{
    REQUIRE_EQ_U64(layout->shape.rank, want->rank);
    CHECK_EQ_MEM(layout->shape.dims, want->dims, want->rank * sizeof want->dims[0]);
    const int64_t bytes = (int64_t)sp_dtype_bytes(layout->dtype);
    for (uint32_t k = 0; k < want->count; k++) {
        int64_t at[SP_MAX_RANK], byte = (int64_t)layout->offset;
        coordinates(want, k, at);
        for (uint32_t i = 0; i < want->rank; i++) byte += at[i] * layout->strides[i] * bytes;
        REQUIRE_EQ_INT(byte, want->places[k]);
    }
}

static sp_dtype pick_dtype(data_random *random)
{
    static const sp_dtype all[] = {SP_U8, SP_BF16, SP_F32, SP_I64};
    return all[pick(random, 0, 3)];
}

static void start(data_random *random, sp_layout *layout, model *m)
{
    *m = (model){.rank = (uint32_t)pick(random, 0, 5)};
    for (uint32_t i = 0; i < m->rank; i++) {
        m->dims[i] = pick(random, 0, 30) == 0 ? 0 : pick(random, 1, 4);
    }
    const sp_shape shape = {.rank = m->rank,
                            .dims = {m->dims[0], m->dims[1], m->dims[2], m->dims[3], m->dims[4]}};
    const sp_dtype dtype = pick_dtype(random);
    const int64_t bytes = (int64_t)sp_dtype_bytes(dtype);
    m->count = count_of(m);
    const int64_t first = pick(random, 0, 8) * bytes;
    for (uint32_t k = 0; k < m->count; k++) m->places[k] = first + k * bytes;
    /* Given explicitly, or by default. */
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(&shape, strides);
    REQUIRE_OK(sp__layout_init(layout, dtype, &shape, pick(random, 0, 1) ? strides : NULL,
                               (uint64_t)first, STORAGE_BYTES * 8));
}

/* Fills the places of a view whose element `at` is element source(at) of `m`. */
typedef void (*source_fn)(const void *ctx, const int64_t *at, int64_t *from);

static void derive(const model *m, model *view, source_fn source, const void *ctx)
{
    view->count = count_of(view);
    for (uint32_t k = 0; k < view->count; k++) {
        int64_t at[SP_MAX_RANK] = {0}, from[SP_MAX_RANK] = {0};
        coordinates(view, k, at);
        source(ctx, at, from);
        view->places[k] = place(m, from);
    }
}

/* ---- one random view of each kind; false if the model has none ---- */

typedef struct change {
    uint32_t rank, axis;
    int64_t start, step;
    int64_t axes[SP_MAX_RANK];
    int64_t dims[SP_MAX_RANK];
    uint32_t shift;
} change;

static void from_permuted(const void *ctx, const int64_t *at, int64_t *from)
{
    const change *c = ctx;
    for (uint32_t i = 0; i < c->rank; i++) from[c->axes[i]] = at[i];
}

static bool try_permute(data_random *random, sp_layout *layout, const model *m, model *view)
{
    change c = {.rank = m->rank};
    for (uint32_t i = 0; i < m->rank; i++) {
        const int64_t k = pick(random, 0, i);
        c.axes[i] = c.axes[k];
        c.axes[k] = i;
    }
    view->rank = m->rank;
    for (uint32_t i = 0; i < m->rank; i++) view->dims[i] = m->dims[c.axes[i]];
    derive(m, view, from_permuted, &c);
    for (uint32_t i = 0; i < m->rank; i++) {
        if (pick(random, 0, 1)) c.axes[i] -= m->rank; /* the same axis, from the end */
    }
    CHECK_OK(sp__layout_permute(layout, c.axes, m->rank, layout));
    return true;
}

static void from_sliced(const void *ctx, const int64_t *at, int64_t *from)
{
    const change *c = ctx;
    for (uint32_t i = 0; i < c->rank; i++) from[i] = at[i];
    from[c->axis] = c->start + at[c->axis] * c->step;
}

static bool try_slice(data_random *random, sp_layout *layout, const model *m, model *view)
{
    if (m->rank == 0) return false;
    change c = {.rank = m->rank, .axis = (uint32_t)pick(random, 0, m->rank - 1)};
    const int64_t size = m->dims[c.axis];
    c.step = pick(random, 0, 1) ? pick(random, 1, 3) : -pick(random, 1, 3);
    c.start = pick(random, 0, size);
    const int64_t room = c.start == size ? 0
                         : c.step > 0    ? (size - 1 - c.start) / c.step + 1
                                         : c.start / -c.step + 1;
    view->rank = m->rank;
    memcpy(view->dims, m->dims, sizeof view->dims);
    view->dims[c.axis] = pick(random, 0, 9) == 0 ? 0 : room;
    derive(m, view, from_sliced, &c);
    sp_layout out = *layout;
    CHECK_STATUS(sp__layout_slice(layout, c.axis, c.start, room + 1, c.step, &out), SP_MISMATCH);
    CHECK_OK(sp__layout_slice(layout, c.axis, c.start, view->dims[c.axis], c.step, layout));
    return true;
}

static void from_selected(const void *ctx, const int64_t *at, int64_t *from)
{
    const change *c = ctx;
    for (uint32_t i = 0; i < c->rank; i++) {
        from[i] = i < c->axis ? at[i] : i == c->axis ? c->start : at[i - 1];
    }
}

static bool try_select(data_random *random, sp_layout *layout, const model *m, model *view)
{
    if (m->rank < 3) return false; /* otherwise nothing remains after a few steps */
    change c = {.rank = m->rank, .axis = (uint32_t)pick(random, 0, m->rank - 1)};
    const int64_t size = m->dims[c.axis];
    if (size == 0) return false;
    c.start = pick(random, 0, size - 1);
    view->rank = m->rank - 1;
    for (uint32_t i = 0; i < view->rank; i++) view->dims[i] = m->dims[i < c.axis ? i : i + 1];
    derive(m, view, from_selected, &c);
    const int64_t index = pick(random, 0, 1) ? c.start : c.start - size;
    CHECK_OK(sp__layout_select(layout, c.axis, index, layout));
    return true;
}

static void from_expanded(const void *ctx, const int64_t *at, int64_t *from)
{
    const change *c = ctx;
    for (uint32_t i = 0; i < c->rank; i++) from[i] = c->dims[i] == 1 ? 0 : at[c->shift + i];
}

static bool try_expand(data_random *random, sp_layout *layout, const model *m, model *view)
{
    change c = {.rank = m->rank};
    memcpy(c.dims, m->dims, sizeof c.dims);
    c.shift = m->rank < SP_MAX_RANK && pick(random, 0, 2) == 0 ? 1 : 0;
    view->rank = m->rank + c.shift;
    if (c.shift == 1) view->dims[0] = pick(random, 1, 2);
    for (uint32_t i = 0; i < m->rank; i++) {
        const bool is_repeated = m->dims[i] == 1 && pick(random, 0, 1) == 0;
        view->dims[c.shift + i] = is_repeated ? pick(random, 1, 3) : m->dims[i];
    }
    if (count_of(view) > 600) return false;
    derive(m, view, from_expanded, &c);
    sp_shape shape;
    CHECK_OK(sp__shape_make(view->dims, view->rank, &shape));
    CHECK_OK(sp__layout_expand(layout, &shape, layout));
    return true;
}

static bool try_unsqueeze(data_random *random, sp_layout *layout, const model *m, model *view)
{
    if (m->rank == SP_MAX_RANK) return false;
    const uint32_t axis = (uint32_t)pick(random, 0, m->rank);
    *view = *m;
    view->rank++;
    for (uint32_t i = m->rank; i > axis; i--) view->dims[i] = view->dims[i - 1];
    view->dims[axis] = 1;
    const int64_t given = pick(random, 0, 1) ? (int64_t)axis : (int64_t)axis - m->rank - 1;
    CHECK_OK(sp__layout_unsqueeze(layout, given, layout));
    return true;
}

static bool try_squeeze(data_random *random, sp_layout *layout, const model *m, model *view)
{
    if (m->rank == 0) return false;
    const uint32_t axis = (uint32_t)pick(random, 0, m->rank - 1);
    sp_layout out;
    if (m->dims[axis] != 1) {
        CHECK_STATUS(sp__layout_squeeze(layout, axis, &out), SP_MISMATCH);
        return false;
    }
    *view = *m;
    view->rank--;
    for (uint32_t i = axis; i < view->rank; i++) view->dims[i] = m->dims[i + 1];
    CHECK_OK(sp__layout_squeeze(layout, axis, layout));
    return true;
}

/* Whether strides exist with which the places of `m` have the shape of `view`. */
static bool has_strides(const model *view)
{
    int64_t strides[SP_MAX_RANK] = {0};
    uint32_t inner = 1;
    for (uint32_t i = view->rank; i-- > 0;) {
        if (view->dims[i] > 1) strides[i] = view->places[inner] - view->places[0];
        inner *= (uint32_t)view->dims[i];
    }
    for (uint32_t k = 0; k < view->count; k++) {
        int64_t at[SP_MAX_RANK], byte = view->places[0];
        coordinates(view, k, at);
        for (uint32_t i = 0; i < view->rank; i++) byte += at[i] * strides[i];
        if (byte != view->places[k]) return false;
    }
    return true;
}

static bool try_reshape(data_random *random, sp_layout *layout, const model *m, model *view)
{
    *view = *m;
    /* A random factorisation. */
    uint32_t left = m->count;
    view->rank = 0;
    while (left > 1 && view->rank < SP_MAX_RANK - 1) {
        int64_t size = pick(random, 1, 12);
        if (left % size != 0) continue;
        view->dims[view->rank++] = size;
        left /= (uint32_t)size;
    }
    if (left != 1) view->dims[view->rank++] = left;
    int64_t given[SP_MAX_RANK];
    memcpy(given, view->dims, sizeof given);
    if (m->count > 0 && view->rank > 0 && pick(random, 0, 1) == 0) {
        given[pick(random, 0, view->rank - 1)] = -1;
    }
    sp_layout out;
    const sp_status status = sp__layout_reshape(layout, given, view->rank, &out);
    CHECK_STATUS(status, has_strides(view) ? SP_OK : SP_MISMATCH);
    if (status != SP_OK) return false;
    *layout = out;
    return true;
}

static bool (*const changes[])(data_random *, sp_layout *, const model *,
                               model *) = {try_permute,   try_slice,   try_select,  try_expand,
                                           try_unsqueeze, try_squeeze, try_reshape, try_slice};

static bool is_in_order(const sp_layout *layout, const model *m)
{
    for (uint32_t k = 1; k < m->count; k++) {
        if (m->places[k] != m->places[0] + k * (int64_t)sp_dtype_bytes(layout->dtype)) return false;
    }
    return true;
}

static bool shares_a_place(const model *m)
{
    for (uint32_t a = 0; a < m->count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            if (m->places[a] == m->places[b]) return true;
        }
    }
    return false;
}

static void check_questions(const sp_layout *layout, const model *m)
{
    CHECK_EQ_INT(sp__layout_is_contiguous(layout), is_in_order(layout, m));
    if (shares_a_place(m)) CHECK(sp__layout_overlaps_itself(layout));
    sp_layout_reach reach;
    CHECK(sp__layout_reach(layout, &reach));
    int64_t low = INT64_MAX, high = 0;
    for (uint32_t k = 0; k < m->count; k++) {
        if (m->places[k] < low) low = m->places[k];
        if (m->places[k] > high) high = m->places[k];
    }
    if (m->count == 0) {
        CHECK_EQ_U64(reach.below + reach.above, 0);
        return;
    }
    CHECK_EQ_INT((int64_t)(layout->offset - reach.below), low);
    CHECK_EQ_INT((int64_t)(layout->offset + reach.above),
                 high + (int64_t)sp_dtype_bytes(layout->dtype));
}

TEST(chains_of_random_views_have_the_elements_that_an_index_model_has)
{
    data_random random = {.state = 7};
    model *m = malloc(2 * sizeof *m);
    uint64_t made[SP_COUNT_OF(changes)] = {0};
    for (uint64_t i = 0; i < test_count(100000, 3000); i++) {
        sp_layout layout;
        start(&random, &layout, &m[0]);
        for (int step = 0; step < 6; step++) {
            const uint64_t kind = (uint64_t)pick(&random, 0, SP_COUNT_OF(changes) - 1);
            if (changes[kind](&random, &layout, &m[0], &m[1])) {
                made[kind]++;
                m[0] = m[1];
            }
            check_layout(&layout, &m[0]);
            check_questions(&layout, &m[0]);
        }
    }
    for (size_t i = 0; i < SP_COUNT_OF(changes); i++) CHECK(made[i] > 0);
    free(m);
}

/* ---- errors ---- */

static sp_status init(const sp_shape *shape, const int64_t *strides, uint64_t offset,
                      uint64_t storage_bytes)
{
    sp_layout layout;
    return sp__layout_init(&layout, SP_F32, shape, strides, offset, storage_bytes);
}

TEST(elements_outside_of_the_storage_are_refused_whatever_wraps)
{
    const sp_shape shape = {.rank = 2, .dims = {3, 4}};
    CHECK_OK(init(&shape, NULL, 0, 48));
    CHECK_STATUS(init(&shape, NULL, 0, 47), SP_INVALID);
    CHECK_MESSAGE("exceeds its storage of 47 bytes");
    CHECK_STATUS(init(&shape, NULL, 4, 48), SP_INVALID);
    CHECK_STATUS(init(&shape, NULL, 2, 100), SP_INVALID);
    CHECK_MESSAGE("not a multiple");
    CHECK_STATUS(init(&shape, NULL, UINT64_MAX - 3, UINT64_MAX), SP_INVALID);
    CHECK_OK(init(&shape, (const int64_t[]){-4, 1}, 32, 48));
    CHECK_STATUS(init(&shape, (const int64_t[]){-4, 1}, 28, 48), SP_INVALID);
    CHECK_STATUS(init(&shape, (const int64_t[]){-4, 1}, 36, 48), SP_INVALID);
    CHECK_OK(init(&shape, (const int64_t[]){0, 0}, 44, 48));
    static const int64_t wild[] = {INT64_MIN,     INT64_MAX,     INT64_MIN / 2,   INT64_MAX / 2,
                                   INT64_MAX / 3, INT64_MIN / 4, (int64_t)1 << 54};
    for (size_t i = 0; i < SP_COUNT_OF(wild); i++) {
        for (size_t k = 0; k < SP_COUNT_OF(wild); k++) {
            const int64_t strides[] = {wild[i], wild[k]};
            CHECK_STATUS(init(&shape, strides, (uint64_t)1 << 62, UINT64_MAX), SP_INVALID);
        }
    }
    /* Strides of dimensions of size 1 have no effect. */
    const sp_shape ones = {.rank = 2, .dims = {1, 1}}, none = {.rank = 2, .dims = {0, 5}};
    CHECK_OK(init(&ones, (const int64_t[]){INT64_MIN, INT64_MAX}, 44, 48));
    CHECK_OK(init(&none, (const int64_t[]){INT64_MIN, INT64_MAX}, 48, 48));
    CHECK_STATUS(init(&none, NULL, 52, 48), SP_INVALID);
}

TEST(shapes_that_are_none_are_refused)
{
    sp_layout layout;
    const sp_shape negative = {.rank = 1, .dims = {-1}};
    const sp_shape huge = {.rank = 2, .dims = {INT64_MAX, INT64_MAX}};
    const sp_shape wide = {.rank = 1, .dims = {1}};
    CHECK_STATUS(init(&negative, NULL, 0, 48), SP_MISMATCH);
    CHECK_STATUS(init(&huge, (const int64_t[]){0, 0}, 0, 48), SP_EXHAUSTED);
    CHECK_STATUS(sp__layout_init(&layout, SP_DTYPE_NONE, &wide, NULL, 0, 48), SP_INVALID);
    CHECK_MESSAGE("not an element type");
    CHECK_STATUS(sp__layout_init(&layout, (sp_dtype)-1, &wide, NULL, 0, 48), SP_INVALID);
}

TEST(views_that_do_not_fit_say_why)
{
    sp_layout layout, out;
    const sp_shape shape = {.rank = 2, .dims = {3, 4}};
    CHECK_OK(sp__layout_init_contiguous(&layout, SP_F32, &shape));
    CHECK_STATUS(sp__layout_permute(&layout, (const int64_t[]){0, 0}, 2, &out), SP_MISMATCH);
    CHECK_MESSAGE("repeated");
    CHECK_STATUS(sp__layout_permute(&layout, (const int64_t[]){0, -2}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_permute(&layout, (const int64_t[]){0, 2}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_permute(&layout, (const int64_t[]){0}, 1, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 2, 0, 1, 1, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 0, 0, 1, 0, &out), SP_INVALID);
    CHECK_STATUS(sp__layout_slice(&layout, 0, -1, 1, 1, &out), SP_MISMATCH);
    CHECK_MESSAGE("exceeds dimension 0 of shape [3,4]");
    CHECK_STATUS(sp__layout_slice(&layout, 0, 0, -1, 1, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 0, 4, 0, 1, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 0, 1, INT64_MAX, INT64_MAX, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 0, 1, INT64_MAX, INT64_MIN, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_slice(&layout, 0, 0, 2, INT64_MAX, &out), SP_MISMATCH);
    CHECK_OK(sp__layout_slice(&layout, 0, 2, 1, INT64_MIN, &out)); /* no step is made */
    CHECK_STATUS(sp__layout_select(&layout, 0, 3, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_select(&layout, 0, -4, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_select(&layout, -3, 0, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, (const int64_t[]){5, -1}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, (const int64_t[]){-1, -1}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, (const int64_t[]){-1, 0}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, (const int64_t[]){-2, 6}, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, shape.dims, SP_MAX_RANK + 1, &out), SP_MISMATCH);
    const sp_shape other = {.rank = 2, .dims = {3, 5}}, lower = {.rank = 1, .dims = {4}};
    CHECK_STATUS(sp__layout_expand(&layout, &other, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_expand(&layout, &lower, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_squeeze(&layout, 0, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_unsqueeze(&layout, 3, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_unsqueeze(&layout, -4, &out), SP_MISMATCH);
    const sp_shape full = {.rank = 8, .dims = {1, 1, 1, 1, 1, 1, 1, 1}};
    sp_layout most;
    CHECK_OK(sp__layout_init_contiguous(&most, SP_F32, &full));
    CHECK_STATUS(sp__layout_unsqueeze(&most, 0, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_view_as(&layout, SP_F64, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_view_as(&layout, SP_DTYPE_NONE, &out), SP_MISMATCH);
    CHECK_OK(sp__layout_view_as(&layout, SP_I32, &out));
    CHECK_EQ_INT(out.dtype, SP_I32);
    const int64_t many[] = {(int64_t)1 << 62, 2}, none[] = {0, -1};
    CHECK_STATUS(sp__layout_reshape(&layout, many, 2, &out), SP_MISMATCH);
    CHECK_STATUS(sp__layout_reshape(&layout, none, 2, &out), SP_MISMATCH);
    CHECK(strstr(sp_last_error(), "[0,-1]") != NULL);
    /* Expanding beyond the size limit of a tensor, although no byte is added. */
    const sp_shape vast = {.rank = 3, .dims = {(int64_t)1 << 40, 3, 4}};
    CHECK_STATUS(sp__layout_expand(&layout, &vast, &out), SP_EXHAUSTED);
}

TEST_MAIN
