/* SPDX-License-Identifier: Apache-2.0 */
/* A normalisation that was written in steps (row_norm_f32), of one row, whose result may be packed for
 * a narrow product; and what a row that is kept in registers (rows.cuh) has for normalisations. */

template <class Kept> struct sp_register_row {
    Kept &kept;
    int64_t extent;

    __device__ __forceinline__ bool is_first() const
    {
        return kept.thread == 0;
    }
    __device__ __forceinline__ void add(const float *to_all)
    {
        kept.add(to_all);
    }
    __device__ __forceinline__ sp_f32 mean()
    {
        return kept.sum([](sp_f32 &value) { return value; }) / sp_f32((float)extent);
    }
    __device__ __forceinline__ sp_f32 variance(sp_f32 shift)
    {
        const sp_f32 sum = kept.sum([&](sp_f32 &value) {
            const sp_f32 distance = value - shift;
            return distance * distance;
        });
        return sum / sp_f32((float)extent);
    }
    template <class Body> __device__ __forceinline__ void each(Body body) const
    {
        kept.each([&](int i, sp_f32 value) { body(i, value); });
    }
    template <class Body> __device__ __forceinline__ void each_index(Body body) const
    {
        kept.each_index(body);
    }
};

template <class Body> struct sp_body_of_kept {
    const Body &body;
    int64_t extent;

    template <class Kept>
    __device__ __forceinline__ void operator()(Kept &kept, int64_t row, bool is_there) const
    {
        sp_register_row<Kept> of = {kept, extent};
        body(of, row, is_there);
    }
};

/* A result that is not packed. */
struct sp_norm_in_rows {
    __device__ __forceinline__ void begin(const sp_row_norm_constants &, int64_t)
    {
    }
    __device__ __forceinline__ void store(int64_t, float) const
    {
    }
};

/* `packed`: its begin(k, row) is called for a row, and its store(i, value) for each element. */
template <class Packed> struct sp_row_norm_body {
    const sp_row_norm_constants &k;
    sp_f32 epsilon;
    const float *scale, *bias, *addend;
    float *y; /* nullptr: only packed */
    Packed packed;

    template <class Row>
    __device__ __forceinline__ void operator()(Row &of, int64_t row, bool is_there) const
    {
        if (addend) {
            int64_t outer = is_there ? row : 0;
            const int64_t inner = sp_take_coordinate(&outer, k.addend_block);
            of.add(addend + outer * k.addend_outer + inner * k.addend_inner);
        }
        sp_f32 mean = 0.0f;
        if (k.is_centred) mean = of.mean();
        const sp_f32 deviation = sp_sqrt(of.variance(mean) + epsilon);
        const sp_f32 reciprocal = sp_f32(1.0f) / deviation;
        if (!is_there) return;
        float *to = y + row * k.extent;
        Packed line = packed;
        line.begin(k, row);
        of.each([&](int64_t i, sp_f32 value) {
            const sp_f32 distance = value - mean;
            sp_f32 out = k.by_reciprocal ? distance * reciprocal : distance / deviation;
            if (scale) out = out * scale[i];
            if (bias) out = out + bias[i];
            const float stored = sp_store(out);
            if (y) to[i] = stored;
            line.store(i, stored);
        });
        if (k.activation == SP_ACTIVATION_NONE) return;
        of.each_index([&](int64_t i) { to[i] = sp_activate(k.activation, to[i]); });
    }
};

/* The operands as they are bound; `y` and what follows it: bindings.at[result]. */
template <class Packed>
SP_CUDA_FUNCTION sp_row_norm_body<Packed> sp_make_row_norm(const sp_gpu_bindings &bindings,
                                                           const sp_row_norm_constants &k, int *result)
{
    int next = 2;
    const float *scale = k.has_scale ? (const float *)bindings.at[next++] : nullptr;
    const float *bias = k.has_bias ? (const float *)bindings.at[next++] : nullptr;
    const float *addend = k.has_addend ? (const float *)bindings.at[next++] : nullptr;
    float *y = k.is_only_packed ? nullptr : (float *)bindings.at[next++];
    *result = next;
    return {k, *(const float *)bindings.at[1], scale, bias, addend, y, Packed()};
}
