/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_fixture.h"

sp_plan_info plan_info_of(sp_plan plan)
{
    sp_plan_info info = {0};
    CHECK_OK(sp_plan_get_info(plan, &info));
    return info;
}

sp_plan small_plan(sp_model model, int64_t rows)
{
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {rows, 4}};
    sp_plan plan = {0};
    CHECK_OK(sp_plan_create(model, &x, 1, &plan));
    return plan;
}
