/* SPDX-License-Identifier: Apache-2.0 */
/* The operands of a narrow product on their way through shared memory. The right one is packed. The
 * left one is rows of f32 with two strides, which each warp that reads them rounds, or, if many warps
 * would, packed by a kernel before. */

/* Where part `part` of a line of a packed matrix is: the processor's order of lines of 128 bytes in
 * shared memory, in which each bank is met once (a swizzle of 128 bytes, PTX ISA). */
SP_CUDA_FUNCTION int sp_narrow_part(int part, int64_t line)
{
    return part ^ (int)(line % SP_NARROW_LINES);
}

/* Part of a packed matrix: [chunk][line][SP_NARROW_BYTES], where a line is a row of the left operand
 * or a column of the right one. A thread copies 16 bytes of some lines, which are `pitch` bytes apart
 * in shared memory. */
template <int lines, int threads, int pitch> struct sp_narrow_lines {
    static constexpr int parts = SP_NARROW_BYTES / 16;
    static constexpr int step = threads / parts, count = lines / step;
    static_assert(lines % step == 0 && threads % parts == 0, "threads copy equal parts");
    const char *at;       /* this thread's first line of the first chunk */
    int part;             /* where its 16 bytes are in that line */
    int64_t chunk_stride; /* bytes */
    int rest;             /* lines that are there, from the thread's first on */
    int place;            /* in a stage */

    __device__ __forceinline__ void copy(int chunk, char *stage) const
    {
        const char *from = at + chunk * chunk_stride;
        stage += place;
#pragma unroll
        for (int i = 0; i < count; i++) {
            const char *line = from + i * step * SP_NARROW_BYTES;
            sp_copy_vector_if(i * step < rest, (float *)(stage + i * step * pitch),
                              (const float *)(line + sp_narrow_part(part, i * step) * 16));
        }
    }
};

/* The lines from `first` on, of a matrix of `all`. */
template <int lines, int threads, int pitch>
SP_CUDA_FUNCTION sp_narrow_lines<lines, threads, pitch>
sp_make_narrow_lines(const void *matrix, int64_t all, int64_t first, int thread)
{
    constexpr int parts = SP_NARROW_BYTES / 16;
    /* Then a part at p ^ line % 8 is one at p ^ first % 8 ^ (line - first) % 8. */
    static_assert(SP_NARROW_LINES % (threads / parts) == 0 || threads / parts % SP_NARROW_LINES == 0,
                  "of a thread's lines only the first has its place in a step");
    const int64_t padded = sp_cuda_tiles(all, SP_NARROW_LINES) * SP_NARROW_LINES;
    const int64_t rest = padded - first;
    const int line = thread / parts, part = thread % parts;
    return {(const char *)matrix + (first + line) * SP_NARROW_BYTES, sp_narrow_part(part, line),
            padded * SP_NARROW_BYTES, (rest < lines ? (int)rest : lines) - line,
            line * pitch + part * 16};
}

/* Rows of f32, copied to [row][raw_pitch]. A thread has four steps of some rows. */
template <class T> struct sp_narrow_rows {
    static constexpr int vectors = T::chunk / 4, step = T::group_threads / vectors;
    static constexpr int count = T::rows / step;
    static_assert(T::rows % step == 0 && T::group_threads % vectors == 0, "equal parts");
    const float *at; /* its first element in the first chunk */
    int64_t row_stride, depth_stride;
    int64_t depth; /* steps that are there, from the thread's first on */
    int rest;      /* rows that are there, from the thread's first on */
    int place;     /* in a stage, in floats */
    bool is_wide;  /* four steps can be copied at once */

    __device__ __forceinline__ void copy(int chunk, char *stage) const
    {
        float *to = (float *)stage + place;
        const int64_t k = (int64_t)chunk * T::chunk;
        if (!is_wide) {
            copy_floats(k, to);
            return;
        }
        const float *from = at + k;
        const int rows = k < depth ? rest : 0;
#pragma unroll
        for (int i = 0; i < count; i++) {
            sp_copy_vector_if(i * step < rows, to + i * step * T::raw_pitch, from);
            from += step * row_stride;
        }
    }

    __device__ __forceinline__ void copy_floats(int64_t k, float *to) const
    {
        const float *from = at + k * depth_stride;
#pragma unroll 1
        for (int i = 0; i < count; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sp_copy_float_if(i * step < rest && k + j < depth, to + j, from + j * depth_stride);
            }
            to += step * T::raw_pitch;
            from += step * row_stride;
        }
    }
};

template <class T>
SP_CUDA_FUNCTION sp_narrow_rows<T> sp_make_narrow_rows(const sp_gemm_constants &k, const float *a,
                                                       int64_t first, int thread)
{
    typedef sp_narrow_rows<T> Rows;
    const int row = thread / Rows::vectors, step = thread % Rows::vectors * 4;
    const int64_t rows = k.rows - first;
    const bool is_wide = k.a_depth == 1 && ((uint64_t)a & 15) == 0 && (k.depth & 3) == 0 &&
                         (k.rows == 1 || (k.a_row & 3) == 0);
    return {a + (first + row) * k.a_row + step * k.a_depth, k.a_row, k.a_depth, k.depth - step,
            (rows < T::rows ? (int)rows : T::rows) - row, row * T::raw_pitch + step, is_wide};
}

/* The left operand of a tile: of f32, packed, or of pixels, which conv/narrow.cu copies. */
template <class T, int left> struct sp_narrow_left {
    typedef sp_left_fragment<typename T::element> Fragment;
    sp_narrow_rows<T> rows;

    __device__ __forceinline__ sp_narrow_left(const sp_gemm_constants &k, const void *a,
                                              int64_t first, int thread)
        : rows(sp_make_narrow_rows<T>(k, (const float *)a, first, thread))
    {
    }

    __device__ __forceinline__ void copy(int chunk, char *stage) const
    {
        rows.copy(chunk, stage);
    }

    SP_CUDA_MEMBER void read(const char *stage, int row, int step, Fragment &to)
    {
        const float *from = (const float *)stage + row * T::raw_pitch + step * T::element::step;
        sp_round_left(from, T::raw_pitch, 1, to);
    }
};

template <class T> struct sp_narrow_left<T, SP_NARROW_PACKED> {
    typedef sp_left_fragment<typename T::element> Fragment;
    sp_narrow_lines<T::rows, T::group_threads, T::pitch> lines;

    __device__ __forceinline__ sp_narrow_left(const sp_gemm_constants &k, const void *a,
                                              int64_t first, int thread)
        : lines(sp_make_narrow_lines<T::rows, T::group_threads, T::pitch>(a, k.rows, first, thread))
    {
    }

    __device__ __forceinline__ void copy(int chunk, char *stage) const
    {
        lines.copy(chunk, stage);
    }

    SP_CUDA_MEMBER void read(const char *stage, int row, int step, Fragment &to)
    {
        sp_read_left(stage + row * T::pitch + step * 32, T::pitch, to);
    }
};

template <class T> struct sp_narrow_left<T, SP_NARROW_PIXELS> {
    typedef sp_left_fragment<typename T::element> Fragment;

    SP_CUDA_MEMBER void read(const char *stage, int row, int step, Fragment &to)
    {
        const float *from = (const float *)stage + step * T::element::step * T::pixel_pitch + row;
        sp_round_left(from, 1, T::pixel_pitch, to);
    }
};
