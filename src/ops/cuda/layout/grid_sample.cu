/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample of images. A thread has a pixel of the output, in all channels. */

SP_CUDA_KERNEL(grid_sample_f32, sp_grid_sample_constants)
{
    const float *x = (const float *)bindings.at[0], *grid = (const float *)bindings.at[1];
    float *y = (float *)bindings.at[2];
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < k.count; i += sp_thread_stride()) {
        const int64_t image = i / k.pixels, pixel = i % k.pixels;
        const sp_grid_taps w = sp_grid_taps_of(grid[2 * i], k.in_w, &k);
        const sp_grid_taps h = sp_grid_taps_of(grid[2 * i + 1], k.in_h, &k);
#pragma unroll 1
        for (int64_t c = 0; c < k.channels; c++) {
            const int64_t plane = image * k.channels + c;
            y[plane * k.pixels + pixel] =
                sp_store(sp_grid_value(x + plane * k.in_h * k.in_w, k.in_w, &h, &w));
        }
    }
}
