/* SPDX-License-Identifier: Apache-2.0 */
/* x times a function of x, in the steps that exporters write, each rounded. A NaN stays a NaN in
 * all of them, so it is made canonical once, at the end; more of that would keep compilers from
 * vectors. */
#include "base/macros.h"
#include "ops/cpu/arch/float_functions.h"
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
    const float addend = k->addend, low = k->low, high = k->high, divisor = k->divisor;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
    {
        y[i] = clip_gate(x[i], addend, low, high, divisor);
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
