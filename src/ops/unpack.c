/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/unpack.h"

#include <string.h>

#include "base/heap.h"
#include "ops/blocked_constants.h"
#include "ops/pack_format.h"

#define PANEL SP_GEMM_PANEL

/* Panels of lanes: step d of lane l is element [l / PANEL][d][l % PANEL] of the copy, and element
 * row(l) * row_stride + d * depth_stride of the weight. */
typedef struct panels {
    int64_t lanes, depth, row_stride, depth_stride;
    const int32_t *rows; /* by lane, below 0: none; NULL: the lane's own number */
} panels;

/* False: no other kernel writes panels, or not these of a matrix. */
static bool panels_find(sp_kernel_id kernel, const void *constants, panels *out)
{
    if (kernel == SP_KERNEL_ID_gemm_pack_f32) {
        const sp_pack_constants *k = constants;
        *out = (panels){.lanes = k->columns,
                        .depth = k->depth,
                        .row_stride = k->column_stride,
                        .depth_stride = k->depth_stride};
        return k->block == 0 && k->is_half == 0;
    }
    if (kernel != SP_KERNEL_ID_channels_pack_f32) return false;
    const sp_channels_pack_constants *k = constants;
    *out = (panels){.lanes = k->panels * PANEL,
                    .depth = k->depth,
                    .row_stride = k->row_stride,
                    .depth_stride = k->depth_stride,
                    .rows = k->rows};
    return true;
}

/* ---- is each element there? ---- */

/* Are the numbers a * outer_stride + b * inner_stride, a below `outer` and b below `inner`, all
 * those below outer * inner? */
static bool is_dense(int64_t outer, int64_t outer_stride, int64_t inner, int64_t inner_stride)
{
    return (inner == 1 || inner_stride == 1) && (outer == 1 || outer_stride == inner);
}

/* Has each row below `count` exactly one lane? */
static bool has_each_row(const panels *p, int64_t count)
{
    if (p->rows == NULL) return p->lanes == count;
    bool *is_found = sp_calloc((size_t)count, sizeof *is_found);
    if (is_found == NULL) return false;
    bool is_once = true;
    int64_t found = 0;
    for (int64_t i = 0; i < p->lanes && is_once; i++) {
        const int64_t row = p->rows[i];
        if (row < 0) continue;
        is_once = row < count && !is_found[row];
        if (!is_once) break;
        is_found[row] = true;
        found++;
    }
    sp_free(is_found);
    return is_once && found == count;
}

bool sp__unpack_is_possible(sp_kernel_id kernel, const void *constants, uint32_t constant_bytes,
                            uint64_t count)
{
    panels p;
    const size_t least = kernel == SP_KERNEL_ID_gemm_pack_f32 ? sizeof(sp_pack_constants)
                                                              : sizeof(sp_channels_pack_constants);
    if (constant_bytes < least || !panels_find(kernel, constants, &p)) return false;
    if (p.depth <= 0 || p.lanes <= 0 || count % (uint64_t)p.depth != 0) return false;
    const uint64_t rows = count / (uint64_t)p.depth;
    if (rows == 0 || rows > (uint64_t)p.lanes) return false;
    return (is_dense((int64_t)rows, p.row_stride, p.depth, p.depth_stride) ||
            is_dense(p.depth, p.depth_stride, (int64_t)rows, p.row_stride)) &&
           has_each_row(&p, (int64_t)rows);
}

/* ---- the inverse ---- */

/* As words: an element may be a NaN whose bits no float operation has to keep. */
static void element_copy(const char *from, char *to)
{
    memcpy(to, from, sizeof(float));
}

/* Row after row: the steps of a row are neighbours in the weight. */
static void unpack_rows(const panels *p, const char *panel, int64_t first, int64_t count, char *to)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t row = p->rows == NULL ? first + i : p->rows[first + i];
        if (row < 0) continue;
        const char *from = panel + i * (int64_t)sizeof(float);
        char *at = to + row * p->row_stride * (int64_t)sizeof(float);
        for (int64_t d = 0; d < p->depth; d++) {
            element_copy(from + d * PANEL * (int64_t)sizeof(float),
                         at + d * p->depth_stride * (int64_t)sizeof(float));
        }
    }
}

/* Step after step: the rows of a step are neighbours. */
static void unpack_steps(const panels *p, const char *panel, int64_t first, int64_t count, char *to)
{
    for (int64_t d = 0; d < p->depth; d++) {
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = p->rows == NULL ? first + i : p->rows[first + i];
            const int64_t at = row * p->row_stride + d * p->depth_stride;
            if (row < 0) continue;
            element_copy(panel + (d * PANEL + i) * (int64_t)sizeof(float),
                         to + at * (int64_t)sizeof(float));
        }
    }
}

void sp__unpack(sp_kernel_id kernel, const void *constants, const void *copy, void *weight)
{
    panels p;
    if (!panels_find(kernel, constants, &p)) return;
    const char *panel = copy;
    for (int64_t first = 0; first < p.lanes; first += PANEL) {
        const int64_t left = p.lanes - first, count = left < PANEL ? left : PANEL;
        if (p.depth_stride == 1) unpack_rows(&p, panel, first, count, weight);
        else unpack_steps(&p, panel, first, count, weight);
        panel += p.depth * PANEL * (int64_t)sizeof(float);
    }
}
