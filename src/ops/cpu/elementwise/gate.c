/* SPDX-License-Identifier: Apache-2.0 */
/* x times a function of x, in the steps that exporters write, each rounded. A NaN stays a NaN in
 * all of them, so it is made canonical once, at the end; more of that would keep compilers from
 * vectors. */
#include "base/macros.h"
#include "ops/activation.h"
#include "ops/cpu/arch/float_functions.h"
#include "ops/cpu/arch/hard_swish.h"
#include "ops/cpu/elementwise/elementwise.h"

static SP_ALWAYS_INLINE float erf_gate(float x, float divisor, float addend, float factor)
{
    return sp_canonical(x * (sp_erff(x / divisor) + addend) * factor);
}

sp_status SP_KERNEL(erf_gate_f32)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_gate_constants)
    const float *x = (const float *)tile->bindings[0] + first;
    float *y = (float *)tile->bindings[1] + first;
    const float divisor = k->divisor, addend = k->addend, factor = k->factor;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = erf_gate(x[i], divisor, addend, factor);
    return SP_OK;
}

static SP_ALWAYS_INLINE float clip_gate(float x, float addend, float low, float high, float divisor)
{
    const float part = sp_clip_f32(x + addend, low, high);
    if (SP_PLANTED(gate_divides_first)) return sp_canonical(x * (part / divisor));
    return sp_canonical(x * part / divisor);
}

sp_status SP_KERNEL(clip_gate_f32)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_gate_constants)
    const float *x = (const float *)tile->bindings[0] + first;
    float *y = (float *)tile->bindings[1] + first;
    if (sp__activation_of(SP_KERNEL_ID_clip_gate_f32, k) == SP_ACTIVATION_HARD_SWISH) {
        sp_hard_swish_list(x, n, y);
        return SP_OK;
    }
    const float addend = k->addend, low = k->low, high = k->high, divisor = k->divisor;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        y[i] = clip_gate(x[i], addend, low, high, divisor);
    }
    return SP_OK;
}

static SP_ALWAYS_INLINE float hard_sigmoid_gate(float x, float scale, float addend)
{
    if (SP_PLANTED(gate_rounds_once)) {
        return sp_canonical(x * sp_hard_sigmoid_f32(sp_fmaf(scale, x, addend), 1, 0));
    }
    return sp_canonical(x * sp_hard_sigmoid_f32(x, scale, addend));
}

sp_status SP_KERNEL(hard_sigmoid_gate_f32)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_gate_constants)
    const float *x = (const float *)tile->bindings[0] + first;
    float *y = (float *)tile->bindings[1] + first;
    const float scale = k->scale, addend = k->addend;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = hard_sigmoid_gate(x[i], scale, addend);
    return SP_OK;
}

static SP_ALWAYS_INLINE float softplus_of(float x, float e)
{
    return SP_PLANTED(gate_adds_one) ? sp_logf(1 + sp_expf(x)) : sp_softplus_logf(x, e);
}

/* In three loops: a core has few vectors in work at a time of a chain as long as all of it, which
 * takes twice the time. */
static SP_ALWAYS_INLINE void softplus_stretch(const float *x, int64_t n, float *y)
{
    float parts[SP_STRETCH];
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) parts[i] = sp_softplus_expf(x[i]);
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) parts[i] = softplus_of(x[i], parts[i]);
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = sp_canonical(x[i] * sp_tanhf(parts[i]));
}

sp_status SP_KERNEL(softplus_gate_f32)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_gate_constants)
    const float *x = (const float *)tile->bindings[0] + first;
    float *y = (float *)tile->bindings[1] + first;
    for (int64_t i = 0; i < n; i += SP_STRETCH) {
        softplus_stretch(x + i, n - i < SP_STRETCH ? n - i : SP_STRETCH, y + i);
    }
    return SP_OK;
}

static SP_ALWAYS_INLINE float tanh_gate(float x, const sp_gate_constants *k)
{
    const float cube = x * (x * (k->cube * x));
    const float gate = k->addend + sp_tanhf(k->scale * (x + cube));
    if (SP_PLANTED(gate_halves_x)) return sp_canonical(x * k->factor * gate);
    return sp_canonical(x * (k->factor * gate));
}

sp_status SP_KERNEL(tanh_gate_f32)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_gate_constants)
    const float *x = (const float *)tile->bindings[0] + first;
    float *y = (float *)tile->bindings[1] + first;
    const sp_gate_constants of = *k;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = tanh_gate(x[i], &of);
    return SP_OK;
}
