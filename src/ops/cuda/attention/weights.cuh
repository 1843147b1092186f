/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax of attention: sums of products become weights. */

struct sp_score_range {
    sp_f32 most, least;
};

/* Changes all numbers in one way or the other. */
template <int count, class Near, class Far>
SP_CUDA_FUNCTION void sp_change(sp_f32 (&x)[count], bool is_near, const Near &near, const Far &far)
{
    if (is_near) {
#pragma unroll
        for (int i = 0; i < count; i++) x[i] = near(x[i]);
    } else {
#pragma unroll
        for (int i = 0; i < count; i++) x[i] = far(x[i]);
    }
}

/* The scores of a row by half a warp, the lanes of a reduction. */
struct sp_attention_row {
    const sp_attention_constants &k;
    const float *mask;        /* of the row's query, or nullptr */
    const uint8_t *condition; /* or nullptr */
    float *scores;
    int lane;
    static const int together = 4; /* keys of a lane */

    __device__ __forceinline__ sp_f32 filled(sp_f32 score, uint8_t given) const
    {
        return (given == 0) == k.fills_false ? sp_f32(k.fill) : score;
    }

    /* A score of its sum. `is_plain`: nothing is added or filled, and the scale is no divisor. */
    template <bool is_plain>
    __device__ __forceinline__ sp_f32 finished(sp_f32 score, float addend, uint8_t given) const
    {
        if (is_plain) {
            const sp_f32 scaled = score * sp_f32(k.of_scores.number);
            return k.of_scores.kind == SP_SCALE_NONE ? score : scaled;
        }
        if (k.of_scores.kind != SP_SCALE_NONE) score = sp_attention_scaled(k.of_scores, score);
        if (condition && !k.is_condition_last) score = filled(score, given);
        if (mask) score = score + addend;
        if (condition && k.is_condition_last) score = filled(score, given);
        return score;
    }

    /* Finishes the scores; the largest and the smallest of the lane's. */
    template <bool is_plain> __device__ __forceinline__ sp_score_range finish() const
    {
        const int keys = (int)k.keys;
        sp_score_range range = {sp_limits<sp_f32>::least(), SP_INFINITY_F32};
#pragma unroll 1
        for (int first = lane; first < keys; first += together * 16) {
            float addends[together];
            uint8_t given[together];
            sp_f32 score[together];
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                addends[i] = !is_plain && mask && key < keys ? mask[key] : 0;
                given[i] = !is_plain && condition && key < keys ? condition[key] : 0;
                score[i] = key < keys ? scores[key] : 0;
            }
#pragma unroll
            for (int i = 0; i < together; i++) {
                score[i] = finished<is_plain>(score[i], addends[i], given[i]);
            }
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                if (key < keys) scores[key] = score[i].v;
                range.most = key < keys ? sp_join_max(range.most, score[i]) : range.most;
                range.least = key < keys ? sp_join_min(range.least, score[i]) : range.least;
            }
        }
        return range;
    }

    /* Scores become weights. */
    __device__ __forceinline__ void weigh(sp_score_range range) const
    {
        const auto join = [](sp_f32 a, sp_f32 b) { return sp_join_max(a, b); };
        const sp_f32 most = sp_warp_tree(range.most, 16, join);
        const bool is_near = sp_is_near(range.least, most);
        const int keys = (int)k.keys;
        sp_f32 sum = 0.0f;
#pragma unroll 1
        for (int first = lane; first < keys; first += together * 16) {
            sp_f32 e[together];
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                e[i] = sp_f32(key < keys ? scores[key] : 0) - most;
            }
            sp_change(e, is_near, [](sp_f32 x) { return sp_near_expf(x); },
                      [](sp_f32 x) { return sp_expf(x); });
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                if (key < keys) scores[key] = e[i].v;
                sum = key < keys ? sum + e[i] : sum;
            }
        }
        sum = sp_warp_tree(sum, 16, [](sp_f32 a, sp_f32 b) { return a + b; });
        const sp_f32 inverse = sp_f32(1.0f) / sum;
#pragma unroll 1
        for (int first = lane; first < keys; first += together * 16) {
            sp_f32 weight[together];
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                weight[i] = key < keys ? scores[key] : 0;
            }
            sp_change(weight, is_near,
                      [&](sp_f32 e) { return sp_near_quotient(e, sum, inverse); },
                      [&](sp_f32 e) { return e / sum; });
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int key = first + i * 16;
                if (key < keys) scores[key] = weight[i].v;
            }
        }
    }
};

/* Sums become weights. Rows r and r + 2 are 16 banks apart. */
template <int rows> SP_CUDA_FUNCTION void sp_attention_weights(const sp_attention_warp &w)
{
    const int half = w.lane / 16;
    const bool is_plain = !w.h.mask && !w.h.condition && w.k.of_scores.kind != SP_SCALE_DIVIDES;
    __syncwarp();
#pragma unroll 1
    for (int pair = 0; pair < rows / 2; pair++) {
        const int r = rows == 2 ? half : pair % 2 + pair / 2 * 4 + half * 2;
        const int64_t query = w.is_there(r) ? w.first + r : w.k.rows - 1;
        const sp_attention_row row = {w.k, w.h.mask ? w.h.mask + query * w.k.mask.row : nullptr,
                                      w.h.condition ? w.h.condition + query * w.k.condition.row
                                                    : nullptr,
                                      w.scores + r * w.score_row, w.lane % 16};
        row.weigh(is_plain ? row.finish<true>() : row.finish<false>());
    }
    __syncwarp();
}
