/* SPDX-License-Identifier: Apache-2.0 */
/* Eager calls on the fake driver, which has exactly the CUDA program's kernels: their ops run on
 * the device, all others on the calling thread, with the bits of the cpu. */
#include "segment_fixture.h"
#include "support/eager_rows.h"

static void check_row(const eager_row *row, sp_device device)
{
    eager_case c;
    sp_array wanted[CASE_OPERANDS] = {0}, got[CASE_OPERANDS] = {0};
    eager_case_make(row, &c);
    CHECK_OK(eager_case_run(&c, (sp_device){0}, false, wanted));
    for (int is_scattered = 0; is_scattered < 2; is_scattered++) {
        const sp_status status = eager_case_run(&c, device, is_scattered != 0, got);
        const bool is_same = status == SP_OK && arrays_are_same(got, wanted, c.output_count);
        if (!is_same) test_note("%s, opset %u, %s", row->op, row->opset, row->inputs);
        CHECK_OK(status);
        CHECK(is_same);
        data_free(got, CASE_OPERANDS);
    }
    data_free(wanted, CASE_OPERANDS);
    eager_case_close(&c);
}

TEST(each_op_has_the_bits_of_the_cpu)
{
    const sp_device device = segment_begin();
    for (uint32_t i = 0; i < eager_row_count; i++) check_row(&eager_rows[i], device);
    CHECK_OK(sp_device_close(device));
    segment_end();
}

TEST_MAIN
