/* SPDX-License-Identifier: Apache-2.0 */
/* What narrow products (gemm/narrow.cuh) do with their sums: results of f32 or of the type in rows, or
 * rounded and packed for another product (docs/decisions/0093). */

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

/* ---- rows of whole tiles ---- */

/* Pairs of a row, eight columns apart, to a packed result. */
template <class E, int across>
SP_CUDA_FUNCTION void sp_narrow_store_pairs(const sp_narrow_output<E> &output, int64_t row,
                                            const float2 (&pairs)[across])
{
    if (row >= output.k.rows) return;
#pragma unroll
    for (int j = 0; j < across; j++) {
        sp_narrow_store_packed<E>(output.k, output.y, row, output.column + j * 8, pairs[j].x,
                                  pairs[j].y);
    }
}

/* Of eight columns four lanes have a pair each. Of four times eight, rounded to two bytes, each lane gets
 * eight: a part of 16 bytes. By all threads of the block. */
template <class E>
SP_CUDA_FUNCTION void sp_narrow_exchange(const float2 *pairs, uint32_t (&words)[4])
{
    static_assert(E::bytes == 2, "a pair is a word");
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = sp_round_pair(E(), pairs[i].x, pairs[i].y);
    sp_transpose_words(words);
}

SP_CUDA_FUNCTION void sp_narrow_store_words(char *to, const uint32_t (&words)[4])
{
    *(float4 *)to = {__uint_as_float(words[0]), __uint_as_float(words[1]), __uint_as_float(words[2]),
                     __uint_as_float(words[3])};
}

/* A part whose first column is a multiple of eight, to a packed result. */
SP_CUDA_FUNCTION void sp_narrow_store_part(void *packed, int64_t lines, int64_t line, int64_t column,
                                           const uint32_t (&words)[4])
{
    constexpr int steps = SP_NARROW_BYTES / 2;
    const int64_t chunk = column / steps;
    const int part = (int)(column % steps) / 8;
    char *to = (char *)packed + (chunk * lines + line) * SP_NARROW_BYTES;
    sp_narrow_store_words(to + sp_narrow_part(part, line) * 16, words);
}

/* Pairs of a row to a packed result, by parts. */
template <class E, int across>
SP_CUDA_FUNCTION void sp_narrow_store_parts(const sp_narrow_output<E> &output, int64_t row,
                                            const float2 (&pairs)[across])
{
    static_assert(across % 4 == 0, "four pairs are a part");
    const int lane = (int)threadIdx.x % 4;
    const int64_t first = output.column - lane * 2 + lane * 8;
#pragma unroll
    for (int j = 0; j < across; j += 4) {
        uint32_t words[4];
        sp_narrow_exchange<E>(pairs + j, words);
        if (row >= output.k.rows) continue;
        sp_narrow_store_part(output.y, output.k.rows, row, first + j * 8, words);
    }
}

/* `is_whole`: all threads of the block are here, with so many pairs each. */
template <bool is_whole> struct sp_narrow_packed_row {
    template <class E, int across>
    SP_CUDA_MEMBER void store(const sp_narrow_output<E> &output, int64_t row,
                              const float2 (&pairs)[across])
    {
        sp_narrow_store_pairs(output, row, pairs);
    }
};
template <> struct sp_narrow_packed_row<true> {
    template <class E, int across>
    SP_CUDA_MEMBER void store(const sp_narrow_output<E> &output, int64_t row,
                              const float2 (&pairs)[across])
    {
        sp_narrow_store_parts(output, row, pairs);
    }
};

template <bool has_c, bool is_whole, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_plain_rows(const sp_narrow_output<E> &output, int i,
                                                  const float (&sums)[across][4])
{
    const sp_gemm_constants &k = output.k;
    const bool is_relu = k.activation == SP_ACTIVATION_RELU;
    float2 addends[across] = {};
#pragma unroll
    for (int j = 0; has_c && j < across; j++) {
        addends[j] = *(const float2 *)((const float *)output.c + output.column + j * 8);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = output.row + i + half * 8;
        float2 out[across];
#pragma unroll
        for (int j = 0; j < across; j++) {
            const float first = sp_gemm_finish(k, has_c, sums[j][half * 2], addends[j].x);
            const float second = sp_gemm_finish(k, has_c, sums[j][half * 2 + 1], addends[j].y);
            out[j] = {is_relu ? sp_reluf(first).v : first, is_relu ? sp_reluf(second).v : second};
        }
        if (k.y_format != SP_PACK_NONE) {
            sp_narrow_packed_row<is_whole>::store(output, row, out);
            continue;
        }
        if (row >= k.rows) return;
        float *to = (float *)output.y + row * k.columns + output.column;
#pragma unroll
        for (int j = 0; j < across; j++) *(float2 *)(to + j * 8) = out[j];
    }
}

/* Finishes 16 rows, from row `i` on, of fragments of sums. Loads are not behind stores, which might
 * be to the same place for all that the compiler knows. */
template <bool is_whole, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_rows(const sp_narrow_output<E> &output, int i,
                                            const float (&sums)[across][4])
{
    if (output.is_plain && output.c != nullptr) {
        sp_narrow_finish_plain_rows<true, is_whole>(output, i, sums);
    } else if (output.is_plain) {
        sp_narrow_finish_plain_rows<false, is_whole>(output, i, sums);
    } else if (output.k.is_half) {
        sp_narrow_finish_rows_of<true>(output, i, sums);
    } else {
        sp_narrow_finish_rows_of<false>(output, i, sums);
    }
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

/* ---- rows of the type ---- */

/* Some columns of a thread's two rows, pairs that are eight columns apart from pair `first` on. */
template <bool has_c, int count, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_some(const sp_narrow_output<E> &output, int i, int first,
                                            const float (&sums)[across][4])
{
    const sp_gemm_constants &k = output.k;
    const int lane = (int)threadIdx.x % 4;
    const int64_t column = output.column + first * 8;
    const int rest = (int)(k.columns - column); /* which are a multiple of 8 */
    float2 addends[count] = {};
#pragma unroll
    for (int j = 0; has_c && j < count; j++) {
        if (j * 8 < rest) addends[j] = *(const float2 *)((const float *)output.c + column + j * 8);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int64_t row = output.row + i + half * 8;
        float2 out[count];
#pragma unroll
        for (int j = 0; j < count; j++) {
            const float(&sum)[4] = sums[first + j];
            out[j] = {sp_gemm_finish(k, has_c, sum[half * 2], addends[j].x),
                      sp_gemm_finish(k, has_c, sum[half * 2 + 1], addends[j].y)};
        }
        sp_narrow_scale_pairs(k, column, out);
        char *to = (char *)output.y + (row * k.columns + column - lane * 2 + lane * 8) * E::bytes;
#pragma unroll
        for (int j = 0; j < count; j += 4) {
            uint32_t words[4];
            sp_narrow_exchange<E>(out + j, words);
            if (row < k.rows && (j + lane) * 8 < rest) sp_narrow_store_words(to + j * 16, words);
        }
    }
}

/* Some columns at a time: sums leave few registers. */
template <bool has_c, class E, int across>
SP_CUDA_FUNCTION void sp_narrow_finish_halves(const sp_narrow_output<E> &output, int i,
                                              const float (&sums)[across][4])
{
    constexpr int count = across < 8 ? across : 8;
    static_assert(E::bytes == 2 && across % count == 0 && count % 4 == 0, "four pairs are a part");
#pragma unroll
    for (int first = 0; first < across; first += count) {
        sp_narrow_finish_some<has_c, count>(output, i, first, sums);
    }
}

/* ---- a tile ---- */

template <bool has_halves> struct sp_narrow_finisher {
    template <class T>
    SP_CUDA_MEMBER void run(const sp_narrow_output<typename T::element> &output,
                            const sp_narrow_sums<T> &sum)
    {
        /* Of several groups of warps, the others are not here. */
        constexpr bool is_whole = T::groups == 1 && T::element::bytes == 2 && T::across % 4 == 0;
#pragma unroll
        for (int i = 0; i < T::down; i++) sp_narrow_finish_rows<is_whole>(output, i * 16, sum.at[i]);
        sp_narrow_activate<typename T::element, T::down * 2, T::across>(output);
    }
};
template <> struct sp_narrow_finisher<true> {
    template <class T>
    SP_CUDA_MEMBER void run(const sp_narrow_output<typename T::element> &output,
                            const sp_narrow_sums<T> &sum)
    {
        static_assert(T::groups == 1, "all threads of the block are here");
#pragma unroll
        for (int i = 0; i < T::down; i++) {
            if (output.c != nullptr) sp_narrow_finish_halves<true>(output, i * 16, sum.at[i]);
            else sp_narrow_finish_halves<false>(output, i * 16, sum.at[i]);
        }
    }
};

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
    sp_narrow_finisher<T::has_halves>::template run<T>(output, sum);
}
