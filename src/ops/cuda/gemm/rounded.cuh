/* SPDX-License-Identifier: Apache-2.0 */
/* Products of two computed values, whose operands are rounded to f16 or bf16 (docs/decisions/0089). Both
 * are f32 in global memory, and are rounded on their way to shared memory. There a line has
 * neighbouring elements of a row, or of a column, of the operand. */

/* A part of an operand: lines and their steps that are there, and their strides, in elements. */
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
SP_CUDA_FUNCTION float4 sp_rounded_steps(const sp_rounded_part &p, int line, int step,
                                         const Scale &scale)
{
    float4 x = {0, 0, 0, 0};
    if (line >= p.lines) return x;
    const float *from = p.from + line * p.line + step * p.step;
    const int rest = p.steps - step;
    if (rest > 0) x.x = scale(from[0]);
    if (rest > 1) x.y = scale(from[p.step]);
    if (rest > 2) x.z = scale(from[2 * p.step]);
    if (rest > 3) x.w = scale(from[3 * p.step]);
    return x;
}

/* Where a thread is in lines of vectors of four steps, or, the other way round, in vectors of lines:
 * it goes on by as many as there are threads, without divisions. */
struct sp_rounded_cursor {
    int outer, inner, inners, down, across;

    __device__ __forceinline__ sp_rounded_cursor(int all, int threads) : inners(all)
    {
        const unsigned thread = threadIdx.x, count = (unsigned)all;
        outer = (int)(thread / count);
        inner = (int)(thread % count);
        down = (int)((unsigned)threads / count);
        across = (int)((unsigned)threads % count);
    }

    __device__ __forceinline__ void advance()
    {
        outer += down;
        inner += across;
        if (inner >= inners) {
            inner -= inners;
            outer++;
        }
    }
};

/* Of lines that can be loaded by whole vectors. Some loads are under way before the first of them is
 * stored: the compiler cannot know that stores change nothing of what is loaded. */
template <class E, class Scale>
SP_CUDA_FUNCTION void sp_load_rounded_vectors(const sp_rounded_part &p, char *to, int pitch,
                                              int all_lines, int all_steps, int threads,
                                              const Scale &scale)
{
    constexpr int together = 4;
    sp_rounded_cursor at(all_steps / 4, threads);
#pragma unroll 1
    while (at.outer < all_lines) {
        float4 x[together];
        char *places[together];
        bool is_there[together], is_stored[together];
#pragma unroll
        for (int i = 0; i < together; i++) {
            const int line = at.outer, step = at.inner * 4;
            is_stored[i] = line < all_lines;
            is_there[i] = line < p.lines && step < p.steps;
            places[i] = to + line * pitch + step * E::bytes;
            x[i] = {0, 0, 0, 0};
            if (is_there[i]) x[i] = *(const float4 *)(p.from + line * p.line + step);
            at.advance();
        }
#pragma unroll
        for (int i = 0; i < together; i++) {
            if (is_there[i]) x[i] = {scale(x[i].x), scale(x[i].y), scale(x[i].z), scale(x[i].w)};
            if (is_stored[i]) sp_store_rounded(E(), x[i], places[i]);
        }
    }
}

/* Loads all_lines lines of all_steps steps, a multiple of 4, `pitch` bytes apart, by `threads` threads
 * of the block; neighbouring threads load neighbouring elements. */
template <class E, class Scale>
SP_CUDA_FUNCTION void sp_load_rounded(const sp_rounded_part &p, char *to, int pitch, int all_lines,
                                      int all_steps, int threads, const Scale &scale)
{
    const bool is_along = p.step == 1;
    if (is_along && (p.line & 3) == 0 && (p.steps & 3) == 0 && ((uint64_t)p.from & 15) == 0) {
        sp_load_rounded_vectors<E>(p, to, pitch, all_lines, all_steps, threads, scale);
        return;
    }
    sp_rounded_cursor at(is_along ? all_steps / 4 : all_lines, threads);
    const int outers = is_along ? all_lines : all_steps / 4;
#pragma unroll 1
    for (; at.outer < outers; at.advance()) {
        const int line = is_along ? at.outer : at.inner;
        const int step = (is_along ? at.inner : at.outer) * 4;
        sp_store_rounded(E(), sp_rounded_steps(p, line, step, scale),
                         to + line * pitch + step * E::bytes);
    }
}

/* The same of lines that are rounded already, whose neighbouring steps can be copied by eight. */
SP_CUDA_FUNCTION void sp_copy_halves(const void *from, int64_t line, int lines, int steps, char *to,
                                     int pitch, int all_lines, int all_steps, int threads)
{
    sp_rounded_cursor at(all_steps / 8, threads);
#pragma unroll 4
    for (; at.outer < all_lines; at.advance()) {
        const int step = at.inner * 8;
        const char *place = (const char *)from + (at.outer * line + step) * 2;
        sp_copy_vector_if(at.outer < lines && step < steps,
                          (float *)(to + at.outer * pitch + step * 2), (const float *)place);
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

    /* Adds the products of a fragment with the first `columns` columns, of which each is a line. */
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

    /* The same where each line is a row. */
    template <class E>
    __device__ __forceinline__ void multiply_rows(const sp_left_fragment<E> &left,
                                                  const char *right, int pitch, int columns)
    {
#pragma unroll
        for (int j = 0; j < across; j += 2) {
            sp_right_fragment<E> b[2];
            if (j * 8 >= columns) break;
            sp_read_right_rows<E>(right + j * 16, pitch, b);
            sp_multiply_fragments(left, b[0], at[j]);
            sp_multiply_fragments(left, b[1], at[j + 1]);
        }
    }
};
