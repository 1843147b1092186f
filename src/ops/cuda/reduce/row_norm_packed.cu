/* SPDX-License-Identifier: Apache-2.0 */
/* row_norm_f32 whose result is packed for a narrow product (docs/decisions/0093), of rows that are kept
 * in registers. */

template <class E> SP_CUDA_FUNCTION typename E::type sp_round_one(E, float x)
{
    return (typename E::type)sp_round_pair(E(), x, x);
}
SP_CUDA_FUNCTION uint32_t sp_round_one(sp_tensor_tf32, float x)
{
    return sp_tensor_tf32::round(x);
}

template <class E> struct sp_norm_line {
    char *packed;
    int64_t rows, line;

    __device__ __forceinline__ void begin(const sp_row_norm_constants &k, int64_t row)
    {
        const int64_t inner = sp_take_coordinate(&row, k.line_block);
        rows = k.rows;
        line = row * k.line_outer + inner * k.line_inner;
    }

    __device__ __forceinline__ void store(int64_t i, float value) const
    {
        constexpr int steps = SP_NARROW_BYTES / E::bytes, part = 16 / E::bytes;
        const int step = (int)i % steps;
        char *to = packed + (i / steps * rows + line) * SP_NARROW_BYTES;
        to += sp_narrow_part(step / part, line) * 16;
        ((typename E::type *)to)[step % part] = sp_round_one(E(), value);
    }
};

#define SP_ROW_NORM_PACKED(type)                                                                   \
    SP_CUDA_KERNEL_ENTRY(row_norm_packed_##type, sp_row_norm_constants,                            \
                         __launch_bounds__(SP_CUDA_THREADS, 3), sp_await_launch())                 \
    {                                                                                              \
        typedef sp_norm_line<sp_tensor_##type> Line;                                               \
        SP_CUDA_SHARED(pool);                                                                      \
        int next;                                                                                  \
        auto body = sp_make_row_norm<Line>(bindings, k, &next);                                    \
        body.packed.packed = (char *)bindings.at[next];                                            \
        sp_each_row((const float *)bindings.at[0], k.rows, k.extent, (sp_f32 *)pool,               \
                    sp_body_of_kept<sp_row_norm_body<Line>>{body, k.extent});                      \
    }

SP_ROW_NORM_PACKED(tf32)
SP_ROW_NORM_PACKED(f16)
SP_ROW_NORM_PACKED(bf16)
