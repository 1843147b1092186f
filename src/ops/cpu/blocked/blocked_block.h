/* SPDX-License-Identifier: Apache-2.0 */
/* A block of outputs of a convolution in blocks of channels: a few neighbouring outputs of a few
 * panels of filters. The filters are in the lanes of vectors, an input is broadcast to all of them,
 * so no lane is wasted on small planes and no input is moved. Of a last panel with up to 8 filters
 * half is computed: a vector less, or one of half the lanes. */
#ifndef SP_OPS_CPU_BLOCKED_BLOCKED_BLOCK_H
#define SP_OPS_CPU_BLOCKED_BLOCKED_BLOCK_H

#include "ops/cpu/blocked/epilogue.h"
#include "ops/cpu/blocked/patch.h"

/* The most accumulators, and outputs, of a block. Accumulators, the weights of one step and a
 * broadcast input fit the registers. */
#if SP_VECTOR == 16
enum { SP_BLOCKED_SUMS = 28, SP_BLOCKED_OUTPUTS = 14 };
#elif SP_VECTOR == 4
enum { SP_BLOCKED_SUMS = 24, SP_BLOCKED_OUTPUTS = 6 };
#elif !SP_HAS_HARDWARE_FMA
enum { SP_BLOCKED_SUMS = 2, SP_BLOCKED_OUTPUTS = 1 }; /* a sum is 30 instructions an element */
#else
enum { SP_BLOCKED_SUMS = 12, SP_BLOCKED_OUTPUTS = 6 };
#endif

/* Up to so many panels are computed together. */
enum { SP_BLOCKED_PANELS = SP_EPILOGUE_BLOCKS };

/* Outputs at an end of a row, whose inputs at some taps are padding. */
typedef enum sp_blocked_side { SP_BLOCKED_LEFT = 1, SP_BLOCKED_RIGHT = 2 } sp_blocked_side;

/* A segment of the taps. Those that are no padding for a row of outputs are `runs` runs of `run`
 * taps each, from tap `first` on, and `gap` taps behind each: one run of all taps, or a run for
 * each channel. */
typedef struct sp_blocked_segment {
    const int64_t *offsets; /* of its inputs, by tap; one more is read, of no input */
    const uint8_t *sides;   /* by tap: where its inputs are padding, sp_blocked_side */
    int64_t depth, panel;   /* taps; floats of a panel of weights */
    int64_t plane;          /* floats of a block of y */
    int64_t first, run, gap, runs;
    sp_epilogue *epilogue; /* of the panels, in the last segment */
    bool is_first, is_last;
} sp_blocked_segment;

/* The chains of a vector of filters, SP_BLOCK floats apart, are added to the sums in y. */
static SP_ALWAYS_INLINE void sp_blocked_add_chains(const float *chain, int64_t outputs,
                                                   bool is_first, float *y)
{
    for (int64_t p = 0; p < outputs; p++, chain += SP_BLOCK, y += SP_BLOCK) {
        sp_vector sum = sp_vector_splat(0);
        if (!is_first) sum = sp_vector_load(y);
        sp_vector_store(y, sum + sp_vector_load(chain));
    }
}

/* The same, the last ones. */
static SP_ALWAYS_INLINE void sp_blocked_finish_chains(const unsigned kind, const sp_epilogue *e,
                                                      int64_t channel, const float *chain,
                                                      int64_t outputs, bool is_first, float *y)
{
    const sp_epilogue_vectors v = sp_epilogue_of(kind, e, channel);
    const float *other = (kind & SP_EPILOGUE_OTHER) != 0 ? e->other + (y - e->y) : y;
    for (int64_t p = 0; p < outputs; p++, chain += SP_BLOCK, y += SP_BLOCK, other += SP_BLOCK) {
        sp_vector sum = sp_vector_splat(0);
        if (!is_first) sum = sp_vector_load(y);
        sum = sp_epilogue_apply(kind, &v, sum + sp_vector_load(chain), other);
        sp_vector_store(y, sum);
    }
}

/* Adds the chains of a segment, [panels][outputs][SP_BLOCK], to the sums in y. Apart from the loop
 * that computes them, whose registers its constants would take, and once for all of them. */
static SP_NOINLINE SP_NOCLONE void sp_blocked_add(const sp_blocked_segment *s, const float *chains,
                                                  int64_t panels, int64_t outputs, float *y)
{
    const sp_epilogue *e = s->epilogue;
    for (int64_t f = 0; f < panels; f++) {
        for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
            const float *chain = chains + f * outputs * SP_BLOCK + v;
            float *to = y + f * s->plane + v;
            if (!s->is_last) {
                sp_blocked_add_chains(chain, outputs, s->is_first, to);
                continue;
            }
            SP_EPILOGUE_CALL(e->kind, sp_blocked_finish_chains, e, f * SP_BLOCK + v, chain, outputs,
                             s->is_first, to);
        }
    }
    if (s->is_last) sp_activate(e->activation, y, panels, s->plane, outputs * SP_BLOCK);
}

/* ---- half panels ---- */

/* Lanes of half a panel. */
enum { SP_HALF = SP_BLOCK / 2 };

/* Whole vectors of so many panels, of which the last is half a panel if `has_half`. */
static SP_ALWAYS_INLINE int64_t sp_blocked_vectors(int64_t panels, bool has_half)
{
    return panels * SP_BLOCK_VECTORS - (has_half ? (SP_BLOCK_VECTORS + 1) / 2 : 0);
}

/* Registers of the chains of an output. */
static SP_ALWAYS_INLINE int64_t sp_blocked_registers(int64_t panels, bool has_half)
{
    return sp_blocked_vectors(panels, has_half) + (has_half && SP_VECTOR > SP_HALF ? 1 : 0);
}

#if SP_VECTOR == 16

typedef float sp_half_vector __attribute__((vector_size(SP_HALF * 4)));

/* One tap of half a panel. */
static SP_ALWAYS_INLINE void sp_blocked_half_tap(const int64_t outputs, const int64_t step,
                                                 const float *in, const float *w,
                                                 sp_half_vector *acc)
{
    const __m256 weights = _mm256_loadu_ps(w);
#pragma GCC unroll 16
    for (int64_t p = 0; p < outputs; p++) {
        const __m256 input = _mm256_set1_ps(in[p * step]);
        acc[p] = (sp_half_vector)_mm256_fmadd_ps(input, weights, (__m256)acc[p]);
    }
}

/* Stores the chains of half a panel, SP_BLOCK floats apart, and zeros behind each. */
static SP_ALWAYS_INLINE void sp_blocked_store_half(const int64_t outputs, const sp_half_vector *acc,
                                                   float *chains)
{
#pragma GCC unroll 16
    for (int64_t p = 0; p < outputs; p++) {
        _mm256_storeu_ps(chains + p * SP_BLOCK, (__m256)acc[p]);
        _mm256_storeu_ps(chains + p * SP_BLOCK + SP_HALF, _mm256_setzero_ps());
    }
}

#else /* the vectors of half a panel are whole ones */

typedef sp_vector sp_half_vector;

static SP_ALWAYS_INLINE void sp_blocked_half_tap(const int64_t outputs, const int64_t step,
                                                 const float *in, const float *w,
                                                 sp_half_vector *acc)
{
    (void)outputs, (void)step, (void)in, (void)w, (void)acc;
}

static SP_ALWAYS_INLINE void sp_blocked_store_half(const int64_t outputs, const sp_half_vector *acc,
                                                   float *chains)
{
    (void)acc;
    for (int64_t i = 0; i < outputs * SP_BLOCK; i += SP_BLOCK) {
        for (int64_t v = SP_HALF; v < SP_BLOCK; v += SP_VECTOR) {
            sp_vector_store(chains + i + v, sp_vector_splat(0));
        }
    }
}

#endif

/* ---- segments ---- */

/* Is the input of output p padding at a tap where those at `sides` are? */
static SP_ALWAYS_INLINE bool sp_blocked_is_padding(const int64_t p, const int64_t outputs,
                                                   unsigned sides)
{
    if (p == 0 && (sides & SP_BLOCKED_LEFT) != 0) return true;
    return p == outputs - 1 && (sides & SP_BLOCKED_RIGHT) != 0;
}

/* One tap: its inputs are `step` floats apart from `in` on, its weights begin at w. Inputs at
 * `sides`, which no half panel has, are padding, and left out. */
static SP_ALWAYS_INLINE void sp_blocked_tap(const int64_t panels, const bool has_half,
                                            const int64_t outputs, const int64_t step,
                                            const float *in, const float *w, int64_t panel,
                                            unsigned sides, sp_vector *acc, sp_half_vector *halves)
{
    const int64_t vectors = sp_blocked_vectors(panels, has_half);
    sp_vector weights[SP_BLOCKED_PANELS * SP_BLOCK_VECTORS];
#pragma GCC unroll 16
    for (int64_t v = 0; v < vectors; v++) {
        weights[v] =
            sp_vector_load(w + v / SP_BLOCK_VECTORS * panel + v % SP_BLOCK_VECTORS * SP_VECTOR);
    }
#pragma GCC unroll 16
    for (int64_t p = 0; p < outputs; p++) {
        if (sp_blocked_is_padding(p, outputs, sides)) continue;
        const sp_vector input = sp_vector_splat(in[p * step]);
#pragma GCC unroll 16
        for (int64_t v = 0; v < vectors; v++) {
            sp_vector *sum = &acc[p * vectors + v];
            *sum = sp_vector_fma(input, weights[v], *sum);
        }
    }
    if (has_half) sp_blocked_half_tap(outputs, step, in, w + (panels - 1) * panel, halves);
}

/* Stores the chains as [panels][outputs][SP_BLOCK]; lanes that are left out become 0. */
static SP_ALWAYS_INLINE void sp_blocked_store(const int64_t panels, const bool has_half,
                                              const int64_t outputs, const sp_vector *acc,
                                              const sp_half_vector *halves, float *chains)
{
    const int64_t vectors = sp_blocked_vectors(panels, has_half);
#pragma GCC unroll 32
    for (int64_t i = 0; i < outputs * vectors; i++) {
        const int64_t v = i % vectors, at = v / SP_BLOCK_VECTORS * outputs + i / vectors;
        sp_vector_store(chains + at * SP_BLOCK + v % SP_BLOCK_VECTORS * SP_VECTOR, acc[i]);
    }
    float *last = chains + (panels - 1) * outputs * SP_BLOCK;
    if (has_half) sp_blocked_store_half(outputs, halves, last);
}

/* Runs a segment; all but the pointers are constants after inlining. Outputs are `step` floats
 * apart in x. The depth is a multiple of `taps`, of which each so many are next to each other.
 * `ahead`: NULL, or a panel that is fetched into the second cache meanwhile. */
static SP_ALWAYS_INLINE void sp_blocked_run(const int64_t panels, const bool has_half,
                                            const int64_t outputs, const int64_t step,
                                            const int64_t taps, const sp_blocked_segment *s,
                                            const float *x, const float *w, const float *ahead,
                                            float *y)
{
    float chains[2 * SP_BLOCKED_SUMS * SP_VECTOR]; /* of a half panel a half is not in registers */
    sp_vector acc[SP_BLOCKED_SUMS] = {0};
    sp_half_vector halves[SP_BLOCKED_OUTPUTS] = {0};
    const float *next = x + s->offsets[0];
    for (int64_t k = 0; k < s->depth; k += taps, w += taps * SP_BLOCK) {
        if (ahead != NULL) {
#pragma GCC unroll 4
            for (int64_t t = 0; t < taps; t++) __builtin_prefetch(ahead + t * SP_BLOCK, 0, 2);
            ahead += taps * SP_BLOCK;
        }
        /* Found a step ahead: loads that wait for their address keep later ones from starting. */
        const float *in = next;
        next = x + s->offsets[k + taps];
#pragma GCC unroll 4
        for (int64_t t = 0; t < taps; t++) {
            sp_blocked_tap(panels, has_half, outputs, step, in + t, w + t * SP_BLOCK, s->panel, 0,
                           acc, halves);
        }
    }
    sp_blocked_store(panels, has_half, outputs, acc, halves, chains);
    sp_blocked_add(s, chains, panels, outputs, y);
}

/* The same of whole panels and blocked inputs, without the taps that are padding: those of all
 * outputs by the segment's runs, and those of the first or the last output, if they are at `sides`
 * of the image. A loop of its own: the one above has no instruction for it. */
static SP_ALWAYS_INLINE void sp_blocked_run_edge(const int64_t panels, const int64_t outputs,
                                                 unsigned sides, const sp_blocked_segment *s,
                                                 const float *x, const float *w, const float *ahead,
                                                 float *y)
{
    float chains[SP_BLOCKED_SUMS * SP_VECTOR];
    sp_vector acc[SP_BLOCKED_SUMS] = {0};
    int64_t k = s->first;
    w += k * SP_BLOCK;
    for (int64_t runs = s->runs; runs > 0; runs--) {
        const float *next = x + s->offsets[k];
        for (const int64_t end = k + s->run; k < end; k++, w += SP_BLOCK) {
            if (ahead != NULL) {
                __builtin_prefetch(ahead, 0, 2);
                ahead += SP_BLOCK;
            }
            const unsigned of = s->sides[k] & sides;
            const float *in = next;
            next = x + s->offsets[k + 1];
            sp_blocked_tap(panels, false, outputs, SP_BLOCK, in, w, s->panel, of, acc, NULL);
        }
        k += s->gap;
        w += s->gap * SP_BLOCK;
    }
    sp_blocked_store(panels, false, outputs, acc, NULL, chains);
    sp_blocked_add(s, chains, panels, outputs, y);
}

#endif
