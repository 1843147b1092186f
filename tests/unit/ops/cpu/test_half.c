/* SPDX-License-Identifier: Apache-2.0 */
/* f16 to f32 and back: every half, and the floats around each midpoint of two. */
#define SP_ISA portable
#include "ops/cpu/arch/half.h"

#include <math.h>

#include "support/test.h"

TEST(every_half_survives_a_float_and_floats_round_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float value = sp_float_of_f16((uint16_t)h);
        if (isnan(value)) CHECK_EQ_INT(sp_f16_of_float(value), 0x7e00);
        else CHECK_EQ_INT(sp_f16_of_float(value), h);
        if (h >= 0x7bff) continue;
        const float next = sp_float_of_f16((uint16_t)(h + 1)), middle = (value + next) / 2;
        CHECK_EQ_INT(sp_f16_of_float(middle), h % 2 == 0 ? h : h + 1);
        CHECK_EQ_INT(sp_f16_of_float(nextafterf(middle, next)), h + 1);
        CHECK_EQ_INT(sp_f16_of_float(nextafterf(middle, value)), h);
    }
    CHECK_EQ_INT(sp_f16_of_float(65519.9f), 0x7bff);
    CHECK_EQ_INT(sp_f16_of_float(-65520.0f), 0xfc00);
}

TEST_MAIN
