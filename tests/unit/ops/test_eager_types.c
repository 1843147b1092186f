/* SPDX-License-Identifier: Apache-2.0 */
/* The element types of docs/operators.md: for each op, each range of versions and each input, every
 * type in the table of ops runs and gives the result of the same values in f32 or i64, as far as
 * the type can represent it; every other type is SP_UNSUPPORTED, and an input that should have
 * another input's type and does not is SP_MISMATCH. (The page matches the table: test
 * operators_page.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/registry.h"
#include "runtime_fixture.h"
#include "support/eager_rows.h"
#include "tensor/onnx_dtype.h"

/* Versions and inputs that are not in eager_rows. */
/* clang-format off */
static const eager_row more_rows[] = {
    {"ArgMax", 11, "f32[3,4]", "axis=1", 1},
    {"ArgMin", 1, "f32[3,4]", "", 1},
    {"BatchNormalization", 6, "f32[2,3,4] f32[3] f32[3] f32[3] f32=1,2,3", "is_test=1", 1},
    {"BatchNormalization", 7, "f32[2,3,4] f32[3] f32[3] f32[3] f32=1,2,3", "", 1},
    {"BatchNormalization", 9, "f32[2,3,4] f32[3] f32[3] f32[3] f32=1,2,3", "", 1},
    {"BatchNormalization", 15, "f32[2,3,4] f32[3] f32[3] f32[3] f32=1,2,3", "training_mode=1", 3},
    {"Constant", 9, "", "value=tensor", 1},
    {"DepthToSpace", 1, "f32[1,8,2,3]", "blocksize=2", 1},
    {"Div", 6, "f32[2,3] f32[2,3]", "", 1},
    {"Dropout", 7, "f32[2,3]", "", 2},
    {"Dropout", 13, "f32[2,3] f32:0 bool:0", "", 2},
    {"GRU", 7, "f32[3,2,4] f32[1,9,4] f32[1,9,3] - i32=3,2", "hidden_size=3", 2},
    {"GRU", 14, "f32[3,2,4] f32[1,9,4] f32[1,9,3] f32[1,18] i32=3,2 f32[1,2,3]", "hidden_size=3", 2},
    {"GatherND", 11, "f32[2,2,3] i64[2,2]", "", 1},
    {"Gemm", 7, "f32[3,5] f32[5,4] f32[4]", "", 1},
    {"LSTM", 7, "f32[3,2,4] f32[1,12,4] f32[1,12,3] - i32=3,2", "hidden_size=3", 3},
    {"LSTM", 14, "f32[3,2,4] f32[1,12,4] f32[1,12,3] - i32=3,2 f32[1,2,3] f32[1,2,3] f32[1,9]", "hidden_size=3", 3},
    {"Mul", 6, "f32[2,3] f32[2,3]", "", 1},
    {"OneHot", 11, "i64[2,3] i64:4 f32=0,1", "", 1},
    {"Pad", 13, "f32[2,3] i64=1,0,0,2 f32:3", "", 1},
    {"Pad", 18, "f32[3,3] i64=1,1 f32:3 i64=1", "", 1},
    {"Pow", 6, "f32=1,2,3 f32=2,1,3", "", 1},
    {"Pow", 7, "f32=1,2,3 f32=2,1,3", "", 1},
    {"Pow", 15, "f32=1,2,3 i32=2,1,3", "", 1},
    {"RNN", 7, "f32[3,2,4] f32[1,3,4] f32[1,3,3] - i32=3,2", "hidden_size=3", 2},
    {"RNN", 14, "f32[3,2,4] f32[1,3,4] f32[1,3,3] - i32=3,2", "hidden_size=3", 2},
    {"ReduceL1", 13, "f32[3,4]", "axes=[0]", 1},
    {"ReduceL2", 18, "f32[3,4] i64=1", "", 1},
    {"ReduceLogSum", 13, "f32=1,2,3", "", 1},
    {"ReduceLogSumExp", 18, "f32[3,4] i64=1", "", 1},
    {"ReduceMax", 13, "f32[3,4]", "axes=[0]", 1},
    {"ReduceMax", 20, "f32[3,4] i64=1", "", 1},
    {"ReduceMean", 17, "f32[3,4]", "axes=[0]", 1},
    {"ReduceMin", 18, "f32[3,4] i64=1", "", 1},
    {"ReduceMin", 20, "f32[3,4] i64=1", "", 1},
    {"ReduceProd", 18, "f32[3,4] i64=1", "", 1},
    {"ReduceSum", 11, "f32[3,4]", "axes=[0]", 1},
    {"ReduceSumSquare", 18, "f32[3,4] i64=1", "", 1},
    {"Reshape", 5, "f32[2,3,4] i64=0,-1", "", 1},
    {"Resize", 10, "f32[1,1,3,3] f32=1,1,2,2", "", 1},
    {"Resize", 10, "f32[1,1,3,3] f32=1,1,2,2", "mode='linear'", 1},
    {"Resize", 11, "f32[3,4] f32=0,0,1,1 f32=2,3", "coordinate_transformation_mode='tf_crop_and_resize'", 1},
    {"Resize", 11, "f32[3,4] f32=0,0,2,1 f32=2,3", "coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=2.5", 1},
    {"Resize", 11, "f32[3,4] f32=0,0,2,1 f32=2,3", "coordinate_transformation_mode='tf_crop_and_resize' extrapolation_value=2.5 mode='linear'", 1},
    {"Resize", 11, "f32[3,4] - - i64=2,7", "mode='cubic'", 1},
    {"Resize", 18, "f32[3,4] f32=0,0,1,1 f32=2,3", "coordinate_transformation_mode='tf_crop_and_resize'", 1},
    {"Resize", 18, "f32[3,4] - - i64=2,2", "mode='linear' antialias=1", 1},
    {"Resize", 18, "f32[3,4,2] - - i64=2,7,3", "mode='cubic'", 1},
    {"ScatterElements", 13, "f32[3,3] i64[2,3] f32[2,3]", "axis=0", 1},
    {"ScatterElements", 16, "f32[3,3] i64[2,3] f32[2,3]", "axis=1 reduction='mul'", 1},
    {"ScatterElements", 18, "f32[3,3] i64[2,3] f32[2,3]", "axis=1 reduction='max'", 1},
    {"ScatterND", 13, "f32[4,3] i64[2,1] f32[2,3]", "", 1},
    {"ScatterND", 16, "f32[4,3] i64[2,1] f32[2,3]", "reduction='add'", 1},
    {"ScatterND", 18, "f32[4,3] i64[2,1] f32[2,3]", "reduction='min'", 1},
    {"Shape", 13, "f32[2,3,4]", "", 1},
    {"Split", 11, "f32[6,2]", "axis=0 split=[1,2,3]", 3},
    {"Split", 18, "f32[6,2] i64=1,2,3", "axis=0", 3},
    {"Squeeze", 11, "f32[1,3,1]", "axes=[0]", 1},
    {"Sub", 6, "f32[2,3] f32[2,3]", "", 1},
    {"TopK", 9, "f32[3,6]", "k=2", 2},
    {"TopK", 10, "f32[3,6] i64=2", "", 2},
    {"Unsqueeze", 11, "f32[3]", "axes=[0,2]", 1},
    {"Upsample", 7, "f32[2,2]", "scales=[1.0,2.0]", 1},
    {"Upsample", 7, "f32[2,2]", "scales=[1.0,2.0] mode='linear'", 1},
    {"Upsample", 9, "f32[2,2] f32=1,3", "mode='linear'", 1},
};
/* clang-format on */

/* ---- a row with other types ---- */

enum { WORDS = 16, TEXT = 512 };

typedef struct row_words {
    char text[TEXT];
    const char *at[WORDS]; /* the words of `text` */
    uint32_t count;
} row_words;

static void split(const eager_row *row, row_words *out)
{
    char *rest = NULL;
    out->count = 0;
    snprintf(out->text, sizeof out->text, "%s", row->inputs);
    for (char *word = strtok_r(out->text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        REQUIRE(out->count < WORDS);
        out->at[out->count++] = word;
    }
}

/* The inputs of the row, those in `which` with another type. */
static void retype(const row_words *words, uint32_t which, sp_dtype to, char out[TEXT])
{
    size_t used = 0;
    for (uint32_t i = 0; i < words->count; i++) {
        const char *word = words->at[i];
        const bool is_changed = (which >> i & 1) != 0 && word[0] != '-';
        used += (size_t)snprintf(out + used, TEXT - used, "%s%s%s", i > 0 ? " " : "",
                                 is_changed ? sp_dtype_name(to) : "",
                                 is_changed ? word + strcspn(word, "[=:") : word);
    }
}

/* Input `index` and those that have its type. */
static uint32_t group_of(const sp_op *op, uint32_t index, uint32_t count)
{
    uint32_t group = 1u << index;
    for (uint32_t i = 1; i < count; i++) {
        uint32_t like;
        if (sp__op_is_like(sp__op_dtypes(op, i), &like) && like == index) group |= 1u << i;
    }
    return group;
}

static bool takes_graphs(const sp_op *op)
{
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name != NULL; i++) {
        if (op->attributes[i].type == SP_ATTRIBUTE_GRAPH) return true;
    }
    return false;
}

/* The value of an attribute in the row's text. */
static void value_of(const eager_row *row, const sp_attribute_schema *schema, char out[TEXT])
{
    char start[64];
    snprintf(start, sizeof start, "%s=", schema->name);
    const char *found = row->attributes;
    while ((found = strstr(found, start)) != NULL && found != row->attributes && found[-1] != ' ') {
        found++;
    }
    snprintf(out, TEXT, "%s", found != NULL ? found + strlen(start) : schema->fallback);
    if (out[0] == '\'') memmove(out, out + 1, strlen(out));
    out[strcspn(out, "' ")] = '\0';
}

static uint32_t claimed_types(const sp_op *op, const eager_row *row, uint32_t input)
{
    uint32_t types = sp__op_dtypes(op, input);
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name != NULL; i++) {
        char value[TEXT];
        if (input > 0 || op->attributes[i].dtypes == 0) continue;
        value_of(row, &op->attributes[i], value);
        if (strcmp(value, op->attributes[i].free) != 0) types &= op->attributes[i].dtypes;
    }
    return types;
}

/* ---- runs ---- */

static sp_array cast(const sp_array *x, sp_dtype to)
{
    const int64_t number = sp__onnx_data_type(to);
    const sp_attribute attribute = data_attribute_int("to", &number);
    sp_array y;
    if (data_run("Cast", 13, &attribute, 1, x, 1, &y, 1) != SP_OK) abort();
    return y;
}

static bool is_float(sp_dtype dtype)
{
    return dtype == SP_F32 || dtype == SP_F64 || dtype == SP_F16 || dtype == SP_BF16;
}

/* Equal within the type's precision: bf16 has 8 bits, and operands were rounded to it. */
static bool is_same_value(const sp_array *got, const sp_array *want)
{
    const bool is_near = is_float(got->dtype);
    const double tolerance = got->dtype == SP_BF16 ? 0.04 : 0.004;
    sp_array a = cast(got, is_near ? SP_F32 : got->dtype), b = cast(want, a.dtype);
    double worst = 0;
    const bool is_same =
        is_near ? data_is_close(&a, &b, tolerance, tolerance, &worst) : arrays_are_same(&a, &b, 1);
    data_free((sp_array[]){a, b}, 2);
    return is_same;
}

/* The same values in another type give the result of `reference`: the op's kernels are those of its
 * type. */
static bool equals_reference(const eager_row *row, const eager_case *c, const sp_array *got)
{
    eager_case other;
    sp_array want[CASE_OPERANDS] = {0};
    eager_case_make(row, &other);
    for (uint32_t i = 0; i < other.given_count; i++) {
        sp_array values = cast(&c->given[i], other.given[i].dtype);
        if (values.bytes > 0) memcpy(other.given[i].data, values.data, (size_t)values.bytes);
        data_free(&values, 1);
    }
    bool is_same = eager_case_run(&other, CPU, false, want) == SP_OK;
    for (uint32_t i = 0; i < c->output_count && is_same; i++) {
        is_same = is_same_value(&got[i], &want[i]);
    }
    data_free(want, CASE_OPERANDS);
    eager_case_close(&other);
    return is_same;
}

/* `reference` is NULL if the row is refused, or if there is no type to compare with. */
static void run_row(const eager_row *row, sp_status wanted, const eager_row *reference)
{
    eager_case c;
    sp_array got[CASE_OPERANDS] = {0};
    eager_case_make(row, &c);
    const sp_status status = eager_case_run(&c, CPU, false, got);
    const bool is_same =
        status != SP_OK || reference == NULL || equals_reference(reference, &c, got);
    if (status != wanted || !is_same) {
        test_note("%s, opset %u, %s (%s): %s", row->op, row->opset, row->inputs, row->attributes,
                  status != SP_OK ? sp_last_error() : "");
    }
    CHECK_STATUS(status, wanted);
    CHECK(is_same);
    data_free(got, CASE_OPERANDS);
    eager_case_close(&c);
}

/* The type that results of a type are compared with: the widest of its kind. */
static sp_dtype reference_type(sp_dtype dtype)
{
    return is_float(dtype) ? SP_F32 : SP_I64;
}

/* Negative numbers differ in an unsigned type; the result of CastLike has the type. */
static bool is_comparable(const eager_row *row, sp_dtype dtype)
{
    const bool is_unsigned = dtype >= SP_U8 && dtype <= SP_U64;
    return strcmp(row->op, "CastLike") != 0 && !(is_unsigned && strstr(row->inputs, ":-") != NULL);
}

static void check_type(const eager_row *row, const row_words *words, uint32_t which, sp_dtype to,
                       sp_status want, uint32_t claimed)
{
    char inputs[TEXT], reference_inputs[TEXT];
    const sp_dtype wide = reference_type(to);
    const bool has_reference = want == SP_OK && to != wide && to != SP_BOOL &&
                               (claimed >> wide & 1) != 0 && is_comparable(row, to);
    retype(words, which, to, inputs);
    retype(words, which, wide, reference_inputs);
    const eager_row other = {row->op, row->opset, inputs, row->attributes, row->outputs};
    const eager_row reference = {row->op, row->opset, reference_inputs, row->attributes,
                                 row->outputs};
    run_row(&other, want, has_reference ? &reference : NULL);
}

/* Checks a row with every type; returns the bits of the inputs of `op` that it covered. */
static uint32_t check_row(const sp_op *op, const eager_row *row)
{
    row_words words;
    uint32_t tried = 0;
    split(row, &words);
    for (uint32_t i = 0; i < words.count; i++) {
        if (words.at[i][0] == '-') continue;
        tried |= 1u << i;
        uint32_t like;
        const bool is_like = i > 0 && sp__op_is_like(sp__op_dtypes(op, i), &like);
        for (int type = SP_F32; type <= SP_BOOL; type++) {
            const sp_dtype to = (sp_dtype)type;
            const char *name = sp_dtype_name(to);
            if (!is_like) {
                const uint32_t claimed = claimed_types(op, row, i);
                check_type(row, &words, group_of(op, i, words.count), to,
                           (claimed >> type & 1) != 0 ? SP_OK : SP_UNSUPPORTED, claimed);
            } else if (strncmp(words.at[i], name, strlen(name)) != 0) {
                check_type(row, &words, 1u << i, to, SP_MISMATCH, 0);
            }
        }
    }
    return tried;
}

/* A number with a fraction differs in an integer type. */
static bool is_row_of(const sp_op *op, const eager_row *row)
{
    return strcmp(op->name, row->op) == 0 && row->opset >= op->since && row->opset <= op->until &&
           strchr(row->inputs, '.') == NULL;
}

static void check_op(const sp_op *op)
{
    uint32_t tried = 0, rows = 0;
    for (uint32_t i = 0; i < eager_row_count + SP_COUNT_OF(more_rows); i++) {
        const eager_row *row =
            i < eager_row_count ? &eager_rows[i] : &more_rows[i - eager_row_count];
        if (!is_row_of(op, row)) continue;
        tried |= check_row(op, row);
        rows++;
    }
    uint32_t wanted = 0, like;
    for (uint32_t i = 0; i < op->max_inputs && i < SP_OP_TYPED_INPUTS; i++) {
        if (!sp__op_is_like(sp__op_dtypes(op, i), &like)) wanted |= 1u << i;
    }
    const bool is_covered = rows > 0 && (wanted & ~tried) == 0;
    if (!is_covered) {
        test_note("%s from %u on: no row tries input types 0x%x: add one above", op->name,
                  op->since, wanted & ~tried);
    }
    CHECK(is_covered);
}

TEST(the_types_that_the_table_has_run_and_no_others_do)
{
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    runtime_begin();
    for (uint32_t i = 0; i < count; i++) {
        if (!takes_graphs(&ops[i])) check_op(&ops[i]);
    }
    runtime_end();
}

/* ---- types that attributes give ---- */

static sp_status run_op(const char *op, const sp_op_attribute *attribute, const sp_tensor *input,
                        sp_dtype *out)
{
    const sp_op_options options = {.attributes = attribute, .attribute_count = 1};
    sp_tensor y = {0};
    sp_tensor_info info = {0};
    SP_TRY(sp_op_run(op, &options, input, input != NULL ? 1 : 0, &y, 1));
    const sp_status status = sp_tensor_get_info(y, &info);
    *out = info.dtype;
    (void)sp_tensor_release(y);
    return status;
}

TEST(what_an_attribute_gives_may_be_of_any_type)
{
    const int64_t three = 3, matrix[2] = {2, 2}, zero = 0;
    sp_tensor list, square;
    runtime_begin();
    REQUIRE_OK(sp_tensor_from_host(CPU, SP_I64, 1, &(int64_t){1}, &three, sizeof three, &list));
    REQUIRE_OK(sp_tensor_create(CPU, SP_F32, 2, matrix, &square));
    for (int type = SP_F32; type <= SP_BOOL; type++) {
        sp_host_tensor one = {.data = (void *)(uintptr_t)&zero, .dtype = (sp_dtype)type, .rank = 1};
        sp_dtype got;
        one.shape[0] = 1;
        one.bytes = sp_dtype_bytes(one.dtype);
        const sp_op_attribute value = {.name = "value", .type = SP_OP_TENSOR, .t = &one};
        CHECK_OK(run_op("Constant", &value, NULL, &got));
        CHECK_EQ_INT(got, type);
        CHECK_OK(run_op("ConstantOfShape", &value, &list, &got));
        CHECK_EQ_INT(got, type);
        const int64_t number = sp__onnx_data_type((sp_dtype)type);
        const sp_op_attribute to = {.name = "to", .type = SP_OP_INT, .i = number};
        CHECK_OK(run_op("Cast", &to, &square, &got));
        CHECK_EQ_INT(got, type);
        const sp_op_attribute dtype = {.name = "dtype", .type = SP_OP_INT, .i = number};
        CHECK_OK(run_op("EyeLike", &dtype, &square, &got));
        CHECK_EQ_INT(got, type);
    }
    CHECK_OK(sp_tensor_release(list));
    CHECK_OK(sp_tensor_release(square));
    runtime_end();
}

TEST_MAIN
