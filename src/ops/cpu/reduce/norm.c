/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations. Means and variances are sums in the order of lanes.h, divided by their number;
 * the variance is the mean of the squared distances from the rounded mean. Each step below is
 * rounded. */
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/reduce/row_sums_f32.h"

/* (x - mean) * (scale / sqrt(variance + epsilon)) + bias */
static SP_ALWAYS_INLINE float normalize(float x, float mean, float factor, float bias)
{
    return sp_canonical((x - mean) * factor + bias);
}

sp_status SP_KERNEL(batch_norm_f32)(const sp_tile *tile)
{
    const sp_batch_norm_constants *k = tile->constants;
    const float *x = tile->bindings[0], *scale = tile->bindings[1], *bias = tile->bindings[2];
    const float *mean = tile->bindings[3], *variance = tile->bindings[4];
    float *y = tile->bindings[5];
    const float epsilon = k->epsilon;
    int64_t plane = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->planes);
    while (plane < end) {
        const int64_t c = plane % k->channels;
        if (k->plane > 1) {
            const float factor = scale[c] / __builtin_sqrtf(variance[c] + epsilon);
            const float middle = mean[c], offset = bias[c];
            const float *from = x + plane * k->plane;
            float *to = y + plane * k->plane;
            SP_INDEPENDENT for (int64_t i = 0; i < k->plane; i++)
            {
                to[i] = normalize(from[i], middle, factor, offset);
            }
            sp_activate(k->activation, to, 1, 0, k->plane);
            plane++;
            continue;
        }
        /* Planes of one element: as many channels as are in a row. */
        const int64_t n = k->channels - c < end - plane ? k->channels - c : end - plane;
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            const float factor = scale[c + i] / __builtin_sqrtf(variance[c + i] + epsilon);
            y[plane + i] = normalize(x[plane + i], mean[c + i], factor, bias[c + i]);
        }
        sp_activate(k->activation, y + plane, 1, 0, n);
        plane += n;
    }
    return SP_OK;
}

/* y = a * momentum + b * (1 - momentum): running mean and variance of a training step. */
sp_status SP_KERNEL(blend_f32)(const sp_tile *tile)
{
    const sp_blend_constants *k = tile->constants;
    const float *a = tile->bindings[0], *b = tile->bindings[1];
    float *y = tile->bindings[2];
    const float momentum = k->momentum, rest = 1.0f - momentum;
    SP_INDEPENDENT for (int64_t i = 0; i < k->count; i++)
    {
        y[i] = sp_canonical(a[i] * momentum + b[i] * rest);
    }
    return SP_OK;
}

/* One row: its mean and 1 / sqrt(variance + epsilon), then ((x - mean) * that) * scale + bias. */
static void norm_row(const sp_norm_constants *k, const float *x, const float *scale,
                     const float *bias, float *y, float *mean_out, float *inverse_out)
{
    const int64_t n = k->extent;
    const float mean = sum_row_f32(row_sum_f32, x, n, 0) / (float)n;
    const float variance = sum_row_f32(row_square_f32, x, n, mean) / (float)n;
    const float inverse = 1.0f / __builtin_sqrtf(variance + k->epsilon);
    if (mean_out) *mean_out = sp_canonical(mean);
    if (inverse_out) *inverse_out = sp_canonical(inverse);
    if (k->span == 1) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++)
        {
            const float distance = (x[i] - mean) * inverse * scale[i];
            y[i] = sp_canonical(bias ? distance + bias[i] : distance);
        }
        return;
    }
    for (int64_t first = 0; first < n; first += k->span) {
        const float factor = scale[first / k->span];
        const float offset = bias ? bias[first / k->span] : 0;
        SP_INDEPENDENT for (int64_t i = first; i < first + k->span; i++)
        {
            const float distance = (x[i] - mean) * inverse * factor;
            y[i] = sp_canonical(bias ? distance + offset : distance);
        }
    }
}

sp_status SP_KERNEL(norm_f32)(const sp_tile *tile)
{
    const sp_norm_constants *k = tile->constants;
    const float *x = tile->bindings[0], *scale = tile->bindings[1];
    uint32_t next = 2;
    const float *bias = k->has_bias ? tile->bindings[next++] : NULL;
    float *y = tile->bindings[next++];
    float *mean = k->has_mean ? tile->bindings[next++] : NULL;
    float *inverse = k->has_inverse ? tile->bindings[next++] : NULL;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = first; row < last; row++) {
        const int64_t at = row % k->scale_rows * k->scale_row;
        norm_row(k, x + row * k->extent, scale + at, bias ? bias + at : NULL, y + row * k->extent,
                 mean ? mean + row : NULL, inverse ? inverse + row : NULL);
    }
    return SP_OK;
}
