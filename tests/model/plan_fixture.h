/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of run_fixture's small model. */
#ifndef SP_TESTS_PLAN_FIXTURE_H
#define SP_TESTS_PLAN_FIXTURE_H

#include <streampool/plan.h>

#include "run_fixture.h"

sp_plan_info plan_info_of(sp_plan plan);
/* For an x of so many rows; y = tanh(x * w - b) is SMALL_STEPS steps: MatMul, Sub+Tanh. */
sp_plan small_plan(sp_model model, int64_t rows);
#define SMALL_STEPS 2

#endif
