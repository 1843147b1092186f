/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators through the public API, against the table itself. */
#include <streampool/operators.h>

#include <string.h>

#include "ops/registry.h"
#include "support/test.h"

/* The row of an operator's version, or the number of rows. */
static uint32_t row_of(const char *name, uint32_t version)
{
    sp_op_info info;
    uint32_t row = 0;
    for (; sp_op_get_info(row, &info) == SP_OK; row++) {
        const bool has_version = info.since <= version && version <= info.until;
        if (strcmp(info.name, name) == 0 && has_version) break;
    }
    return row;
}

TEST(rows_are_those_of_the_table)
{
    uint32_t count;
    const sp_op *table = sp__op_table(&count);
    CHECK_EQ_U64(sp_op_count(), count);
    CHECK_EQ_U64(sp_op_newest_opset(), SP_OPSET_NEWEST);
    for (uint32_t i = 0; i < count; i++) {
        sp_op_info info;
        REQUIRE_OK(sp_op_get_info(i, &info));
        CHECK_EQ_STR(info.name, table[i].name);
        CHECK_EQ_U64(info.since, table[i].since);
        CHECK_EQ_U64(info.until, table[i].until);
        CHECK_EQ_U64(info.min_inputs, table[i].min_inputs);
        CHECK_EQ_U64(info.max_inputs, table[i].max_inputs);
        CHECK_EQ_U64(info.min_outputs, table[i].min_outputs);
        CHECK_EQ_U64(info.max_outputs, table[i].max_outputs);
        CHECK(info.typed_input_count >= 1);
    }
}

TEST(inputs_have_sets_of_types_or_the_type_of_another)
{
    sp_op_input_types types;
    const uint32_t gather = row_of("Gather", 13);
    REQUIRE_OK(sp_op_get_input_types(gather, 0, &types));
    CHECK(!types.is_like);
    CHECK(types.dtypes & SP_DTYPE_BIT(SP_F32));
    CHECK(types.dtypes & SP_DTYPE_BIT(SP_BOOL));
    CHECK_OK(sp_op_get_input_types(gather, 1, &types));
    CHECK_EQ_U64(types.dtypes, SP_DTYPE_BIT(SP_I32) | SP_DTYPE_BIT(SP_I64));
    CHECK_STATUS(sp_op_get_input_types(gather, 2, &types), SP_NOT_FOUND);
    CHECK_MESSAGE("Gather has 2 inputs");
    CHECK_OK(sp_op_get_input_types(row_of("Add", 13), 1, &types));
    CHECK(types.is_like);
    CHECK_EQ_U64(types.like, 0);
    CHECK_EQ_U64(types.dtypes, 0);
}

TEST(inputs_behind_the_typed_ones_have_the_types_of_the_last)
{
    sp_op_info info;
    sp_op_input_types types;
    const uint32_t concat = row_of("Concat", 13);
    REQUIRE_OK(sp_op_get_info(concat, &info));
    CHECK_EQ_U64(info.max_inputs, SP_OP_ANY_COUNT);
    CHECK_OK(sp_op_get_input_types(concat, 1000000, &types));
    CHECK(types.is_like);
    CHECK_STATUS(sp_op_get_input_types(concat, SP_OP_ANY_COUNT, &types), SP_NOT_FOUND);
}

TEST(without_inputs_the_types_are_those_of_the_output)
{
    sp_op_info info;
    sp_op_input_types types;
    const uint32_t constant = row_of("Constant", 13);
    REQUIRE_OK(sp_op_get_info(constant, &info));
    CHECK_EQ_U64(info.max_inputs, 0);
    CHECK_EQ_U64(info.typed_input_count, 1);
    CHECK_OK(sp_op_get_input_types(constant, 0, &types));
    CHECK(types.dtypes & SP_DTYPE_BIT(SP_F32));
    CHECK_STATUS(sp_op_get_input_types(constant, 1, &types), SP_NOT_FOUND);
}

TEST(no_set_of_types_has_the_type_that_is_none)
{
    for (uint32_t i = 0; i < sp_op_count(); i++) {
        sp_op_info info;
        sp_op_input_types types;
        REQUIRE_OK(sp_op_get_info(i, &info));
        for (uint32_t k = 0; k < info.typed_input_count; k++) {
            CHECK_OK(sp_op_get_input_types(i, k, &types));
            CHECK(types.is_like ? types.like < info.max_inputs : types.dtypes != 0);
            CHECK((types.dtypes & SP_DTYPE_BIT(SP_DTYPE_NONE)) == 0);
        }
    }
}

TEST(attributes_have_names_types_and_what_they_narrow)
{
    sp_op_info info;
    sp_op_attribute_info attribute;
    const uint32_t cond = row_of("If", 13);
    REQUIRE_OK(sp_op_get_info(cond, &info));
    CHECK_EQ_U64(info.attribute_count, 2);
    CHECK_OK(sp_op_get_attribute(cond, 0, &attribute));
    CHECK_EQ_STR(attribute.name, "then_branch");
    CHECK_EQ_INT(attribute.type, SP_OP_GRAPH);
    CHECK(attribute.is_required);
    CHECK_EQ_U64(attribute.dtypes, 0);
    CHECK(attribute.unless == NULL);
    CHECK_STATUS(sp_op_get_attribute(cond, 2, &attribute), SP_NOT_FOUND);
    CHECK_MESSAGE("If has 2 attributes");
    const uint32_t resize = row_of("Resize", 13);
    bool is_found = false;
    for (uint32_t i = 0; sp_op_get_attribute(resize, i, &attribute) == SP_OK; i++) {
        if (strcmp(attribute.name, "mode") != 0) continue;
        is_found = true;
        CHECK_EQ_STR(attribute.unless, "nearest");
        CHECK(attribute.dtypes & SP_DTYPE_BIT(SP_F32));
        CHECK(!attribute.is_required);
    }
    CHECK(is_found);
}

TEST(kinds_of_devices_say_which_operators_they_run)
{
    bool has = false;
    CHECK_OK(sp_op_has_kernels("Conv", "cuda", &has));
    CHECK(has);
    has = false;
    CHECK_OK(sp_op_has_kernels("Abs", "cuda", &has));
    CHECK(has);
    has = false;
    CHECK_OK(sp_op_has_kernels("Abs", "cpu", &has));
    CHECK(has);
    CHECK_OK(sp_op_has_kernels("Abs", "null", &has));
    CHECK(has);
    CHECK_STATUS(sp_op_has_kernels("Abs", "tpu", &has), SP_NOT_FOUND);
    CHECK_MESSAGE("cpu, null, cuda");
    CHECK_STATUS(sp_op_has_kernels("Optional", "cpu", &has), SP_NOT_FOUND);
    CHECK_MESSAGE("'Optional'");
}

TEST(wrong_questions_are_refused)
{
    sp_op_info info;
    sp_op_input_types types;
    sp_op_attribute_info attribute;
    bool has;
    const uint32_t end = sp_op_count();
    CHECK_STATUS(sp_op_get_info(end, &info), SP_NOT_FOUND);
    CHECK_MESSAGE("none with index");
    CHECK_STATUS(sp_op_get_info(UINT32_MAX, &info), SP_NOT_FOUND);
    CHECK_STATUS(sp_op_get_input_types(end, 0, &types), SP_NOT_FOUND);
    CHECK_STATUS(sp_op_get_attribute(end, 0, &attribute), SP_NOT_FOUND);
    CHECK_STATUS(sp_op_get_info(0, NULL), SP_INVALID);
    CHECK_STATUS(sp_op_get_input_types(0, 0, NULL), SP_INVALID);
    CHECK_STATUS(sp_op_get_attribute(0, 0, NULL), SP_INVALID);
    CHECK_STATUS(sp_op_has_kernels(NULL, "cpu", &has), SP_INVALID);
    CHECK_STATUS(sp_op_has_kernels("Conv", NULL, &has), SP_INVALID);
    CHECK_STATUS(sp_op_has_kernels("Conv", "cpu", NULL), SP_INVALID);
}

TEST_MAIN
