/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two computed values, whose operands are rounded to f16 or bf16 (docs/decisions/0089). Both
 * are f32 in global memory, and are rounded on their way to shared memory. There a line has the steps
 * of a row of the left operand, or of a column of the right one. */

/* A part of an operand: lines and steps that are there, and their strides, in elements. */
struct sp_rounded_part {
    const float *from;
    int64_t line, step;
    int lines, steps;
};

/* Scales nothing. */
struct sp_rounded_as_is {
    __device__ __forceinline__ float operator()(float x) const
    {
        return x;
    }
};

/* Four steps of a line, scaled; zeros where the part has none. */
template <class Scale>
SP_CUDA_FUNCTION float4 sp_rounded_steps(const sp_rounded_part &p, int line, int step, bool is_wide,
                                         const Scale &scale)
{
    float4 x = {0, 0, 0, 0};
    if (line >= p.lines) return x;
    const float *from = p.from + line * p.line + step * p.step;
    const int rest = p.steps - step;
    if (is_wide && rest >= 4) {
        const float4 all = *(const float4 *)from;
        return {scale(all.x), scale(all.y), scale(all.z), scale(all.w)};
    }
    if (rest > 0) x.x = scale(from[0]);
    if (rest > 1) x.y = scale(from[p.step]);
    if (rest > 2) x.z = scale(from[2 * p.step]);
    if (rest > 3) x.w = scale(from[3 * p.step]);
    return x;
}

/* Loads all_lines lines of all_steps steps, a multiple of 4, `pitch` bytes apart, by `threads` threads
 * of the block. Neighbouring threads load neighbouring elements; a thread goes on by a fixed number
 * of lines and steps, without divisions. */
template <class E, class Scale>
SP_CUDA_FUNCTION void sp_load_rounded(const sp_rounded_part &p, char *to, int pitch, int all_lines,
                                      int all_steps, int threads, const Scale &scale)
{
    const bool is_along = p.step == 1;
    const bool is_wide = is_along && (p.line & 3) == 0 && ((uint64_t)p.from & 15) == 0;
    const unsigned vectors = (unsigned)all_steps / 4, thread = threadIdx.x;
    const unsigned inner = is_along ? vectors : (unsigned)all_lines;
    const int outers = is_along ? all_lines : (int)vectors;
    const int down = (int)((unsigned)threads / inner), across = (int)((unsigned)threads % inner);
    int o = (int)(thread / inner), i = (int)(thread % inner);
#pragma unroll 4
    for (; o < outers; o += down) {
        const int line = is_along ? o : i, step = (is_along ? i : o) * 4;
        sp_store_rounded(E(), sp_rounded_steps(p, line, step, is_wide, scale),
                         to + line * pitch + step * E::bytes);
        i += across;
        if (i >= (int)inner) {
            i -= (int)inner;
            o++;
        }
    }
}

/* A warp's chains of 16 rows and 8 * across columns. */
template <int across> struct sp_rounded_sums {
    float at[across][4];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < across * 4; i++) (&at[0][0])[i] = 0;
    }

    __device__ __forceinline__ void add(const sp_rounded_sums &chain)
    {
#pragma unroll
        for (int i = 0; i < across * 4; i++) {
            (&at[0][0])[i] = __fadd_rn((&at[0][0])[i], (&chain.at[0][0])[i]);
        }
    }

    /* Adds the products of a fragment with the first `columns` of those lines. */
    template <class E>
    __device__ __forceinline__ void multiply(const sp_left_fragment<E> &left, const char *right,
                                             int pitch, int columns)
    {
#pragma unroll
        for (int j = 0; j < across; j += 2) {
            sp_right_fragment<E> b[2];
            if (j * 8 >= columns) break;
            sp_read_right<E>(right + j * 8 * pitch, pitch, b);
            sp_multiply_fragments(left, b[0], at[j]);
            sp_multiply_fragments(left, b[1], at[j + 1]);
        }
    }
};
