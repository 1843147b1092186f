/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of plans: two requests have the same key only if they are equal. */
#include "plan/plan_key.h"

#include <string.h>

#include "support/test.h"

static uint64_t header(uint64_t place, uint32_t rank)
{
    return place << 32 | (uint64_t)SP_F32 << 16 | rank;
}

static bool is_same_key(const sp_plan_request *a, const sp_plan_request *b)
{
    static sp_plan_key keys[2];
    CHECK_OK(sp__plan_key_init(&keys[0], a));
    CHECK_OK(sp__plan_key_init(&keys[1], b));
    const bool is_same = sp__plan_key_is(&keys[0], keys[1].words, keys[1].count);
    sp__plan_key_deinit(&keys[0]);
    sp__plan_key_deinit(&keys[1]);
    return is_same;
}

TEST(a_request_has_one_key)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {3, 4}}};
    sp_plan_input other = input;
    const sp_plan_request a = {.inputs = &input, .input_count = 1};
    const sp_plan_request b = {.inputs = &other, .input_count = 1};
    CHECK(is_same_key(&a, &b));
    other.shape.dims[1] = 5;
    CHECK(!is_same_key(&a, &b));
}

/* The second request gives one value more. Its number, the number of the requested value, and its
 * shapes are chosen to equal the words that the first one has for its requested values and its
 * shape. */
TEST(subgraphs_that_are_given_more_values_have_another_key)
{
    const sp_graph_body body = {.end_node = 2, .end_value = 3};
    const uint32_t given[2] = {1, 2}, wanted[1] = {2}, other_wanted[1] = {(uint32_t)header(0, 3)};
    const sp_plan_subgraph part = {
        .body = &body, .given = given, .given_count = 1, .wanted = wanted, .wanted_count = 1};
    const sp_plan_subgraph other_part = {
        .body = &body, .given = given, .given_count = 2, .wanted = other_wanted, .wanted_count = 1};
    const sp_plan_input input = {
        .dtype = SP_F32,
        .shape = {.rank = 3, .dims = {(int64_t)header(0, 0), (int64_t)header(1, 1), 7}}};
    const sp_plan_input other_inputs[2] = {{.dtype = SP_F32},
                                           {.dtype = SP_F32, .shape = {.rank = 1, .dims = {7}}}};
    const sp_plan_request a = {.subgraph = &part, .inputs = &input, .input_count = 1};
    const sp_plan_request b = {.subgraph = &other_part, .inputs = other_inputs, .input_count = 2};
    CHECK(is_same_key(&a, &a));
    CHECK(!is_same_key(&a, &b));
}

/* ---- from a key back to its request ---- */

static bool is_same_input(const sp_plan_input *a, const sp_plan_input *b, size_t bytes)
{
    if (a->dtype != b->dtype || !sp__shape_equal(&a->shape, &b->shape)) return false;
    if ((a->data == NULL) != (b->data == NULL)) return false;
    return a->data == NULL || memcmp(a->data, b->data, bytes) == 0;
}

TEST(a_key_has_all_of_its_request)
{
    const int64_t sizes[3] = {1, -1, 7};
    const uint8_t flag = 1;
    const sp_plan_input inputs[4] = {
        {.dtype = SP_F32, .shape = {.rank = 2, .dims = {3, 4}}},
        {.dtype = SP_I64, .shape = {.rank = 1, .dims = {3}}, .data = sizes},
        {.dtype = SP_U8, .shape = {.rank = 0}, .data = &flag},
        {.dtype = SP_F64, .shape = {.rank = 1, .dims = {0}}},
    };
    const size_t bytes[4] = {0, sizeof sizes, sizeof flag, 0};
    const sp_plan_request request = {.inputs = inputs, .input_count = 4, .is_unfused = true};
    static sp_plan_key key, borrowed;
    CHECK_OK(sp__plan_key_init(&key, &request));
    sp_plan_input read[4];
    sp_plan_request again;
    CHECK(sp__plan_key_decode(key.words, key.count, read, 4, &again));
    CHECK(again.is_unfused && again.kernels == NULL && again.inputs == read);
    for (uint32_t i = 0; i < 4; i++) CHECK(is_same_input(&read[i], &inputs[i], bytes[i]));
    CHECK(is_same_key(&request, &again));
    sp__plan_key_borrow(&borrowed, key.words, key.count);
    CHECK_EQ_U64(borrowed.hash, key.hash);
    sp__plan_key_deinit(&key);
}

TEST(keys_with_overrides_or_of_subgraphs_are_not_decoded)
{
    static sp_plan_key key;
    sp_plan_input read[1];
    sp_plan_request again;
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 1, .dims = {3}}};
    const sp_plan_override override = {.index = 0, .input = input};
    const sp_plan_request overridden = {
        .inputs = &input, .input_count = 1, .overrides = &override, .override_count = 1};
    CHECK_OK(sp__plan_key_init(&key, &overridden));
    CHECK(!sp__plan_key_decode(key.words, key.count, read, 1, &again));
    sp__plan_key_deinit(&key);
    const sp_graph_body body = {.end_node = 1, .end_value = 1};
    const sp_plan_subgraph part = {.body = &body};
    const sp_plan_request subgraph = {.subgraph = &part, .inputs = &input, .input_count = 1};
    CHECK_OK(sp__plan_key_init(&key, &subgraph));
    CHECK(!sp__plan_key_decode(key.words, key.count, read, 1, &again));
    sp__plan_key_deinit(&key);
}

TEST_MAIN
