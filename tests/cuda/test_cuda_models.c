/* SPDX-License-Identifier: Apache-2.0 */
/* No model of shared/data has a step on the cpu of a GPU: on the fake driver, whose kernels are the
 * cpu's. */
#include <streampool/model.h>

#include "segment_fixture.h"

/* Notes the ops of the model's newest plan that are on the cpu. */
static uint32_t count_cpu_ops(const char *name, sp_model model)
{
    uint32_t count = 0;
    sp_model_cpu_op op;
    while (sp_model_get_cpu_op(model, count, &op) == SP_OK) {
        test_note("%s: %u steps of %s are on the cpu", name, op.step_count, op.name);
        count++;
    }
    return count;
}

TEST(no_model_has_a_step_on_the_cpu)
{
    const sp_device device = segment_begin();
    uint32_t opened = 0;
    for (uint32_t i = 0; i < FIXTURE_ALL_MODELS; i++) {
        model_case c;
        if (!segment_open(fixture_all_models[i], device, &c)) continue;
        CHECK_EQ_U64(count_cpu_ops(fixture_all_models[i], c.model), 0);
        case_close(&c);
        opened++;
    }
    segment_end();
    if (opened == 0) SKIP("no shared data");
    CHECK_EQ_U64(opened, FIXTURE_ALL_MODELS);
}

TEST(a_step_that_is_put_on_the_cpu_is_found)
{
    const sp_device device = segment_begin();
    segment_set_ops("Relu");
    model_case c;
    const bool is_there = segment_open("torch_mlp", device, &c);
    if (is_there) {
        CHECK(count_cpu_ops("torch_mlp", c.model) > 0);
        case_close(&c);
    }
    segment_set_ops(NULL);
    segment_end();
    if (!is_there) SKIP("no shared data");
}

TEST_MAIN
