/* SPDX-License-Identifier: Apache-2.0 */
/* Random windows over one to three dimensions, and where their taps are, in plain loops. */
#ifndef SP_TESTS_WINDOW_RULE_H
#define SP_TESTS_WINDOW_RULE_H

#include "support/model_data.h"
#include "support/test.h"

/* Three dimensions, the leading unused ones of size 1; `spatial` of them are used. */
typedef struct window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], end[3];
    uint32_t spatial;
} window;

/* `rounds_up`: the window may reach beyond the padded input, by less than a stride. */
static inline window random_window(data_random *random, bool rounds_up)
{
    window w = {.spatial = 1 + (uint32_t)(data_next(random) % 3)};
    for (uint32_t i = 0; i < 3; i++) {
        w.in[i] = w.out[i] = w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
        if (i < 3 - w.spatial) continue;
        w.kernel[i] = 1 + (int64_t)(data_next(random) % 4);
        w.stride[i] = 1 + (int64_t)(data_next(random) % 3);
        w.dilation[i] = 1 + (int64_t)(data_next(random) % 3);
        w.pad[i] = (int64_t)(data_next(random) % (uint64_t)w.kernel[i]);
        w.end[i] = (int64_t)(data_next(random) % (uint64_t)w.kernel[i]);
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        const int64_t least = reach - w.pad[i] - w.end[i] - (rounds_up ? w.stride[i] - 1 : 0);
        const uint64_t more = i == 2 ? (data_next(random) % 4 == 0 ? 200 : 20) : 7;
        w.in[i] = (least > 1 ? least : 1) + (int64_t)(data_next(random) % more);
    }
    return w;
}

static inline void slide(window *w, bool rounds_up)
{
    for (uint32_t i = 3 - w->spatial; i < 3; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t room = w->in[i] + w->pad[i] + w->end[i] - reach;
        w->out[i] =
            (rounds_up ? (room + w->stride[i] - 1) / w->stride[i] : room / w->stride[i]) + 1;
        if (rounds_up && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->pad[i]) w->out[i]--;
    }
}

static inline int64_t volume(const int64_t sizes[3])
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Splits flat index `index` into coordinates of `sizes`. */
static inline void unfold(int64_t index, const int64_t sizes[3], int64_t out[3])
{
    out[2] = index % sizes[2];
    out[1] = index / sizes[2] % sizes[1];
    out[0] = index / sizes[2] / sizes[1];
}

static inline sp_shape shape_of(const window *w, int64_t first, int64_t second,
                                const int64_t sizes[3])
{
    sp_shape s = {.rank = 2 + w->spatial, .dims = {first, second}};
    for (uint32_t i = 0; i < w->spatial; i++) s.dims[2 + i] = sizes[3 - w->spatial + i];
    return s;
}

enum { MAX_ATTRIBUTES = 8 };
typedef struct attributes {
    sp_attribute list[MAX_ATTRIBUTES];
    int64_t pads[6];
} attributes;

/* strides, dilations, pads, kernel_shape */
static inline void fill_attributes(const window *w, attributes *out)
{
    const uint32_t first = 3 - w->spatial;
    for (uint32_t i = 0; i < w->spatial; i++) {
        out->pads[i] = w->pad[first + i];
        out->pads[w->spatial + i] = w->end[first + i];
    }
    out->list[0] = data_attribute_ints("strides", w->stride + first, w->spatial);
    out->list[1] = data_attribute_ints("dilations", w->dilation + first, w->spatial);
    out->list[2] = data_attribute_ints("pads", out->pads, 2 * w->spatial);
    out->list[3] = data_attribute_ints("kernel_shape", w->kernel + first, w->spatial);
}

static inline bool is_inside(const window *w, const int64_t at[3])
{
    for (int i = 0; i < 3; i++) {
        if (at[i] < 0 || at[i] >= w->in[i]) return false;
    }
    return true;
}

static inline int64_t offset_of(const window *w, const int64_t at[3])
{
    return (at[0] * w->in[1] + at[1]) * w->in[2] + at[2];
}

/* The input position of tap number `tap` of output `out`. */
static inline void tap_place(const window *w, int64_t out, int64_t tap, int64_t at[3])
{
    int64_t o[3], t[3];
    unfold(out, w->out, o);
    unfold(tap, w->kernel, t);
    for (int i = 0; i < 3; i++) at[i] = o[i] * w->stride[i] - w->pad[i] + t[i] * w->dilation[i];
}

#endif
