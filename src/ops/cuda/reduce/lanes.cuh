/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions in the order of ops/cpu/reduce/lanes.h: element i joins lane i % 16, the lanes are
 * combined by one tree, and the results of blocks of 4,096 elements are in turn the elements of a
 * reduction. A thread is a lane. A block of threads computes 16 reductions of 16 lanes each, or, if
 * they are long, one reduction whose blocks of elements are computed 16 at a time: the result of
 * block 16 q + s, of the threads of slot s, then joins lane s of the next level. */

#define SP_LANES 16
#define SP_SLOTS (SP_CUDA_THREADS / SP_LANES)
/* One more than the lanes, so that the lanes of different slots are in different banks. */
#define SP_LANE_POOL (SP_SLOTS * (SP_LANES + 1))

/* The place of a thread. Columns: neighbouring threads are of neighbouring reductions. */
struct sp_lane_place {
    int lane, slot;
    bool is_wide; /* all slots are of one reduction */
};

SP_CUDA_FUNCTION sp_lane_place sp_make_lane_place(int64_t count, int64_t extent, bool is_columns)
{
    const int low = threadIdx.x % SP_LANES, high = threadIdx.x / SP_LANES;
    const bool is_wide = sp_cuda_is_wide_reduction(count, extent, is_columns);
    if (is_columns && !is_wide) return {high, low, false};
    return {low, high, is_wide};
}

/* The reduction of this thread's slot in round `round` of its block; `count` or more: none. */
SP_CUDA_FUNCTION int64_t sp_lane_output(const sp_lane_place &place, int64_t round)
{
    const int64_t block = round * gridDim.x + blockIdx.x;
    return place.is_wide ? block : block * SP_SLOTS + place.slot;
}

/* Is this the one thread of the reduction that stores its result? */
SP_CUDA_FUNCTION bool sp_is_first_lane(const sp_lane_place &place)
{
    return place.lane == 0 && (!place.is_wide || place.slot == 0);
}

/* Calls body(i) for the elements of this thread of a pass over a reduction's elements. */
template <class Body>
SP_CUDA_FUNCTION void sp_lane_each(const sp_lane_place &place, int64_t extent, Body body)
{
    const int64_t step = place.is_wide ? SP_CUDA_THREADS : SP_LANES;
#pragma unroll 4
    for (int64_t i = place.is_wide ? threadIdx.x : place.lane; i < extent; i += step) body(i);
}

/* The tree over the lanes of each slot; its result, for all threads of the slot. All threads of the
 * block call it. */
template <class T, class Combine>
SP_CUDA_FUNCTION T sp_lane_tree(T value, int slot, int lane, T *pool, Combine combine)
{
    T *lanes = pool + slot * (SP_LANES + 1);
    lanes[lane] = value;
    __syncthreads();
#pragma unroll
    for (int step = SP_LANES / 2; step > 0; step /= 2) {
        if (lane < step) lanes[lane] = combine(lanes[lane], lanes[lane + step]);
        __syncthreads();
    }
    const T result = lanes[0];
    __syncthreads();
    return result;
}

/* The levels above the elements' own, of which a thread has the lane that it stands for. */
template <class T> struct sp_lane_levels {
    T value[3]; /* 4,096^4 elements exceed every memory */
};

/* Reduces `extent` elements, of which join(value, i) joins element i. All threads of the block call
 * it; of a slot without a reduction they have is_there false. */
template <class T, class Join, class Combine>
SP_CUDA_FUNCTION T sp_lane_reduce(const sp_lane_place &place, int64_t extent, bool is_there,
                                  T neutral, T *pool, Join join, Combine combine)
{
    const int64_t blocks = extent > 0 ? sp_cuda_tiles(extent, SP_CUDA_REDUCTION) : 1;
    const int together = place.is_wide ? SP_SLOTS : 1;
    const int id = place.is_wide ? place.slot : place.lane;
    sp_lane_levels<T> levels = {{neutral, neutral, neutral}};
    const auto combine_ids = [&](T value) {
        return place.is_wide ? sp_lane_tree(value, place.lane, place.slot, pool, combine)
                             : sp_lane_tree(value, place.slot, place.lane, pool, combine);
    };
#pragma unroll 1
    for (int64_t begin = 0;; begin += together) {
        const int64_t block = place.is_wide ? begin + place.slot : begin;
        const int64_t first = block * SP_CUDA_REDUCTION, left = extent - first;
        const int64_t end = left < SP_CUDA_REDUCTION ? extent : first + SP_CUDA_REDUCTION;
        T lane = neutral;
        if (is_there) {
#pragma unroll 4
            for (int64_t i = first + place.lane; i < end; i += SP_LANES) lane = join(lane, i);
        }
        const T result = sp_lane_tree(lane, place.slot, place.lane, pool, combine);
        if (blocks == 1) return result;
        if (place.is_wide ? block < blocks : id == begin % SP_LANES) {
            levels.value[0] = combine(levels.value[0], result);
        }
        const int64_t done = begin + together < blocks ? begin + together : blocks;
        int64_t width = SP_CUDA_REDUCTION; /* blocks of a block of the level */
#pragma unroll
        for (int level = 0; level < 3; level++, width *= SP_CUDA_REDUCTION) {
            if (done % width != 0 && done != blocks) break;
            const T whole = combine_ids(levels.value[level]);
            if (level == 2 || blocks <= width) return whole;
            levels.value[level] = neutral;
            if (id == (done - 1) / width % SP_LANES) {
                levels.value[level + 1] = combine(levels.value[level + 1], whole);
            }
        }
    }
}

/* ---- the same by one thread, for few elements ---- */

/* Lanes in the order of the tree's leaves: l, l + 8, l + 4 ... */
SP_CUDA_FUNCTION int sp_lane_of_leaf(int leaf)
{
    return (leaf & 1) << 3 | (leaf & 2) << 1 | (leaf & 4) >> 1 | (leaf & 8) >> 3;
}

/* The sum of at most SP_CUDA_REDUCTION elements; add(chain, i) joins element i. */
template <class T, class Add> SP_CUDA_FUNCTION T sp_lane_sum_serial(int64_t extent, Add add)
{
    T part[5]; /* of trees of 1, 2, 4 ... leaves that wait for their neighbours */
#pragma unroll
    for (int leaf = 0; leaf < SP_LANES; leaf++) {
        T sum = 0;
#pragma unroll 1
        for (int64_t i = sp_lane_of_leaf(leaf); i < extent; i += SP_LANES) sum = add(sum, i);
        int height = 0;
#pragma unroll
        for (; (leaf >> height & 1) != 0; height++) sum = part[height] + sum;
        part[height] = sum;
    }
    return part[4];
}

/* The sum of any number of elements. */
template <class T, class Add> SP_CUDA_FUNCTION T sp_lane_sum_of(int64_t extent, Add add)
{
    if (extent <= SP_CUDA_REDUCTION) return sp_lane_sum_serial<T>(extent, add);
    const int64_t blocks = sp_cuda_tiles(extent, SP_CUDA_REDUCTION);
    T lanes[SP_LANES] = {}, upper[SP_LANES] = {}; /* of the next levels */
    const auto tree = [](const T *of) {
        return sp_lane_sum_serial<T>(SP_LANES, [&](T sum, int64_t i) { return sum + of[i]; });
    };
#pragma unroll 1
    for (int64_t block = 0; block < blocks; block++) {
        const int64_t first = block * SP_CUDA_REDUCTION, left = extent - first;
        const T sum =
            sp_lane_sum_serial<T>(left < SP_CUDA_REDUCTION ? left : SP_CUDA_REDUCTION,
                                  [&](T chain, int64_t i) { return add(chain, first + i); });
        lanes[block % SP_LANES] = lanes[block % SP_LANES] + sum;
        const bool ends = (block + 1) % SP_CUDA_REDUCTION == 0 || block + 1 == blocks;
        if (!ends || blocks <= SP_CUDA_REDUCTION) continue;
        T &place = upper[block / SP_CUDA_REDUCTION % SP_LANES];
        place = place + tree(lanes);
        for (T &lane : lanes) lane = 0;
    }
    return tree(blocks <= SP_CUDA_REDUCTION ? lanes : upper);
}
