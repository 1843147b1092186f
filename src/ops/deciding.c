/* SPDX-License-Identifier: Apache-2.0 */
/* Which inputs decide shapes and axes. In a table of their own: it is about the op, whatever its
 * version. */
#include "base/macros.h"
#include "ops/registry.h"

#define INPUT(index) (1u << (index))

typedef struct deciding_row {
    const char *name;
    uint32_t inputs;
} deciding_row;

/* An older version may have fewer inputs than the row has bits. */
static const deciding_row rows[] = {
    {"ConstantOfShape", INPUT(0)},
    {"CumSum", INPUT(1)},
    {"Dropout", INPUT(1) | INPUT(2)}, /* does it drop anything? */
    {"Expand", INPUT(1)},
    {"If", INPUT(0)}, /* the condition */
    {"NonZero", INPUT(0)},
    {"OneHot", INPUT(1)},
    {"Pad", INPUT(1) | INPUT(3)},
    {"Range", INPUT(0) | INPUT(1) | INPUT(2)},
    {"ReduceL1", INPUT(1)},
    {"ReduceL2", INPUT(1)},
    {"ReduceLogSum", INPUT(1)},
    {"ReduceLogSumExp", INPUT(1)},
    {"ReduceMax", INPUT(1)},
    {"ReduceMean", INPUT(1)},
    {"ReduceMin", INPUT(1)},
    {"ReduceProd", INPUT(1)},
    {"ReduceSum", INPUT(1)},
    {"ReduceSumSquare", INPUT(1)},
    {"Reshape", INPUT(1)},
    {"Resize", INPUT(1) | INPUT(2) | INPUT(3)},
    {"Slice", INPUT(1) | INPUT(2) | INPUT(3) | INPUT(4)},
    {"Split", INPUT(1)},
    {"Squeeze", INPUT(1)},
    {"Tile", INPUT(1)},
    {"TopK", INPUT(1)},
    {"Trilu", INPUT(1)}, /* the diagonal, which the kernel's constants have */
    {"Unsqueeze", INPUT(1)},
    {"Upsample", INPUT(1)},
};

uint32_t sp__op_deciding_inputs(const sp_op *op)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(rows); i++) {
        if (sp__text_is(sp__text(op->name), rows[i].name)) return rows[i].inputs;
    }
    return 0;
}

bool sp__op_hides_values(const sp_op *op)
{
    return sp__text_is(sp__text(op->name), "Shape") || sp__text_is(sp__text(op->name), "Size");
}

bool sp__op_is_if(const sp_op *op)
{
    return sp__text_is(sp__text(op->name), "If");
}

bool sp__op_has_body(const sp_op *op)
{
    return sp__text_is(sp__text(op->name), "Loop") || sp__text_is(sp__text(op->name), "Scan");
}
