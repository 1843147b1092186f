/* SPDX-License-Identifier: Apache-2.0 */
/* streampool ops: the table of ops as a page of Markdown, which is docs/operators.md. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/dtype.h>

#include "base/macros.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/op_kernels.h"
#include "ops/registry.h"

static const sp_dtype dtypes[] = {
#define DTYPE(code, value, name, bytes) code,
    SP_DTYPE_LIST(DTYPE)
#undef DTYPE
};

static void print_versions(const sp_op *op)
{
    printf("%u", op->since);
    if (op->until == SP_OPSET_NEWEST) printf(" on");
    else if (op->until > op->since) printf(" to %u", op->until);
}

static void print_dtypes(uint32_t bits)
{
    uint32_t all = 0;
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) all |= SP_DTYPE_BIT(dtypes[i]);
    if ((bits & all) == all) {
        printf("all");
        return;
    }
    const char *space = "";
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) {
        if ((bits & SP_DTYPE_BIT(dtypes[i])) == 0) continue;
        printf("%s%s", space, sp_dtype_name(dtypes[i]));
        space = " ";
    }
}

/* Of the inputs behind input 0 those that have not its type, equal ones together. */
static void print_other_inputs(const sp_op *op)
{
    const uint32_t count =
        op->max_inputs < SP_OP_TYPED_INPUTS ? op->max_inputs : SP_OP_TYPED_INPUTS;
    for (uint32_t first = 1, last; first < count; first = last + 1) {
        const uint32_t types = sp__op_dtypes(op, first);
        uint32_t like;
        last = first;
        while (last + 1 < count && sp__op_dtypes(op, last + 1) == types) last++;
        const bool is_like = sp__op_is_like(types, &like);
        if (is_like && like == 0) continue;
        printf("; %u", first);
        if (last + 1 == count && op->max_inputs > count) printf(" on");
        else if (last > first) printf(" to %u", last);
        printf(": ");
        if (is_like) printf("as %u", like);
        else print_dtypes(types);
    }
}

/* Where an attribute narrows the types of input 0. */
static void print_narrowings(const sp_op *op)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name != NULL; i++) {
        const sp_attribute_schema *attribute = &op->attributes[i];
        if (attribute->dtypes == 0) continue;
        printf("; unless %s is %s: ", attribute->name, attribute->free);
        print_dtypes(attribute->dtypes);
    }
}

/* One line for each range of versions; the name stands in the first. */
static void print_op(const sp_op *op, bool is_first)
{
    printf("| %s | ", is_first ? op->name : "");
    print_versions(op);
    printf(" | ");
    print_dtypes(op->dtypes[0]);
    print_other_inputs(op);
    print_narrowings(op);
    const bool is_on_cuda = sp__op_is_covered(op->name, sp__cuda_kernels());
    printf(" | %s |\n", is_on_cuda ? "cpu, cuda" : "cpu");
}

int sp__command_ops(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "usage: streampool ops\n");
        return SP_EXIT_USAGE;
    }
    printf("# Operators\n\n"
           "Written by `streampool ops` from the table of ops (`make docs`); a test compares the "
           "two.\n\n"
           "ONNX's own domain, versions up to %d. Types are those of input 0, or of the output if "
           "there is no input; behind a number those of the input with that number. An input that "
           "is not named has the type of input 0. Behind `unless` stand the types of input 0 where "
           "an attribute has another value. Exactly these work: others are `SP_UNSUPPORTED`, two "
           "inputs that should have one type `SP_MISMATCH`. What an attribute gives (the `to` of a "
           "Cast, the value of a ConstantOfShape) may be of any type.\n\n"
           "Each op runs on every device: where a device has no kernel "
           "for an op or for its type, the step runs on the cpu, in a segment of its own "
           "([0016](decisions/0016-segments.md)). Of a device that is named below, f32 has "
           "kernels; other types, and rare forms (a Conv of volumes), may have none.\n\n"
           "| op | versions | types | kernels |\n|---|---|---|---|\n",
           SP_OPSET_NEWEST);
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        print_op(&ops[i], i == 0 || strcmp(ops[i].name, ops[i - 1].name) != 0);
    }
    return EXIT_SUCCESS;
}
