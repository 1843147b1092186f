/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of narrow products: y = activation(alpha * sum + beta * c), where both operands are rounded to
 * a type of tensor cores (arch/tensor.cuh) and sums are f32.
 *
 * The depth is cut into chunks of 128 bytes, and SP_NARROW_CHUNKS chunks are a segment. A chain
 * goes through the 32 bytes of a segment in order, and the chains are added in order, from +0. So an
 * output's bits are the same in every tile: what a tile has are rows, columns, warps, and segments that
 * groups of warps compute side by side. The weights lie in the order in which blocks read them: [chunk]
 * [column][128 bytes], with zeros after the last column and step. */

template <class E, int Rows, int Columns, int WarpRows, int WarpColumns, int Groups, int Stages,
          int Left>
struct sp_narrow_tile {
    typedef E element;
    static constexpr int rows = Rows, columns = Columns, groups = Groups, stages = Stages;
    static constexpr int left = Left;
    static constexpr int chunk = SP_NARROW_BYTES / E::bytes; /* steps of the depth */
    static constexpr int steps = SP_NARROW_BYTES / 32;       /* products of a chunk */
    /* Of fragments, of a warp. */
    static constexpr int down = WarpRows / 16, across = WarpColumns / 8;
    static constexpr int warp_rows = WarpRows, warp_columns = WarpColumns;
    static constexpr int warps_across = Columns / WarpColumns;
    static constexpr int group_threads = Rows / WarpRows * warps_across * 32;
    static constexpr int threads = group_threads * Groups;
    /* Rows of shared memory begin in different banks. */
    static constexpr int pitch = SP_CUDA_NARROW_PITCH;
    static constexpr int raw_pitch = chunk + 16 / E::bytes;
    static constexpr int pixel_pitch = Rows + 2 * E::bytes;
    static constexpr int left_bytes = SP_CUDA_NARROW_LEFT_BYTES(Rows, Left, E::bytes);
    static constexpr int stage_bytes = left_bytes + Columns * pitch;
    static constexpr int group_bytes = Stages * stage_bytes;
    static constexpr int bytes = Groups * group_bytes + (Groups - 1) * Rows * Columns * 4;
    static constexpr int sums = down * across * 4; /* of a thread */
    static_assert(bytes == SP_CUDA_NARROW_TILE_BYTES(Rows, Columns, Groups, Stages, Left, E::bytes),
                  "as the host counts them");
    static_assert(across % 2 == 0, "fragments of columns are read in pairs");
};

/* A thread's place in the block. */
struct sp_narrow_place {
    int group, thread; /* the thread in its group */
    int row, column;   /* of its warp, in the tile */
};

template <class T> SP_CUDA_FUNCTION sp_narrow_place sp_make_narrow_place()
{
    const int thread = (int)threadIdx.x % T::group_threads, warp = thread / 32;
    return {(int)threadIdx.x / T::group_threads, thread,
            warp / T::warps_across * T::warp_rows, warp % T::warps_across * T::warp_columns};
}

/* The chunks of a group: those of its segment, then of its next one. */
template <class T> struct sp_narrow_cursor {
    int chunk;

    __device__ __forceinline__ void advance()
    {
        chunk++;
        if (chunk % SP_NARROW_CHUNKS == 0) chunk += (T::groups - 1) * SP_NARROW_CHUNKS;
    }
};

/* Chunks of the first group, which has the most. */
template <class T> SP_CUDA_FUNCTION int sp_narrow_count(int chunks)
{
    constexpr int length = SP_NARROW_CHUNKS, round = length * T::groups;
    const int rest = chunks % round;
    return chunks / round * length + (rest < length ? rest : length);
}

/* ---- sums ---- */

template <class T> struct sp_narrow_sums {
    float at[T::down][T::across][4];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < T::sums; i++) (&at[0][0][0])[i] = 0;
    }

    __device__ __forceinline__ void add(const sp_narrow_sums &chain)
    {
#pragma unroll
        for (int i = 0; i < T::down; i++) {
#pragma unroll
            for (int j = 0; j < T::across; j++) {
#pragma unroll
                for (int e = 0; e < 4; e++) at[i][j][e] = __fadd_rn(at[i][j][e], chain.at[i][j][e]);
            }
        }
    }
};

/* The products of a chunk. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_multiply(const char *stage, const sp_narrow_place &place,
                                         sp_narrow_sums<T> &chain)
{
    typedef typename T::element E;
    const char *right = stage + T::left_bytes + place.column * T::pitch;
#pragma unroll
    for (int s = 0; s < T::steps; s++) {
        sp_left_fragment<E> a[T::down];
        sp_right_fragment<E> b[T::across];
#pragma unroll
        for (int j = 0; j < T::across; j += 2) {
            sp_read_right<E>(right + j * 8 * T::pitch + s * 32, T::pitch, b + j);
        }
#pragma unroll
        for (int i = 0; i < T::down; i++) {
            sp_narrow_left<T, T::left>::read(stage, place.row + i * 16, s, a[i]);
        }
#pragma unroll
        for (int i = 0; i < T::down; i++) {
#pragma unroll
            for (int j = 0; j < T::across; j++) sp_multiply_fragments(a[i], b[j], chain.at[i][j]);
        }
    }
}

/* Adds the chains of all groups to the sums of the first, in order. One without a segment adds +0. */
template <class T>
SP_CUDA_FUNCTION void sp_narrow_end_segment(const sp_narrow_place &place, float *chains,
                                            sp_narrow_sums<T> &chain, sp_narrow_sums<T> &sum)
{
    sum.add(chain);
    if (T::groups > 1) {
        float *mine = chains + place.thread;
        if (place.group > 0) {
#pragma unroll
            for (int i = 0; i < T::sums; i++) {
                mine[((place.group - 1) * T::sums + i) * T::group_threads] = (&chain.at[0][0][0])[i];
            }
        }
        /* The next chains are written behind the next chunk's barrier. */
        __syncthreads();
        if (place.group == 0) {
#pragma unroll 1
            for (int g = 1; g < T::groups; g++) {
#pragma unroll
                for (int i = 0; i < T::sums; i++) {
                    float *to = &sum.at[0][0][0] + i;
                    *to = __fadd_rn(*to, mine[((g - 1) * T::sums + i) * T::group_threads]);
                }
            }
        }
    }
    chain.clear();
}

/* The sums of a tile, in the first group. `memory` is the group's, `chains` is behind all groups'.
 * Weights are asked for before the kernel in front of this one has ended. */
template <class T, class Left, class Right>
SP_CUDA_FUNCTION void sp_narrow_run(char *memory, float *chains, int chunks,
                                    const sp_narrow_place &place, const Left &left,
                                    const Right &right, sp_narrow_sums<T> &sum)
{
    constexpr int stages = T::stages;
    const int count = sp_narrow_count<T>(chunks);
    sp_narrow_cursor<T> loads = {place.group * SP_NARROW_CHUNKS}, now = loads;
    sp_narrow_sums<T> chain;
    chain.clear();
    sum.clear();
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (loads.chunk < chunks) right.copy(loads.chunk, memory + s * T::stage_bytes + T::left_bytes);
        loads.advance();
    }
    sp_await_launch();
    loads = now;
#pragma unroll
    for (int s = 0; s < stages - 1; s++) {
        if (loads.chunk < chunks) left.copy(loads.chunk, memory + s * T::stage_bytes);
        sp_end_copies();
        loads.advance();
    }
    char *stage = memory, *free = memory + (stages - 1) * T::stage_bytes;
    char *const end = memory + T::group_bytes;
#pragma unroll 1
    for (int i = 1; i <= count; i++) {
        sp_await_copies_before<stages - 2>();
        /* The chunk is there for all threads, and none uses the one before it any more. */
        __syncthreads();
        if (loads.chunk < chunks) {
            right.copy(loads.chunk, free + T::left_bytes);
            left.copy(loads.chunk, free);
        }
        sp_end_copies();
        loads.advance();
        if (now.chunk < chunks) sp_narrow_multiply<T>(stage, place, chain);
        now.advance();
        stage = stage + T::stage_bytes < end ? stage + T::stage_bytes : memory;
        free = free + T::stage_bytes < end ? free + T::stage_bytes : memory;
        if (i % SP_NARROW_CHUNKS == 0 || i == count) {
            sp_narrow_end_segment<T>(place, chains, chain, sum);
        }
    }
    sp_await_copies();
}

/* ---- outputs ---- */

/* An element of f32, or of the type. */
template <class E, bool is_half> SP_CUDA_FUNCTION float sp_narrow_load(const void *from, int64_t at)
{
    return is_half ? E::widen(((const typename E::type *)from)[at]) : ((const float *)from)[at];
}
template <class E, bool is_half>
SP_CUDA_FUNCTION void sp_narrow_store(void *to, int64_t at, float value)
{
    if (is_half) ((typename E::type *)to)[at] = E::round(value);
    else ((float *)to)[at] = value;
}

/* Outputs of a row, from the thread's first column on: the elements of c and of y, and how many
 * there are. */
struct sp_narrow_row {
    int64_t row, c, y;
    int columns;
};

/* Two columns of a packed result. */
template <class E>
SP_CUDA_FUNCTION void sp_narrow_store_packed(const sp_gemm_constants &k, void *y, int64_t row,
                                             int64_t column, float first, float second)
{
    constexpr int steps = SP_NARROW_BYTES / E::bytes, part = 16 / E::bytes;
    const int64_t chunk = column / steps;
    const int step = (int)(column % steps);
    char *line = (char *)y + (chunk * k.rows + row) * SP_NARROW_BYTES;
    sp_store_rounded(E(), first, second,
                     line + sp_narrow_part(step / part, row) * 16 + step % part * E::bytes);
}

template <class E> struct sp_narrow_output {
    const sp_gemm_constants &k;
    const void *c; /* or nullptr */
    void *y;
    int64_t row, column; /* of the thread's first output */
    bool is_wide;        /* two columns can be stored at once, as floats */
    bool is_plain;       /* the same, all columns of the tile are there, and c is a row or nothing */

    /* Row `i` from the thread's first, of which it has columns up to `most`. */
    __device__ __forceinline__ sp_narrow_row find_row(int i, int most) const
    {
        const int64_t r = row + i, rest = r < k.rows ? k.columns - column : 0;
        return {r, r * k.c_row + column * k.c_column, r * k.columns + column,
                rest < most ? (int)rest : most};
    }

    /* What is added to outputs j and j + 1 of the row. */
    template <bool is_half>
    __device__ __forceinline__ void load(const sp_narrow_row &at, int j, float *addends) const
    {
        addends[0] = addends[1] = 0;
        if (c == nullptr || j >= at.columns) return;
        const int64_t from = at.c + j * k.c_column;
        addends[0] = sp_narrow_load<E, is_half>(c, from);
        if (j + 1 < at.columns) addends[1] = sp_narrow_load<E, is_half>(c, from + k.c_column);
    }

    template <bool is_half>
    __device__ __forceinline__ void finish(const sp_narrow_row &at, int j, const float *sums,
                                           const float *addends) const
    {
        if (j >= at.columns) return;
        float first = sp_gemm_finish(k, c != nullptr, sums[0], addends[0]);
        float second = sp_gemm_finish(k, c != nullptr, sums[1], addends[1]);
        if (k.activation == SP_ACTIVATION_RELU) {
            first = sp_store(sp_reluf(first));
            second = sp_store(sp_reluf(second));
        }
        if (!is_half && k.y_format != SP_PACK_NONE) {
            sp_narrow_store_packed<E>(k, y, at.row, column + j, first, second);
            return;
        }
        if (!is_half && is_wide) {
            *(float2 *)((float *)y + at.y + j) = {first, second};
            return;
        }
        sp_narrow_store<E, is_half>(y, at.y + j, first);
        if (j + 1 < at.columns) sp_narrow_store<E, is_half>(y, at.y + j + 1, second);
    }

    /* Applies a long activation to two outputs of this thread, which are floats. */
    __device__ __forceinline__ void activate(int i, int j) const
    {
        const int64_t r = row + i, at = column + j;
        if (r >= k.rows) return;
#pragma unroll 1
        for (int64_t n = at; n < at + 2 && n < k.columns; n++) {
            float *to = (float *)y + r * k.columns + n;
            *to = sp_activate(k.activation, *to);
        }
    }
};

template <bool is_half, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_rows_of(const sp_narrow_output<E> &output, int i,
                                               const float (&sums)[across][4])
{
    const sp_narrow_row rows[] = {output.find_row(i, across * 8), output.find_row(i + 8, across * 8)};
    float addends[across][4];
#pragma unroll
    for (int j = 0; j < across * 2; j++) {
        output.template load<is_half>(rows[j % 2], j / 2 * 8, addends[j / 2] + j % 2 * 2);
    }
#pragma unroll
    for (int j = 0; j < across * 2; j++) {
        output.template finish<is_half>(rows[j % 2], j / 2 * 8, sums[j / 2] + j % 2 * 2,
                                        addends[j / 2] + j % 2 * 2);
    }
}

template <bool has_c, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_plain_rows(const sp_narrow_output<E> &output, int i,
                                                  const float (&sums)[across][4])
{
    const sp_gemm_constants &k = output.k;
    float2 addends[across] = {};
#pragma unroll
    for (int j = 0; has_c && j < across; j++) {
        addends[j] = *(const float2 *)((const float *)output.c + output.column + j * 8);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = output.row + i + half * 8;
        if (row >= k.rows) return;
        float *to = (float *)output.y + row * k.columns + output.column;
#pragma unroll
        for (int j = 0; j < across; j++) {
            float first = sp_gemm_finish(k, has_c, sums[j][half * 2], addends[j].x);
            float second = sp_gemm_finish(k, has_c, sums[j][half * 2 + 1], addends[j].y);
            if (k.activation == SP_ACTIVATION_RELU) {
                first = sp_store(sp_reluf(first));
                second = sp_store(sp_reluf(second));
            }
            if (k.y_format == SP_PACK_NONE) *(float2 *)(to + j * 8) = {first, second};
            else sp_narrow_store_packed<E>(k, output.y, row, output.column + j * 8, first, second);
        }
    }
}

/* Finishes 16 rows, from row `i` on, of fragments of sums. Loads are not behind stores, which might
 * be to the same place for all that the compiler knows. */
template <class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_rows(const sp_narrow_output<E> &output, int i,
                                            const float (&sums)[across][4])
{
    if (output.is_plain && output.c != nullptr) sp_narrow_finish_plain_rows<true>(output, i, sums);
    else if (output.is_plain) sp_narrow_finish_plain_rows<false>(output, i, sums);
    else if (output.k.is_half) sp_narrow_finish_rows_of<true>(output, i, sums);
    else sp_narrow_finish_rows_of<false>(output, i, sums);
}

/* Applies a long activation to 8 * down rows that are finished. */
template <class E, int down, int across>
SP_CUDA_FUNCTION void sp_narrow_activate(const sp_narrow_output<E> &output)
{
    const uint8_t activation = output.k.activation;
    if (activation == SP_ACTIVATION_NONE || activation == SP_ACTIVATION_RELU) return;
#pragma unroll 1
    for (int i = 0; i < down; i++) {
#pragma unroll 1
        for (int j = 0; j < across; j++) output.activate(i * 8, j * 8);
    }
}

template <class T>
SP_CUDA_FUNCTION void sp_narrow_finish(const sp_narrow_output<typename T::element> &output,
                                       const sp_narrow_sums<T> &sum)
{
#pragma unroll
    for (int i = 0; i < T::down; i++) sp_narrow_finish_rows(output, i * 16, sum.at[i]);
    sp_narrow_activate<typename T::element, T::down * 2, T::across>(output);
}

/* Finishes the tile at (row, column) of a product. */
template <class T>
SP_CUDA_FUNCTION void
sp_narrow_finish_tile(const sp_gpu_bindings &bindings, const sp_gemm_constants &k,
                      const sp_narrow_place &place, int64_t row, int64_t column,
                      const sp_narrow_sums<T> &sum)
{
    const int lane = place.thread % 32;
    const void *c = k.has_c ? bindings.at[2] : nullptr;
    void *y = bindings.at[k.has_c ? 3 : 2];
    const bool is_wide = !k.is_half && ((uint64_t)y & 7) == 0 && (k.columns & 1) == 0;
    const bool is_row = k.c_row == 0 && k.c_column == 1 && ((uint64_t)c & 7) == 0;
    const bool is_plain =
        is_wide && column + T::columns <= k.columns && (c == nullptr || is_row);
    const sp_narrow_output<typename T::element> output = {k,
                                                          c,
                                                          y,
                                                          row + place.row + lane / 4,
                                                          column + place.column + lane % 4 * 2,
                                                          is_wide,
                                                          is_plain};
    sp_narrow_finish<T>(output, sum);
}
