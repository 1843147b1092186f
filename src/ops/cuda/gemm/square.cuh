/* SPDX-License-Identifier: Apache-2.0 */
/* Products with many rows and columns: a block computes a square of outputs, and each of its threads
 * 8 x 8 (or 8 x 4) of them in registers, so that a value from shared memory is used many times.
 * Segments follow one another; the sums of those that are done wait in shared memory, since registers
 * for them would halve the number of blocks that run at a time.
 *
 * The right operand and the outputs are of types of their own: a matrix (gemm/square_matrix.cuh) or
 * the pixels of a convolution (conv/square.cu). */

/* A tile of Height rows and Width columns, of which a thread has Rows x Columns. A warp has 8 threads
 * side by side and 4 below each other; a thread has rows and columns in groups of four. Stages: chunks
 * in shared memory, of which one is computed and the others are being loaded. */
template <int Height, int Width, int Rows, int Columns, int Stages> struct sp_square {
    static constexpr int height = Height, width = Width, rows = Rows, columns = Columns;
    static constexpr int stages = Stages;
    static constexpr int threads = Height * Width / (Rows * Columns);
    static constexpr int depth = SP_CUDA_SQUARE_DEPTH;
    static constexpr int left_row = Height + SP_CUDA_SQUARE_PAD;
    static constexpr int left = depth * left_row, right = depth * Width; /* floats of a stage */
    static constexpr int left_words = depth * Height / threads;          /* floats of a thread */
    static constexpr int right_words = depth * Width / 4 / threads;      /* float4 of a thread */
    static constexpr int groups = Columns / 4;                           /* of columns */
    static constexpr int slots = Rows * groups;                          /* float4 of outputs */
    static constexpr int warps = Width / (8 * Columns);                  /* side by side */
    static_assert(left_words * threads == depth * Height && right_words * 4 * threads == right,
                  "threads load equal parts");
    static_assert(warps * Height / (4 * Rows) == threads / SP_CUDA_LANES, "warps fill the tile");
};

typedef sp_square<128, 128, 8, 8, 2> sp_square_128;
typedef sp_square<64, 64, 8, 4, 2> sp_square_64;

/* A thread's first row and column in the square. */
struct sp_square_place {
    int row, column;

    __device__ __forceinline__ int row_of(int i) const
    {
        return row + i / 4 * 16 + i % 4;
    }

    __device__ __forceinline__ int column_of(int group) const
    {
        return column + group * 32;
    }
};

template <class S> SP_CUDA_FUNCTION sp_square_place sp_make_square_place(int thread)
{
    const int warp = thread / SP_CUDA_LANES, lane = thread % SP_CUDA_LANES;
    constexpr int warps = S::warps;
    return {warp / warps * (4 * S::rows) + lane / 8 * 4,
            warp % warps * (8 * S::columns) + lane % 8 * 4};
}

/* ---- the left operand: rows with two strides ---- */

/* A thread loads one step of some rows of a chunk: neighbours have neighbouring steps, which most
 * operands have side by side, and shared memory has each step's rows side by side. */
template <class S> struct sp_square_left {
    static constexpr int row_step = S::threads / S::depth;
    const float *at; /* this thread's first element in the next chunk */
    int64_t row_stride, depth_stride;
    int rows; /* that the tile has, from this thread's first on */

    /* The next `count` steps to [depth][row]; zeros where the operand has none. */
    __device__ __forceinline__ void load(int count, float *to)
    {
        const int step = (int)threadIdx.x % S::depth;
        const float *from = at;
        to += step * S::left_row + (int)threadIdx.x / S::depth;
#pragma unroll
        for (int i = 0; i < S::left_words; i++) {
            sp_copy_float_if(i * row_step < rows && step < count, to + i * row_step, from);
            from += row_step * row_stride;
        }
        at += count * depth_stride;
    }

    __device__ __forceinline__ void skip(int64_t steps)
    {
        at += steps * depth_stride;
    }
};

/* `rows` from the tile's first row `at` on. */
template <class S>
SP_CUDA_FUNCTION sp_square_left<S> sp_make_square_left(const float *at, int64_t row_stride,
                                                       int64_t depth_stride, int64_t rows)
{
    const int row = (int)threadIdx.x / S::depth, step = (int)threadIdx.x % S::depth;
    const int inside = rows < S::height ? (int)rows : S::height;
    return {at + row * row_stride + step * depth_stride, row_stride, depth_stride, inside - row};
}

/* ---- the chains ---- */

template <class S> struct sp_square_sums {
    float at[S::rows][S::columns];

    __device__ __forceinline__ void clear()
    {
#pragma unroll
        for (int i = 0; i < S::rows; i++) {
#pragma unroll
            for (int j = 0; j < S::columns; j++) at[i][j] = 0;
        }
    }
};

SP_CUDA_FUNCTION float sp_square_component(const float4 &v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

/* What a thread multiplies in one step. */
template <class S> struct sp_square_step {
    float4 a[S::rows / 4], b[S::groups];

    __device__ __forceinline__ void read(const float *left, const float *right)
    {
#pragma unroll
        for (int i = 0; i < S::rows / 4; i++) a[i] = *(const float4 *)(left + i * 16);
#pragma unroll
        for (int j = 0; j < S::groups; j++) b[j] = *(const float4 *)(right + j * 32);
    }

    /* Along the rows there and back, so that each multiply-add has an operand of the one before it:
     * registers are read faster so. */
    __device__ __forceinline__ void multiply(sp_square_sums<S> &acc) const
    {
#pragma unroll
        for (int i = 0; i < S::rows; i++) {
#pragma unroll
            for (int n = 0; n < S::columns; n++) {
                const int j = i % 2 == 0 ? n : S::columns - 1 - n;
                acc.at[i][j] = __fmaf_rn(sp_square_component(a[i / 4], i % 4),
                                         sp_square_component(b[j / 4], j % 4), acc.at[i][j]);
            }
        }
    }
};

/* The steps of a chunk, each read while the one before it is computed. Those beyond the chunk's end
 * multiply zeros, which changes no sum. Eight steps are one loop, whose instructions fit the
 * processor's nearest cache. */
template <class S>
SP_CUDA_FUNCTION void sp_square_steps(const float *left, const float *right,
                                      const sp_square_place &place, sp_square_sums<S> &acc)
{
    constexpr int unrolled = 8;
    static_assert(S::depth % unrolled == 0, "a chunk has no rest");
    left += place.row;
    right += place.column;
    sp_square_step<S> steps[2];
    steps[0].read(left, right);
#pragma unroll 1
    for (int first = 0; first < S::depth; first += unrolled) {
        /* The last step of the chunk reads itself once more. */
        const int last = first + unrolled < S::depth ? unrolled : unrolled - 1;
#pragma unroll
        for (int k = 0; k < unrolled; k++) {
            const int next = k + 1 < unrolled ? k + 1 : last;
            steps[(k + 1) % 2].read(left + next * S::left_row, right + next * S::width);
            steps[k % 2].multiply(acc);
        }
        left += unrolled * S::left_row;
        right += unrolled * S::width;
    }
}

/* A thread's four values of row i and a group of columns, where they wait. */
template <class S> SP_CUDA_FUNCTION float4 *sp_square_slot(float *sums, int i, int group)
{
    return (float4 *)sums + (i * S::groups + group) * S::threads +
           threadIdx.x;
}

/* sum + chain of four columns; sums start from +0. */
SP_CUDA_FUNCTION float4 sp_square_added(const float4 &sum, const float *acc)
{
    return {__fadd_rn(sum.x, acc[0]), __fadd_rn(sum.y, acc[1]), __fadd_rn(sum.z, acc[2]),
            __fadd_rn(sum.w, acc[3])};
}

/* Adds a segment's chains to this thread's sums, and begins new ones. */
template <class S>
SP_CUDA_FUNCTION void sp_square_end_segment(float *sums, bool is_first, sp_square_sums<S> &acc)
{
#pragma unroll
    for (int i = 0; i < S::rows; i++) {
#pragma unroll
        for (int group = 0; group < S::groups; group++) {
            float4 *slot = sp_square_slot<S>(sums, i, group);
            float4 sum = {0, 0, 0, 0};
            if (!is_first) sum = *slot;
            *slot = sp_square_added(sum, acc.at[i] + group * 4);
        }
    }
    acc.clear();
}

/* The chunks of the segments that a block computes: every `each`th one. */
template <class S, class Right> struct sp_square_pipe {
    static constexpr int floats = S::left + S::right;
    float *pool;
    sp_square_left<S> left;
    Right right;
    int64_t left_over; /* steps of the depth, from the next chunk to load on */
    int at;            /* that chunk's first step, in its segment */
    int segment, each;
    int stage, next; /* that is computed next; that is loaded next */

    __device__ __forceinline__ void load()
    {
        if (left_over > 0) {
            int count = segment - at < S::depth ? segment - at : S::depth;
            if (left_over < count) count = (int)left_over;
            float *to = pool + next * floats;
            right.load(count, to + S::left);
            left.load(count, to);
            left_over -= count;
            at += count;
            if (at == segment) begin_segment(each - 1, each);
        }
        next = next + 1 < S::stages ? next + 1 : 0;
        sp_end_copies();
    }

    /* Leaves out `count` segments. */
    __device__ __forceinline__ void begin_segment(int skipped, int count)
    {
        at = 0;
        left_over -= (int64_t)skipped * segment;
        left.skip((int64_t)skipped * segment);
        right.next_segment((int64_t)skipped * segment, count);
    }

    __device__ __forceinline__ void begin(int first)
    {
        at = stage = next = 0;
        if (first > 0) begin_segment(first, first);
#pragma unroll
        for (int i = 0; i + 1 < S::stages; i++) load();
    }

    /* The chains of the next segment, which has `steps`. All threads of the block must call it. */
    __device__ __forceinline__ void run(const sp_square_place &place, int steps,
                                        sp_square_sums<S> &acc)
    {
#pragma unroll 1
        for (; steps > 0; steps -= S::depth) {
            sp_await_copies_before<S::stages - 2>();
            /* The chunk is complete for all threads, and none uses the one before it any more. */
            __syncthreads();
            load();
            const float *from = pool + stage * floats;
            sp_square_steps<S>(from, from + S::left, place, acc);
            stage = stage + 1 < S::stages ? stage + 1 : 0;
        }
    }
};

/* Leaves in acc the chains of the last segment, and in `sums` the sums of those before it; returns
 * whether there are any. All threads of the block must call it. */
template <class S, class Right>
SP_CUDA_FUNCTION bool sp_square_run(float *pool, const sp_square_left<S> &left, const Right &right,
                                    int64_t depth, int segment, float *sums,
                                    sp_square_sums<S> &acc)
{
    const sp_square_place place = sp_make_square_place<S>((int)threadIdx.x);
    sp_square_pipe<S, Right> pipe = {pool, left, right, depth, 0, segment, 1, 0, 0};
    pipe.begin(0);
    acc.clear();
    bool is_first = true;
#pragma unroll 1
    for (int64_t rest = depth;; rest -= segment) {
        pipe.run(place, rest < segment ? (int)rest : segment, acc);
        if (rest <= segment) break;
        sp_square_end_segment<S>(sums, is_first, acc);
        is_first = false;
    }
    sp_await_copies();
    return !is_first;
}

/* ---- the outputs ---- */

/* Applies the activation to four outputs, which are rotated through one: its functions are long. */
SP_CUDA_FUNCTION void sp_square_activate(uint8_t activation, float4 &out)
{
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        const float next = sp_activate(activation, out.x);
        out = {out.y, out.z, out.w, next};
    }
}

SP_CUDA_FUNCTION bool sp_square_is_short(uint8_t activation)
{
    return activation == SP_ACTIVATION_NONE || activation == SP_ACTIVATION_RELU;
}

/* Four outputs but for an activation that is long. */
template <class Output>
SP_CUDA_FUNCTION float4 sp_square_output(const Output &output, const float4 &sum,
                                         const float4 &addend)
{
    float4 out = {output.finish(sum.x, addend.x), output.finish(sum.y, addend.y),
                  output.finish(sum.z, addend.z), output.finish(sum.w, addend.w)};
    if (output.activation() == SP_ACTIVATION_RELU) {
        out = {sp_store(sp_reluf(out.x)), sp_store(sp_reluf(out.y)), sp_store(sp_reluf(out.z)),
               sp_store(sp_reluf(out.w))};
    }
    return out;
}

/* Output = finish(sum, addend), then the activation. What is long waits for it in shared memory. */
template <class S, class Output>
SP_CUDA_FUNCTION void sp_square_finish(float *sums, bool has_sums, int rows, const Output &output,
                                       const sp_square_sums<S> &acc)
{
    const sp_square_place place = sp_make_square_place<S>((int)threadIdx.x);
    const uint8_t activation = output.activation();
    const bool is_short = sp_square_is_short(activation);
#pragma unroll
    for (int group = 0; group < S::groups; group++) {
        const auto to = output.columns(place.column_of(group));
#pragma unroll
        for (int i = 0; i < S::rows; i++) {
            const int row = place.row_of(i);
            if (row >= rows) continue;
            float4 *slot = sp_square_slot<S>(sums, i, group);
            const float4 addend = output.addend(to, row);
            float4 sum = {0, 0, 0, 0};
            if (has_sums) sum = *slot;
            sum = sp_square_added(sum, acc.at[i] + group * 4);
            sum = sp_square_output(output, sum, addend);
            if (is_short) output.store(to, row, sum);
            else *slot = sum;
        }
    }
    if (is_short) return;
#pragma unroll 1
    for (int i = 0; i < S::rows * S::groups; i++) {
        const int group = i % S::groups, row = place.row_of(i / S::groups);
        if (row >= rows) continue;
        float4 out = *sp_square_slot<S>(sums, i / S::groups, group);
        sp_square_activate(activation, out);
        output.store(output.columns(place.column_of(group)), row, out);
    }
}

/* Computes a square with `rows` rows. */
template <class S, class Right, class Output>
SP_CUDA_FUNCTION void sp_run_square(float *pool, const sp_square_left<S> &left,
                                    const Right &right, int64_t rows, int64_t depth, int segment,
                                    const Output &output)
{
    float *sums = pool + S::stages * (S::left + S::right);
    sp_square_sums<S> acc;
    const bool has_sums = sp_square_run<S>(pool, left, right, depth, segment, sums, acc);
    sp_square_finish<S>(sums, has_sums, rows < S::height ? (int)rows : S::height, output, acc);
    __syncthreads(); /* the next tile may use the memory */
}

/* A tile by one block. */
struct sp_square_alone {
    template <class S, class Right, class Output>
    __device__ __forceinline__ void run(float *pool, const sp_square_left<S> &left,
                                        const Right &right, int64_t rows, int64_t depth,
                                        int segment, const Output &output) const
    {
        sp_run_square<S>(pool, left, right, rows, depth, segment, output);
    }
};
