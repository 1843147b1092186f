/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of plans: two requests have the same key only if they are equal. */
#include "plan/plan_key.h"

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

TEST_MAIN
