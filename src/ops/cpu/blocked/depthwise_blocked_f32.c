/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution over images in blocks of channels. Same sum as conv_depthwise_f32: over
 * (kernel row, kernel column), in one segment, then the bias, then the activation. Taps in the
 * padding are included but for whole rows of them where they change nothing. The lanes of a vector
 * are channels. */
#include "ops/cpu/blocked/epilogue.h"
#include "ops/cpu/blocked/plane.h"

/* Outputs that are computed together. */
enum { OUTPUTS = SP_HAS_HARDWARE_FMA ? 8 / SP_BLOCK_VECTORS : 2 };

typedef struct depthwise {
    const float *w; /* of the block */
    sp_epilogue epilogue;
} depthwise;

/* `count` outputs; it, `kind` and `step` are constants after inlining. */
static SP_ALWAYS_INLINE void run_outputs(const int64_t count, const unsigned kind,
                                         const int64_t step, const depthwise *d,
                                         const sp_epilogue_vectors *vectors, const sp_plane_row *r,
                                         const float *x, float *y)
{
    enum { V = SP_BLOCK_VECTORS };
    sp_vector acc[OUTPUTS * V] = {0};
    const int64_t *offsets = r->offsets;
    const float *next = x + offsets[r->first_tap];
    for (int64_t t = r->first_tap; t < r->last_tap; t++) {
        const float *in = next; /* found a step ahead, as in blocked_block.h */
        next = x + offsets[t + 1];
#pragma GCC unroll 2
        for (int64_t v = 0; v < V; v++) {
            const sp_vector weight = sp_vector_load(d->w + t * SP_BLOCK + v * SP_VECTOR);
#pragma GCC unroll 8
            for (int64_t p = 0; p < count; p++) {
                sp_vector *sum = &acc[p * V + v];
                *sum = sp_vector_fma(weight, sp_vector_load(in + p * step + v * SP_VECTOR), *sum);
            }
        }
    }
    const float *other =
        (kind & SP_EPILOGUE_OTHER) != 0 ? d->epilogue.other + (y - d->epilogue.y) : y;
#pragma GCC unroll 8
    for (int64_t i = 0; i < count * V; i++) {
        /* As for every sum of a chain: +0 + the chain. */
        const sp_vector sum = sp_vector_splat(0) + acc[i];
        sp_vector_store(y + i * SP_VECTOR,
                        sp_epilogue_apply(kind, &vectors[i % V], sum, other + i * SP_VECTOR));
    }
}

static SP_ALWAYS_INLINE void run_columns(const unsigned kind, const int64_t step,
                                         const depthwise *d, const sp_plane_row *r)
{
    sp_epilogue_vectors vectors[SP_BLOCK_VECTORS];
    const float *x = r->x;
    float *y = r->y;
    const int64_t all = OUTPUTS, half = OUTPUTS / 2;
    int64_t left = r->columns;
    for (int64_t v = 0; v < SP_BLOCK_VECTORS; v++) {
        vectors[v] = sp_epilogue_of(kind, &d->epilogue, v * SP_VECTOR);
    }
    for (; left >= all; left -= all, x += all * step, y += all * SP_BLOCK) {
        run_outputs(all, kind, step, d, vectors, r, x, y);
    }
    for (; left >= half; left -= half, x += half * step, y += half * SP_BLOCK) {
        run_outputs(half, kind, step, d, vectors, r, x, y);
    }
    for (; left > 0; left--, x += step, y += SP_BLOCK) {
        run_outputs(1, kind, step, d, vectors, r, x, y);
    }
}

enum { TWO_BLOCKS = 2 * SP_BLOCK };

static void run_row(const void *kernel, const sp_plane_row *r)
{
    const depthwise *d = kernel;
    if (r->step == SP_BLOCK) {
        SP_EPILOGUE_CALL(d->epilogue.kind, run_columns, SP_BLOCK, d, r);
    } else {
        SP_EPILOGUE_CALL(d->epilogue.kind, run_columns, TWO_BLOCKS, d, r);
    }
    sp_activate(d->epilogue.activation, r->y, 1, 0, r->columns * SP_BLOCK);
}

sp_status SP_KERNEL(depthwise_blocked_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t block = tile->index[1];
    const sp_epilogue_lists lists = sp_epilogue_find(tile, 0);
    depthwise d;
    d.w = (const float *)tile->bindings[1] + block * SP_BLOCK * k->kernel_h * k->kernel_w;
    sp_epilogue_init(&d.epilogue, tile);
    sp_epilogue_load(&d.epilogue, &lists, block * SP_BLOCK, SP_BLOCK, k->groups);
    sp_plane_run(tile, tile->bindings[0], sp_epilogue_output(tile), 0, &d, run_row);
    return SP_OK;
}
