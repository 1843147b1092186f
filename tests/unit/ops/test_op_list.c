/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of op types in options. */
#include "ops/op_list.h"

#include <streampool/log.h>

#include "support/test.h"

TEST(names_stand_between_commas_and_spaces)
{
    CHECK(sp__op_list_has("Tanh", "Tanh"));
    CHECK(sp__op_list_has("Conv,Tanh", "Tanh"));
    CHECK(sp__op_list_has(" Conv ,  Tanh , Add", "Tanh"));
    CHECK(sp__op_list_has(",,Tanh,,", "Tanh"));
    CHECK(!sp__op_list_has("", "Tanh"));
    CHECK(!sp__op_list_has(" , ,", "Tanh"));
    CHECK(!sp__op_list_has("Tanhs,tanh,Tan", "Tanh"));
    CHECK(!sp__op_list_has("Conv Tanh", "Tanh")); /* one name with a space in it */
    CHECK(!sp__op_list_has("Tanh", ""));
}

TEST(a_fused_step_has_the_names_of_all_its_ops)
{
    CHECK(sp__op_list_has("Gemm", "Gemm+Relu"));
    CHECK(sp__op_list_has("Conv,Relu", "Gemm+Relu"));
    CHECK(sp__op_list_has("Sigmoid", "Gemm+Sigmoid+Mul"));
    CHECK(!sp__op_list_has("Add,Gem,elu", "Gemm+Relu"));
}

TEST(of_a_fused_step_only_some_ops_may_count)
{
    CHECK(sp__op_list_has_of("Gemm,Relu", "Gemm+Relu", "Conv,Gemm"));
    CHECK(!sp__op_list_has_of("Relu", "Gemm+Relu", "Conv,Gemm"));
    CHECK(sp__op_list_has_of("Relu", "Gemm+Relu", NULL));
    CHECK(!sp__op_list_has_of("Gemm", "Gemm+Relu", ""));
}

TEST(a_list_is_walked_to_its_end)
{
    const char *list = "Conv, Tanh ,";
    sp_text name;
    CHECK(sp__op_list_next(&list, &name) && sp__text_is(name, "Conv"));
    CHECK(sp__op_list_next(&list, &name) && sp__text_is(name, "Tanh"));
    CHECK(!sp__op_list_next(&list, &name));
    CHECK(!sp__op_list_next(&list, &name));
}

static int warnings;

static void count_warning(void *ctx, sp_log_level level, const char *message)
{
    (void)ctx, (void)message;
    if (level == SP_LOG_WARN) warnings++;
}

TEST(names_of_no_op_are_warned_about)
{
    sp_log_set_level(SP_LOG_WARN);
    sp_log_set_callback(count_warning, NULL);
    sp__op_list_check("list", "Conv,Tanh,Transpose");
    CHECK_EQ_INT(warnings, 0);
    sp__op_list_check("list",
                      "conv,Tanh,a very long name of an op that does not exist in any list and "
                      "that goes on and on and on and on and on and on and on");
    CHECK_EQ_INT(warnings, 2);
    sp_log_set_callback(NULL, NULL);
}

TEST_MAIN
