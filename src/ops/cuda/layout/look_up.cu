/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by indices (ops/cpu/gemm/look_up.c). The sums of the table are canonical, so they
 * need to be made so only after an addition. */

/* The row of the table of an index: the last one if the index is out of range. */
SP_CUDA_FUNCTION int64_t sp_look_up_row(const sp_look_up_constants &k, const void *indices,
                                        int64_t at)
{
    const int64_t index = sp_index_load(indices, at, k.is_wide ? 8 : 4);
    return sp_index_is_inside(index, k.depth) ? index : k.depth;
}

SP_CUDA_KERNEL(look_up_f32, sp_look_up_constants)
{
    const float *table = (const float *)bindings.at[1];
    const float *c = k.has_c ? (const float *)bindings.at[2] : nullptr;
    float *y = (float *)bindings.at[k.has_c ? 3 : 2];
    const int64_t count = k.rows * k.columns;
#pragma unroll 1
    for (int64_t i = sp_thread_index(); i < count; i += sp_thread_stride()) {
        int64_t row = i;
        const int64_t column = sp_take_coordinate(&row, k.columns);
        const int64_t at = sp_look_up_row(k, bindings.at[0], row);
        float out = table[at * k.columns + column];
        if (c) out = sp_store(sp_f32(out) + c[row * k.c_row + column]);
        y[i] = sp_activate(k.activation, out);
    }
}

/* A thread has a column. */
SP_CUDA_KERNEL(look_up_pack_f32, sp_pack_constants)
{
    const float *b = (const float *)bindings.at[0];
    float *table = (float *)bindings.at[1];
    const auto is_finite = [](sp_f32 x) { return sp_abs(x) < sp_limits<sp_f32>::most(); };
    const float not_a_number = sp_canonical(SP_NAN_F32).v;
#pragma unroll 1
    for (int64_t c = sp_thread_index(); c < k.columns; c += sp_thread_stride()) {
        const float *from = b + c * k.column_stride;
        int64_t special = 0;
#pragma unroll 4
        for (int64_t d = 0; d < k.depth; d++) special += !is_finite(from[d * k.depth_stride]);
#pragma unroll 4
        for (int64_t d = 0; d < k.depth; d++) {
            const sp_f32 value = from[d * k.depth_stride];
            const bool meets_zero = special > (is_finite(value) ? 0 : 1);
            table[d * k.columns + c] = meets_zero ? not_a_number : sp_store(value + 0.0f);
        }
        table[k.depth * k.columns + c] = special > 0 ? not_a_number : 0.0f;
    }
}
