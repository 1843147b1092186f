/* SPDX-License-Identifier: Apache-2.0 */
/* streampool ops: prints the table of ops as a page of Markdown, docs/operators.md. */
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/operators.h>

#include "arguments.h"

static const sp_dtype dtypes[] = {
#define DTYPE(code, value, name, bytes) code,
    SP_DTYPE_LIST(DTYPE)
#undef DTYPE
};

static void print_versions(const sp_op_info *op)
{
    printf("%u", op->since);
    if (op->until == sp_op_newest_opset()) printf(" on");
    else if (op->until > op->since) printf(" to %u", op->until);
}

static void print_dtypes(uint32_t bits)
{
    uint32_t all = 0;
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) all |= SP_DTYPE_BIT(dtypes[i]);
    if ((bits & all) == all) {
        printf("all");
        return;
    }
    const char *space = "";
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        if ((bits & SP_DTYPE_BIT(dtypes[i])) == 0) continue;
        printf("%s%s", space, sp_dtype_name(dtypes[i]));
        space = " ";
    }
}

/* All zero after the last input. */
static sp_op_input_types types_of(uint32_t row, uint32_t input)
{
    sp_op_input_types types;
    if (sp_op_get_input_types(row, input, &types) != SP_OK) types = (sp_op_input_types){0};
    return types;
}

static bool is_same(sp_op_input_types a, sp_op_input_types b)
{
    return a.dtypes == b.dtypes && a.is_like == b.is_like && a.like == b.like;
}

/* The inputs after input 0 whose type differs from its type; neighbours of one type in one
 * group. */
static void print_other_inputs(uint32_t row, const sp_op_info *op)
{
    const uint32_t count = op->typed_input_count;
    for (uint32_t first = 1, last; first < count; first = last + 1) {
        const sp_op_input_types types = types_of(row, first);
        last = first;
        while (last + 1 < count && is_same(types_of(row, last + 1), types)) last++;
        if (types.is_like && types.like == 0) continue;
        printf("; %u", first);
        if (last + 1 == count && op->max_inputs > count) printf(" on");
        else if (last > first) printf(" to %u", last);
        printf(": ");
        if (types.is_like) printf("as %u", types.like);
        else print_dtypes(types.dtypes);
    }
}

/* The attributes that restrict the types of input 0. */
static void print_narrowings(uint32_t row)
{
    sp_op_attribute_info attribute;
    for (uint32_t i = 0; sp_op_get_attribute(row, i, &attribute) == SP_OK; i++) {
        if (attribute.dtypes == 0) continue;
        printf("; unless %s is %s: ", attribute.name, attribute.unless);
        print_dtypes(attribute.dtypes);
    }
}

/* One line per range of versions; the first line of an operator has its name. */
static void print_op(uint32_t row, const sp_op_info *op, bool is_first)
{
    bool is_on_cuda = false;
    printf("| %s | ", is_first ? op->name : "");
    print_versions(op);
    printf(" | ");
    print_dtypes(types_of(row, 0).dtypes);
    print_other_inputs(row, op);
    print_narrowings(row);
    (void)sp_op_has_kernels(op->name, "cuda", &is_on_cuda); /* the name is from the table */
    printf(" | %s |\n", is_on_cuda ? "cpu, cuda" : "cpu");
}

static void print_rows(void)
{
    const char *last = "";
    sp_op_info op;
    for (uint32_t i = 0; sp_op_get_info(i, &op) == SP_OK; i++) {
        print_op(i, &op, strcmp(op.name, last) != 0);
        last = op.name;
    }
}

static int ops_run(int argc, char **argv)
{
    int code;
    if (!arguments_parse(&sp__command_ops, argc, argv, NULL, &code)) return code;
    printf(
        "# Operators\n\n"
        "Written by `streampool ops` from the table of ops (`make docs`); a test compares the "
        "two.\n\n"
        "ONNX's own domain, versions up to %u. Types are those of input 0, or of the output if "
        "there is no input; after a number, those of the input with that number. An input that "
        "is not listed has the type of input 0. After `unless`: the types of input 0 if the "
        "attribute has another value. Other types are `SP_UNSUPPORTED`; inputs that must have "
        "the same type and do not are `SP_MISMATCH`. A type given by an attribute (the `to` of a "
        "Cast, the value of a ConstantOfShape) may be any type.\n\n"
        "Each op runs on every device: if a device has no kernel for "
        "an op or its type, the step runs on the cpu, in a segment of its own "
        "([0016](decisions/0016-segments.md)). A device that is listed below has kernels for "
        "f32; other types, and rare forms (a Conv of volumes), may have none.\n\n"
        "| op | versions | types | kernels |\n|---|---|---|---|\n",
        sp_op_newest_opset());
    print_rows();
    return EXIT_SUCCESS;
}

static const cli_example examples[] = {
    {"ops | grep Conv", "The versions and types of convolutions."},
};

const cli_command sp__command_ops = {
    .name = "ops",
    .summary = "the operators, as a page of Markdown",
    .description = "Prints the operators that models may use, with versions, types, and the kinds "
                   "of devices that have kernels for them.",
    .examples = examples,
    .example_count = COUNT_OF(examples),
    .run = ops_run,
};
