/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops: complete rows, versions that do not overlap, clear refusals. */
#include "ops/registry.h"

#include <string.h>

#include "support/test.h"

TEST(rows_are_complete_and_versions_do_not_overlap)
{
    uint32_t count;
    const sp_op *table = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        const sp_op *op = &table[i];
        CHECK(op->infer != NULL && op->lower != NULL && op->dtypes[0] != 0);
        CHECK(op->since >= 1 && op->since <= op->until && op->until <= SP_OPSET_NEWEST);
        CHECK(op->min_inputs <= op->max_inputs && op->min_outputs <= op->max_outputs);
        CHECK(op->min_outputs >= 1);
        for (uint32_t k = 0; k < i; k++) {
            if (strcmp(op->name, table[k].name) != 0) continue;
            CHECK(table[k].until < op->since || op->until < table[k].since);
        }
        for (uint32_t version = op->since; version <= op->until; version++) {
            const sp_op *found;
            CHECK_OK(sp__op_find((sp_text){0}, sp__text(op->name), version, &found));
            CHECK(found == op);
            CHECK_OK(sp__op_find(sp__text("ai.onnx"), sp__text(op->name), version, &found));
        }
    }
}

TEST(what_is_not_there_is_named)
{
    const sp_op *op;
    CHECK_STATUS(sp__op_find((sp_text){0}, sp__text("Optional"), 15, &op), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: op Optional");
    CHECK_STATUS(sp__op_find((sp_text){0}, sp__text("Gemm"), 5, &op), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: Gemm in opset 5");
    CHECK_STATUS(sp__op_find(sp__text("com.x"), sp__text("Gemm"), 13, &op), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: op com.x.Gemm");
}

TEST_MAIN
