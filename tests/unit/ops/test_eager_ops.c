/* SPDX-License-Identifier: Apache-2.0 */
/* Each op, called on tensors, gives the bits of a model of that one node: on contiguous tensors and
 * on scattered views, on cpu and on the null device. */
#include <streampool/null_device.h>

#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "ops/registry.h"
#include "runtime_fixture.h"
#include "support/eager_rows.h"

static void check_row(const eager_row *row, sp_device device)
{
    eager_case c;
    sp_array wanted[CASE_OPERANDS] = {0}, got[CASE_OPERANDS] = {0};
    eager_case_make(row, &c);
    const sp_status model = eager_case_run_model(&c, CPU, wanted);
    if (model != SP_OK) test_note("model of %s, opset %u, %s", row->op, row->opset, row->inputs);
    CHECK_STATUS(model, SP_OK);
    for (int is_scattered = 0; is_scattered < 2; is_scattered++) {
        const sp_status status = eager_case_run(&c, device, is_scattered != 0, got);
        const bool is_same = status == SP_OK && arrays_are_same(got, wanted, c.output_count);
        if (!is_same) {
            test_note("%s, opset %u, %s (%s)", row->op, row->opset, row->inputs, row->attributes);
        }
        CHECK_STATUS(status, SP_OK);
        CHECK(is_same);
        data_free(got, CASE_OPERANDS);
    }
    data_free(wanted, CASE_OPERANDS);
    eager_case_close(&c);
}

TEST(each_op_gives_the_bits_of_a_model_of_one_node)
{
    runtime_begin();
    for (uint32_t i = 0; i < eager_row_count; i++) check_row(&eager_rows[i], TESTED);
    test_note("%u uses", eager_row_count);
    runtime_end();
}

TEST(each_op_gives_them_on_a_pretend_accelerator_too)
{
    runtime_begin();
    const sp_device device = open_null();
    for (uint32_t i = 0; i < eager_row_count; i++) check_row(&eager_rows[i], device);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

/* Sets the ops that run on the calling thread, besides those that the device has no kernels for. */
static void set_cpu_ops(const char *names)
{
    setenv("STREAMPOOL_CPU_OPS", names, 1);
    sp__option_reset();
}

TEST(each_op_gives_them_where_the_calling_thread_computes_it)
{
    runtime_begin();
    const sp_device device = open_null();
    for (uint32_t i = 0; i < eager_row_count; i++) {
        set_cpu_ops(eager_rows[i].op);
        check_row(&eager_rows[i], device);
    }
    CHECK_OK(sp_device_close(device));
    set_cpu_ops("");
    runtime_end();
}

TEST(what_the_calling_thread_computes_is_no_command)
{
    static const eager_row sum = {"Add", 14, "f32[2,3] f32[3]", "", 1};
    eager_case c;
    sp_array y = {0};
    runtime_begin();
    const sp_device device = open_null();
    eager_case_make(&sum, &c);
    CHECK_OK(sp_null_fail_randomly(device, 1000, 1)); /* each command fails */
    CHECK_STATUS(eager_case_run(&c, device, true, &y), SP_FAILED);
    set_cpu_ops("Relu,Add");
    CHECK_OK(eager_case_run(&c, device, true, &y));
    set_cpu_ops("");
    (void)sp_device_synchronize(device);
    data_free(&y, 1);
    eager_case_close(&c);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

static bool takes_graphs(const sp_op *op)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name != NULL; i++) {
        if (op->attributes[i].type == SP_ATTRIBUTE_GRAPH) return true;
    }
    return false;
}

/* Ops with subgraphs occur in models only; the table of uses has all others. */
TEST(the_table_of_uses_has_every_op_of_the_registry)
{
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t k = 0;
        while (k < eager_row_count && strcmp(eager_rows[k].op, ops[i].name) != 0) k++;
        if (k == eager_row_count && !takes_graphs(&ops[i])) {
            test_note("%s: add a row to tests/support/eager_rows.c", ops[i].name);
            CHECK(false);
        }
    }
}

TEST(ops_made_of_graphs_are_refused)
{
    runtime_begin();
    sp_tensor y;
    CHECK_STATUS(sp_op_run("If", NULL, NULL, 0, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: If outside of a model");
    runtime_end();
}

TEST_MAIN
