/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of matrix products and convolutions: for each segment of the depth a chain
 * acc = fma(left, right, acc) from +0, and the sum of the chains from +0, both in order.
 *
 * A block has a tile of outputs (arch/tiles.h): lane l has column l of some rows. Segments are computed
 * side by side by groups of warps, and their chains added in order. Both operands pass through shared
 * memory in chunks of the depth; one is loaded while another is computed. Elements outside of the
 * matrices are not loaded; their products are not computed, or not used. */

#define SP_PRODUCT_STAGES 2

SP_CUDA_FUNCTION int sp_lane()
{
    return (int)(threadIdx.x % SP_CUDA_LANES);
}

/* ---- the place of a thread ---- */

/* A group loads with all of its warps, and computes with the first ones, which have rows. */
struct sp_place {
    sp_cuda_tile tile;
    int group, warp; /* of the thread; its warp in the group */

    __device__ __forceinline__ bool has_rows() const
    {
        return warp < (int)tile.warps;
    }

    /* The first of this thread's rows. */
    __device__ __forceinline__ int row() const
    {
        return warp * (int)tile.rows;
    }

    __device__ __forceinline__ int rows() const
    {
        return (int)(tile.warps * tile.rows);
    }

    /* Of one stage of one group: the right operand as [depth][lane], then the left as [row][depth]. */
    __device__ __forceinline__ int stage_floats() const
    {
        return SP_CUDA_CHUNK * (SP_CUDA_LANES + rows());
    }
};

SP_CUDA_FUNCTION sp_place sp_make_place(const sp_cuda_tile &tile)
{
    /* 1, 2 or 4 groups: shifts instead of divisions, which a short product would wait for. */
    const int warp = (int)(threadIdx.x / SP_CUDA_LANES), groups = (int)tile.groups;
    return {tile, warp & (groups - 1), warp >> (groups >> 1)};
}

/* The threads that load for a group. */
struct sp_loader {
    int index; /* of this thread */
    int count;
};

SP_CUDA_FUNCTION sp_loader sp_make_loader(const sp_place &place)
{
    return {place.warp * SP_CUDA_LANES + sp_lane(),
            SP_CUDA_THREADS >> (int)(place.tile.groups >> 1)};
}

/* Offsets have a type of their own: with 64 bits they take a microsecond to compute in which a short
 * product could be done, so products that need no more have 32.
 *
 * The steps [first, first + count) of the depth: of one chunk, and one segment. */
template <class Int> struct sp_steps {
    Int first;
    int count;
};

SP_CUDA_FUNCTION bool sp_is_wide(const float *address, int64_t stride)
{
    return ((uint64_t)address & 15) == 0 && (stride & 3) == 0;
}

/* ---- the left operand: rows with two strides ---- */

template <class Int> struct sp_left_rows {
    const float *at; /* the tile's first row */
    Int row_stride, depth_stride;
    int rows; /* that the tile has */
    Int depth;
    Int segment;  /* steps of a chain */
    bool is_wide; /* four elements along the depth can be loaded at once */
};

SP_CUDA_FUNCTION sp_left_rows<int64_t> sp_make_left_rows(const float *at, int64_t row_stride,
                                                         int64_t depth_stride, int64_t rows,
                                                         int64_t depth, int64_t segment)
{
    const bool is_wide = depth_stride == 1 && sp_is_wide(at, depth) && (segment & 3) == 0 &&
                         (rows == 1 || sp_is_wide(at, row_stride));
    return {at, row_stride, depth_stride, (int)rows, depth, segment, is_wide};
}

/* The same, four elements at once: a thread has the same steps of some rows. */
template <int depth, class Int>
SP_CUDA_FUNCTION void sp_load_left_wide(const sp_left_rows<Int> &left, const sp_loader &loader,
                                        const sp_steps<Int> &steps, float *to)
{
    const int at = loader.index * 4 % depth, row_step = loader.count * 4 / depth;
    if (at >= steps.count) return;
    int row = loader.index * 4 / depth;
    const float *from = left.at + row * left.row_stride + steps.first + at;
    float *place = to + row * depth + at;
#pragma unroll 4
    for (; row < left.rows; row += row_step) {
        sp_copy_vector(place, from);
        place += row_step * depth;
        from += row_step * left.row_stride;
    }
}

/* Loads a chunk of at most `depth` steps to [row][depth]. Neighbouring threads load neighbouring
 * elements. */
template <int depth, class Int>
SP_CUDA_FUNCTION void sp_load_left(const sp_left_rows<Int> &left, const sp_loader &loader,
                                   const sp_steps<Int> &steps, float *to)
{
    if (left.is_wide) {
        sp_load_left_wide<depth>(left, loader, steps, to);
        return;
    }
    const bool is_along = left.depth_stride == 1;
#pragma unroll 1
    for (int i = loader.index; i < left.rows * depth; i += loader.count) {
        const int row = is_along ? i / depth : i % left.rows;
        const int at = is_along ? i % depth : i / left.rows;
        if (at < steps.count) {
            sp_copy_float(to + row * depth + at,
                      left.at + row * left.row_stride + (steps.first + at) * left.depth_stride);
        }
    }
}

/* ---- the right operand as a matrix, in panels of SP_GEMM_PANEL columns ---- */

/* The addresses of a thread's part of a chunk are computed once, since a chunk's chains of a few
 * hundred cycles must not wait for them. */
template <class Int> struct sp_right_panels {
    const float *from; /* this thread's first element in the first chunk */
    Int stride;        /* from one k to the next */
    Int step;          /* from one of this thread's elements to the next */
    int row, row_step;     /* its first k in a chunk; from one to the next */
    int lane;              /* its first column */
    bool is_inside;        /* the matrix has this thread's columns */
    bool is_wide;          /* four columns at once */

    template <void copy(float *, const float *)>
    __device__ __forceinline__ void load_rows(const sp_steps<Int> &steps, float *to) const
    {
        const float *at = from + steps.first * stride;
        float *place = to + row * SP_CUDA_LANES + lane;
#pragma unroll 4
        for (int i = row; i < steps.count; i += row_step) {
            copy(place, at);
            place += row_step * SP_CUDA_LANES;
            at += step;
        }
    }

    /* Loads a chunk to [depth][lane]. */
    __device__ __forceinline__ void load(const sp_steps<Int> &steps, float *to) const
    {
        if (!is_inside) return;
        if (is_wide) load_rows<sp_copy_vector>(steps, to);
        else load_rows<sp_copy_float>(steps, to);
    }
};

static_assert(SP_CUDA_LANES == 1 << 5, "lanes are counted in bits");
#define SP_GEMM_PANEL_BITS 4
static_assert(SP_GEMM_PANEL == 1 << SP_GEMM_PANEL_BITS, "columns of a panel, too");

/* The operand from `column` on; `columns` columns of the matrix are readable. */
template <class Int>
SP_CUDA_FUNCTION sp_right_panels<Int> sp_make_right_panels(const float *at, Int stride,
                                                           Int panel_stride, Int column,
                                                           Int columns, bool is_wide,
                                                           const sp_loader &loader)
{
    sp_right_panels<Int> right;
    right.is_wide = is_wide;
    const int shift = is_wide ? 3 : 5; /* 8 or 32 threads for one k */
    right.lane = (loader.index & ((1 << shift) - 1)) << (5 - shift);
    right.row = loader.index >> shift;
    right.row_step = loader.count >> shift;
    const Int n = column + right.lane;
    right.is_inside = n < columns;
    right.stride = stride;
    right.step = right.row_step * stride;
    right.from = at + (n >> SP_GEMM_PANEL_BITS) * panel_stride + n % SP_GEMM_PANEL +
                 right.row * stride;
    return right;
}

/* Can the operand be loaded by four columns? */
SP_CUDA_FUNCTION bool sp_are_panels_wide(const float *at, int64_t stride, int64_t panel_stride,
                                         int64_t columns)
{
    return sp_is_wide(at, stride) && sp_is_wide(at, panel_stride) && sp_is_wide(at, columns);
}

/* ---- the chains ---- */

/* Four steps of R chains, whose left operands are `stride` apart. */
template <int R, int stride>
SP_CUDA_FUNCTION void sp_four_steps(const float *left, const float *right, float (&acc)[R])
{
    float b[4];
#pragma unroll
    for (int i = 0; i < 4; i++) b[i] = right[i * SP_CUDA_LANES];
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float4 a = *(const float4 *)(left + r * stride);
        acc[r] = __fmaf_rn(a.x, b[0], acc[r]);
        acc[r] = __fmaf_rn(a.y, b[1], acc[r]);
        acc[r] = __fmaf_rn(a.z, b[2], acc[r]);
        acc[r] = __fmaf_rn(a.w, b[3], acc[r]);
    }
}

/* The steps of a chunk of at most `depth`, `unrolled` of them at a time. */
template <int R, int depth, int unrolled>
SP_CUDA_FUNCTION void sp_run_chunk(const float *left, const float *right, int steps,
                                   float (&acc)[R])
{
    static_assert(depth % unrolled == 0, "a whole chunk has no rest");
    int k = 0;
#pragma unroll 1
    for (; k + unrolled <= steps; k += unrolled) {
#pragma unroll
        for (int i = 0; i < unrolled; i += 4) {
            sp_four_steps<R, depth>(left + k + i, right + (k + i) * SP_CUDA_LANES, acc);
        }
    }
#pragma unroll 1
    for (; k + 4 <= steps; k += 4) {
        sp_four_steps<R, depth>(left + k, right + k * SP_CUDA_LANES, acc);
    }
#pragma unroll 1
    for (; k < steps; k++) {
#pragma unroll
        for (int r = 0; r < R; r++) {
            acc[r] = __fmaf_rn(left[r * depth + k], right[k * SP_CUDA_LANES], acc[r]);
        }
    }
}

/* Adds the chains of all groups to the sums of the first, in the order of the segments. A group that
 * has no segment adds +0, which changes no sum: none is -0. */
template <int R>
SP_CUDA_FUNCTION void sp_add_chains(const sp_place &place, float *chains, float (&acc)[R],
                                    float (&sum)[R])
{
    const int groups = (int)place.tile.groups, rows = place.rows();
    float *mine = chains + place.row() * SP_CUDA_LANES + sp_lane();
    if (groups > 1) {
        if (place.group > 0 && place.has_rows()) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                mine[((place.group - 1) * rows + r) * SP_CUDA_LANES] = acc[r];
            }
        }
        /* The next chains are written after the next chunk's barrier, so after they are read. */
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < R; r++) sum[r] = __fadd_rn(sum[r], acc[r]);
    if (place.group == 0 && place.has_rows()) {
#pragma unroll 1
        for (int g = 1; g < groups; g++) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                sum[r] = __fadd_rn(sum[r], mine[((g - 1) * rows + r) * SP_CUDA_LANES]);
            }
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++) acc[r] = 0;
}

/* Where a group is: in chunks of a segment, then of its next segment. */
template <class Int> struct sp_cursor {
    Int segment; /* the first step of the segment */
    int at;      /* of the chunk, in it */

    __device__ __forceinline__ sp_steps<Int> steps(const sp_left_rows<Int> &left) const
    {
        const Int first = segment + at;
        Int count = left.segment - at;
        if (count > SP_CUDA_CHUNK) count = SP_CUDA_CHUNK;
        if (count > left.depth - first) count = left.depth - first;
        return {first, count < 0 ? 0 : (int)count};
    }

    __device__ __forceinline__ bool is_last(int length) const
    {
        return at + SP_CUDA_CHUNK >= length;
    }

    __device__ __forceinline__ void advance(int length, Int to_next)
    {
        at += SP_CUDA_CHUNK;
        if (at < length) return;
        at = 0;
        segment += to_next;
    }
};

template <class Int, class Right>
SP_CUDA_FUNCTION void sp_load_chunk(const sp_left_rows<Int> &left, const Right &right,
                                    const sp_loader &loader, const sp_steps<Int> &steps,
                                    float *stage)
{
    right.load(steps, stage);
    sp_load_left<SP_CUDA_CHUNK>(left, loader, steps, stage + SP_CUDA_CHUNK * SP_CUDA_LANES);
}

template <class Int>
SP_CUDA_FUNCTION sp_cursor<Int> sp_make_cursor(const sp_place &place, const sp_left_rows<Int> &left)
{
    return {place.group * left.segment, 0};
}

SP_CUDA_FUNCTION float *sp_first_stage(float *pool, const sp_place &place)
{
    return pool + place.group * SP_PRODUCT_STAGES * place.stage_floats();
}

/* Begins to load a tile's first chunk of the right operand. */
template <class Int, class Right>
SP_CUDA_FUNCTION void sp_load_first(float *pool, const sp_place &place,
                                    const sp_left_rows<Int> &left, const Right &right)
{
    right.load(sp_make_cursor(place, left).steps(left), sp_first_stage(pool, place));
}

/* The sums of this thread's R outputs, in the first group, whose first chunk is being loaded. All
 * threads of the block must call it; the shared memory may be reused afterwards. */
template <int R, class Int, class Right>
SP_CUDA_FUNCTION void sp_run_sums(float *pool, const sp_place &place, const sp_left_rows<Int> &left,
                                  const Right &right, const sp_loader &loader, float (&sum)[R])
{
    const int groups = (int)place.tile.groups, floats = place.stage_floats();
    float *stages = sp_first_stage(pool, place);
    float *chains = pool + groups * SP_PRODUCT_STAGES * floats;
    /* Segments, and the chunks of each, are the same for all groups, which share barriers. */
    const int length = (int)(left.segment < left.depth ? left.segment : left.depth);
    const Int to_next = groups * left.segment;
    sp_cursor<Int> loaded = sp_make_cursor(place, left), next = loaded;
    float acc[R];
#pragma unroll
    for (int r = 0; r < R; r++) acc[r] = sum[r] = 0;
    int stage = 0;
#pragma unroll 1
    while (loaded.segment - place.group * left.segment < left.depth) {
        sp_await_copies();
        /* The chunk is complete for all threads, and none uses the one before it any more. */
        __syncthreads();
        next.advance(length, to_next);
        sp_load_chunk(left, right, loader, next.steps(left), stages + (stage ^ 1) * floats);
        const float *at = stages + stage * floats;
        if (place.row() < left.rows && place.has_rows()) {
            sp_run_chunk<R, SP_CUDA_CHUNK, R <= 4 ? 64 : 32>(
                at + SP_CUDA_CHUNK * SP_CUDA_LANES + place.row() * SP_CUDA_CHUNK, at + sp_lane(),
                loaded.steps(left).count, acc);
        }
        if (loaded.is_last(length)) sp_add_chains<R>(place, chains, acc, sum);
        loaded = next;
        stage ^= 1;
    }
    sp_await_copies();
    __syncthreads();
}

/* Applies the activation to this thread's outputs. They are rotated through one variable, so the
 * functions are compiled once for each R and the outputs remain in registers. */
template <int R> SP_CUDA_FUNCTION void sp_activate_rows(uint8_t activation, float (&out)[R])
{
#pragma unroll 1
    for (int i = 0; i < R; i++) {
        const float next = sp_activate(activation, out[0]);
#pragma unroll
        for (int r = 0; r + 1 < R; r++) out[r] = out[r + 1];
        out[R - 1] = next;
    }
}

/* Output r = finish(sum, addend), then the activation, of the first `rows` rows. */
template <int R, class Output>
SP_CUDA_FUNCTION void sp_finish_rows(const Output &output, int first, int rows, int lane,
                                     float (&out)[R], const float (&addend)[R])
{
    if (rows <= 0) return;
#pragma unroll
    for (int r = 0; r < R; r++) out[r] = output.finish(out[r], addend[r]);
    if (output.activation() != SP_ACTIVATION_NONE) sp_activate_rows<R>(output.activation(), out);
#pragma unroll
    for (int r = 0; r < R; r++) {
        if (r < rows) output.store(first + r, lane, out[r]);
    }
}

/* For each output of this thread that the tile has: output = finish(sum, addend(row, lane)), then
 * the activation, then store(row, lane, output). Addends are loaded while the chains run. */
template <int R, class Int, class Right, class Output>
SP_CUDA_FUNCTION void sp_run_rows(float *pool, const sp_place &place, const sp_left_rows<Int> &left,
                                  const Right &right, const sp_loader &loader, int64_t lanes,
                                  const Output &output)
{
    const int lane = sp_lane();
    const bool has_outputs = place.group == 0 && place.has_rows() && lane < lanes;
    const int rows = has_outputs ? left.rows - place.row() : 0;
    float out[R], addend[R];
    sp_load_left<SP_CUDA_CHUNK>(left, loader, sp_make_cursor(place, left).steps(left),
                 sp_first_stage(pool, place) + SP_CUDA_CHUNK * SP_CUDA_LANES);
#pragma unroll
    for (int r = 0; r < R; r++) addend[r] = r < rows ? output.addend(place.row() + r, lane) : 0;
    sp_run_sums<R>(pool, place, left, right, loader, out);
    sp_finish_rows<R>(output, place.row(), rows, lane, out, addend);
}

/* Runs a tile, whose first chunk of the right operand is being loaded. Rows are relative to the
 * tile's first. */
template <class Int, class Right, class Output>
SP_CUDA_FUNCTION void sp_run_tile(float *pool, const sp_place &place, const sp_left_rows<Int> &left,
                                  const Right &right, const sp_loader &loader, int64_t lanes,
                                  const Output &output)
{
    switch (place.tile.rows) {
    case 1: return sp_run_rows<1>(pool, place, left, right, loader, lanes, output);
    case 2: return sp_run_rows<2>(pool, place, left, right, loader, lanes, output);
    case 4: return sp_run_rows<4>(pool, place, left, right, loader, lanes, output);
    default: return sp_run_rows<8>(pool, place, left, right, loader, lanes, output);
    }
}

/* ---- a segment for each group ---- */

/* Of products that are no deeper than that, a tile with few rows is one chunk: it takes the memory of
 * both stages, and waits once. */
template <class Int>
SP_CUDA_FUNCTION bool sp_is_whole(const sp_place &place, const sp_left_rows<Int> &left)
{
    return place.tile.rows <= 4 && left.depth <= (int)place.tile.groups * left.segment;
}

/* The steps of this thread's group. */
template <class Int>
SP_CUDA_FUNCTION sp_steps<Int> sp_whole_steps(const sp_place &place, const sp_left_rows<Int> &left)
{
    const Int first = place.group * left.segment, rest = left.depth - first;
    return {first, rest < 0 ? 0 : rest < left.segment ? (int)rest : (int)left.segment};
}

template <int R, int segment, class Int, class Output>
SP_CUDA_FUNCTION void sp_run_whole_rows(float *pool, const sp_place &place,
                                        const sp_left_rows<Int> &left, const sp_loader &loader,
                                        int64_t lanes, const Output &output)
{
    static_assert(segment == SP_PRODUCT_STAGES * SP_CUDA_CHUNK, "it fills the stages");
    const sp_steps<Int> steps = sp_whole_steps(place, left);
    float *stages = sp_first_stage(pool, place), *rows = stages + segment * SP_CUDA_LANES;
    float *chains = pool + (int)place.tile.groups * SP_PRODUCT_STAGES * place.stage_floats();
    float acc[R], sum[R], addend[R];
    sp_load_left<segment>(left, loader, steps, rows);
    const int lane = sp_lane();
    const bool has_outputs = place.group == 0 && place.has_rows() && lane < lanes;
    const int outputs = has_outputs ? left.rows - place.row() : 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
        acc[r] = sum[r] = 0;
        addend[r] = r < outputs ? output.addend(place.row() + r, lane) : 0;
    }
    sp_await_copies();
    __syncthreads();
    if (place.row() < left.rows && place.has_rows()) {
        sp_run_chunk<R, segment, R <= 2 ? 128 : 64>(rows + place.row() * segment,
                                                    stages + lane, steps.count, acc);
    }
    sp_add_chains<R>(place, chains, acc, sum);
    sp_finish_rows<R>(output, place.row(), outputs, lane, sum, addend);
}

/* Runs a tile whose right operand is being loaded. */
template <int segment, class Int, class Output>
SP_CUDA_FUNCTION void sp_run_whole(float *pool, const sp_place &place, const sp_left_rows<Int> &left,
                                   const sp_loader &loader, int64_t lanes, const Output &output)
{
    switch (place.tile.rows) {
    case 1: return sp_run_whole_rows<1, segment>(pool, place, left, loader, lanes, output);
    case 2: return sp_run_whole_rows<2, segment>(pool, place, left, loader, lanes, output);
    default: return sp_run_whole_rows<4, segment>(pool, place, left, loader, lanes, output);
    }
}
