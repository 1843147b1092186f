/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid calls: each gets a status and a message, outputs are zero handles, and nothing is leaked.
 * Random calls may also be valid. */
#include <streampool/ops.h>

#include <math.h>
#include <string.h>

#include "ops/registry.h"
#include "runtime_fixture.h"
#include "support/eager_rows.h"

/* ---- one mistake at a time ---- */

static sp_tensor some_tensor(void)
{
    const float values[6] = {1, 2, 3, 4, 5, 6};
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(CPU, SP_F32, 2, (const int64_t[]){2, 3}, values, sizeof values,
                                 &tensor));
    return tensor;
}

static void refuse(sp_status wanted, const char *message, const char *op,
                   const sp_op_options *options, const sp_tensor *inputs, uint32_t input_count,
                   uint32_t output_count)
{
    sp_tensor y[4] = {{7}, {7}, {7}, {7}};
    CHECK_STATUS(sp_op_run(op, options, inputs, input_count, y, output_count), wanted);
    CHECK_MESSAGE(message);
    for (uint32_t i = 0; i < output_count && i < 4; i++) CHECK_EQ_U64(y[i].bits, 0);
}

TEST(lists_that_are_not_there_are_refused)
{
    runtime_begin();
    const sp_tensor x = some_tensor();
    sp_tensor y;
    CHECK_STATUS(sp_op_run(NULL, NULL, &x, 1, &y, 1), SP_INVALID);
    CHECK_STATUS(sp_op_run("Relu", NULL, &x, 1, NULL, 1), SP_INVALID);
    CHECK_MESSAGE("Relu: outputs is NULL");
    refuse(SP_INVALID, "Relu: inputs is NULL, with a count of 1", "Relu", NULL, NULL, 1, 1);
    refuse(SP_INVALID, "2 inputs are given; the op takes 1 to 1", "Relu", NULL, (sp_tensor[]){x, x},
           2, 1);
    refuse(SP_INVALID, "0 inputs are given; the op takes 1 to 1", "Relu", NULL, NULL, 0, 1);
    refuse(SP_UNSUPPORTED, "Relu: 2 outputs are requested; at most 1", "Relu", NULL, &x, 1, 2);
    refuse(SP_INVALID, "0 outputs are given; the op takes 1 to 1", "Relu", NULL, &x, 1, 0);
    CHECK_STATUS(sp_op_run("Concat", NULL, &x, UINT32_MAX, &y, 1), SP_INVALID);
    CHECK_MESSAGE("at most 65536 of each");
    CHECK_STATUS(sp_op_run("Split", NULL, &x, 1, &y, UINT32_MAX), SP_INVALID);
    CHECK_OK(sp_tensor_release(x));
    runtime_end();
}

TEST(handles_that_do_not_work_are_refused)
{
    runtime_begin();
    const sp_tensor x = some_tensor(), stale = some_tensor();
    const sp_storage storage = new_storage(64);
    CHECK_OK(sp_tensor_release(stale));
    const sp_tensor bad[] = {stale, {storage.bits}, {1}, {UINT64_MAX}};
    for (size_t i = 0; i < SP_COUNT_OF(bad); i++) {
        refuse(SP_INVALID, "Add", "Add", NULL, (sp_tensor[]){x, bad[i]}, 2, 1);
        CHECK_MESSAGE("input 1: ");
        const sp_op_options into = {.into = &bad[i]};
        refuse(SP_INVALID, "the tensor for output 0: ", "Relu", &into, &x, 1, 1);
        const sp_op_options device = {.device = {bad[i].bits}};
        refuse(SP_INVALID, "", "Relu", &device, &x, 1, 1);
    }
    refuse(SP_INVALID, "required input 0 is missing", "Add", NULL, (sp_tensor[]){{0}, x}, 2, 1);
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

static void refuse_attribute(sp_status wanted, const char *message, const char *op,
                             sp_op_attribute attribute)
{
    const sp_tensor x = some_tensor();
    const sp_op_options options = {.attributes = &attribute, .attribute_count = 1};
    refuse(wanted, message, op, &options, &x, strcmp(op, "Constant") == 0 ? 0 : 1, 1);
    CHECK_OK(sp_tensor_release(x));
}

TEST(attributes_that_cannot_be_are_refused)
{
    runtime_begin();
    const float number = 1;
    sp_host_tensor tensor = {
        .data = (void *)(uintptr_t)&number, .bytes = 4, .dtype = SP_F32, .rank = 0};
    const sp_op_attribute value = {.name = "value", .type = SP_OP_TENSOR, .t = &tensor};
    refuse_attribute(SP_INVALID, "attribute 0 has no name", "Softmax",
                     (sp_op_attribute){.type = SP_OP_INT});
    refuse_attribute(SP_INVALID, "attribute 'axis' has the unknown type 0", "Softmax",
                     (sp_op_attribute){.name = "axis"});
    refuse_attribute(SP_INVALID, "attribute 'axis' is of type float; expected int", "Softmax",
                     (sp_op_attribute){.name = "axis", .type = SP_OP_FLOAT});
    refuse_attribute(SP_UNSUPPORTED, "attribute 'axes' is not supported", "Softmax",
                     (sp_op_attribute){.name = "axes", .type = SP_OP_INT});
    refuse_attribute(SP_MISMATCH, "Softmax of f32 [2,3]: ", "Softmax",
                     (sp_op_attribute){.name = "axis", .type = SP_OP_INT, .i = INT64_MIN});
    refuse_attribute(SP_INVALID, "attribute 'perm' has no values", "Transpose",
                     (sp_op_attribute){.name = "perm", .type = SP_OP_INTS, .count = 2});
    refuse_attribute(SP_INVALID, "attribute 'approximate' has no values", "Gelu",
                     (sp_op_attribute){.name = "approximate", .type = SP_OP_STRING});
    refuse_attribute(SP_INVALID, "attribute 'x' has no values", "RNN",
                     (sp_op_attribute){.name = "x", .type = SP_OP_STRINGS, .count = 1});
    refuse_attribute(SP_INVALID, "attribute 'value' has no values", "Constant",
                     (sp_op_attribute){.name = "value", .type = SP_OP_TENSOR});
    refuse_attribute(SP_INVALID, "attribute 'to' is missing", "Cast",
                     (sp_op_attribute){.name = "saturate", .type = SP_OP_INT});
    tensor.bytes = 5;
    refuse_attribute(SP_INVALID, "4 bytes are expected, 5 given", "Constant", value);
    tensor.bytes = 4;
    tensor.data = NULL;
    refuse_attribute(SP_INVALID, "4 bytes are expected, 0 given", "Constant", value);
    tensor.dtype = (sp_dtype)77;
    refuse_attribute(SP_INVALID, "a tensor without an element type", "Constant", value);
    tensor.dtype = SP_F32;
    tensor.rank = 9;
    refuse_attribute(SP_MISMATCH, "Constant: ", "Constant", value);
    runtime_end();
}

TEST(lists_of_attributes_that_cannot_be_are_refused)
{
    runtime_begin();
    const sp_tensor x = some_tensor();
    const sp_op_attribute twice[2] = {{.name = "axis", .type = SP_OP_INT},
                                      {.name = "axis", .type = SP_OP_INT}};
    sp_op_options options = {.attributes = twice, .attribute_count = 2};
    refuse(SP_INVALID, "attribute 'axis' is given twice", "Softmax", &options, &x, 1, 1);
    options = (sp_op_options){.attribute_count = 1};
    refuse(SP_INVALID, "attributes is NULL, with a count of 1", "Softmax", &options, &x, 1, 1);
    options = (sp_op_options){.attributes = twice, .attribute_count = UINT32_MAX};
    refuse(SP_INVALID, "no op has more than", "Softmax", &options, &x, 1, 1);
    options = (sp_op_options){.opset = UINT32_MAX};
    refuse(SP_UNSUPPORTED, "in opset 4294967295", "Softmax", &options, &x, 1, 1);
    CHECK_OK(sp_tensor_release(x));
    runtime_end();
}

TEST(results_that_would_be_absurdly_large_are_refused)
{
    runtime_begin();
    const sp_tensor x = some_tensor();
    const int64_t sizes[2] = {INT64_C(1) << 40, INT64_C(1) << 40}, two = 2;
    sp_tensor shape = {0};
    CHECK_OK(sp_tensor_from_host(CPU, SP_I64, 1, &two, sizes, sizeof sizes, &shape));
    refuse(SP_MISMATCH, "Tile of f32 [2,3], i64 [2]: ", "Tile", NULL, (sp_tensor[]){x, shape}, 2,
           1);
    refuse(SP_EXHAUSTED, "ConstantOfShape", "ConstantOfShape", NULL, &shape, 1, 1);
    CHECK_OK(sp_tensor_release(x));
    CHECK_OK(sp_tensor_release(shape));
    runtime_end();
}

/* Taps are counted in int64: three sizes that fit individually, but whose product overflows. */
TEST(windows_of_more_taps_than_can_be_counted_are_refused)
{
    static const int64_t kernel[3] = {3, INT32_MAX, INT32_MAX};
    static const int64_t pads[6] = {1, INT32_MAX - 1, INT32_MAX - 1, 1, 0, 0};
    static const int64_t ones[5] = {1, 1, 1, 1, 1};
    const float one = 1;
    const sp_op_attribute attributes[2] = {
        {.name = "kernel_shape", .type = SP_OP_INTS, .count = 3, .ints = kernel},
        {.name = "pads", .type = SP_OP_INTS, .count = 6, .ints = pads}};
    const sp_op_options options = {.opset = 11, .attributes = attributes, .attribute_count = 2};
    runtime_begin();
    sp_tensor x = {0};
    CHECK_OK(sp_tensor_from_host(CPU, SP_F32, 5, ones, &one, sizeof one, &x));
    const char *const names[] = {"AveragePool", "MaxPool"};
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        refuse(SP_UNSUPPORTED, "a window of 3 x 2147483647 x 2147483647", names[i], &options, &x, 1,
               1);
    }
    CHECK_OK(sp_tensor_release(x));
    runtime_end();
}

/* One element, repeated without bound: the copy would have a size, the view has none. */
TEST(views_that_repeat_without_end_take_no_memory)
{
    runtime_begin();
    const sp_device null = open_null();
    const uint8_t yes = 1;
    const int64_t one = 1, many = INT64_C(1) << 40;
    sp_tensor base = {0}, view = {0};
    CHECK_OK(sp_tensor_from_host(null, SP_BOOL, 1, &one, &yes, 1, &base));
    CHECK_OK(sp_tensor_expand(base, 1, &many, &view));
    refuse(SP_OUT_OF_MEMORY, "NonZero of bool [1099511627776]: ", "NonZero", NULL, &view, 1, 1);
    refuse(SP_OUT_OF_MEMORY, "Not of bool [1099511627776]: ", "Not", NULL, &view, 1, 1);
    CHECK_OK(sp_tensor_release(base));
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_device_close(null));
    runtime_end();
}

/* ---- all kinds of mistakes at random ---- */

static int64_t odd_number(data_random *random)
{
    static const int64_t numbers[] = {0, 1,  -1,        2,          3,         4,        -2,
                                      7, 64, INT32_MAX, UINT32_MAX, INT64_MAX, INT64_MIN};
    return numbers[data_next(random) % SP_COUNT_OF(numbers)];
}

static sp_tensor odd_tensor(data_random *random)
{
    static const sp_tensor bad[] = {{0}, {1}, {UINT64_MAX}};
    if (data_next(random) % 12 == 0) return bad[data_next(random) % SP_COUNT_OF(bad)];
    sp_shape shape = {.rank = (uint32_t)(data_next(random) % 6)};
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = (int64_t)(data_next(random) % 4);
    const sp_dtype dtype = (sp_dtype)(1 + data_next(random) % SP_BOOL);
    sp_array array = data_counted(dtype, shape, 0);
    const size_t element = sp_dtype_bytes(dtype);
    for (uint64_t i = 0; i < array.bytes / element; i++) {
        const int64_t value = dtype == SP_BOOL ? (int64_t)i % 2 : odd_number(random);
        memcpy((char *)array.data + i * element, &value, element);
    }
    sp_tensor tensor = {0};
    CHECK_OK(tensor_from_array(CPU, &array, data_next(random) % 2 == 0, &tensor));
    sp__array_deinit(&array);
    return tensor;
}

static sp_op_attribute odd_attribute(data_random *random, const sp_attribute_schema *schema)
{
    static const char *const texts[] = {"",      "SAME_UPPER", "VALID", "reflect",
                                        "cubic", "reverse",    "mul"};
    static const float floats[] = {0, -1, 0.5f, 1e30f, -1e30f, INFINITY, NAN, 3};
    static int64_t ints[8];
    static sp_host_tensor tensor;
    for (int i = 0; i < 8; i++) ints[i] = odd_number(random);
    tensor = (sp_host_tensor){.data = ints, .bytes = 16, .dtype = SP_I64, .rank = 1, .shape = {2}};
    return (sp_op_attribute){.name = schema->name,
                             .type = data_next(random) % 12 == 0
                                         ? (sp_op_attribute_type)(data_next(random) % 10)
                                         : (sp_op_attribute_type)schema->type,
                             .f = floats[data_next(random) % SP_COUNT_OF(floats)],
                             .i = odd_number(random),
                             .s = texts[data_next(random) % SP_COUNT_OF(texts)],
                             .t = data_next(random) % 4 != 0 ? &tensor : NULL,
                             .count = (uint32_t)(data_next(random) % 7),
                             .floats = floats,
                             .ints = ints,
                             .strings = texts};
}

enum { MOST = 6 };

/* The values of lists and tensors are those of the last attribute. */
static void make_odd_call(data_random *random, const sp_op *op, uint64_t *accepted)
{
    sp_op_attribute attributes[SP_OP_MAX_ATTRIBUTES];
    sp_tensor inputs[MOST], outputs[MOST];
    sp_op_options options = {.opset = op->since, .attributes = attributes};
    for (uint32_t i = 0; i < SP_OP_MAX_ATTRIBUTES && op->attributes[i].name != NULL; i++) {
        if (!op->attributes[i].is_required && data_next(random) % 3 != 0) continue;
        attributes[options.attribute_count++] = odd_attribute(random, &op->attributes[i]);
    }
    const uint32_t most = op->max_inputs < MOST ? op->max_inputs : MOST;
    const uint32_t input_count =
        op->min_inputs + (uint32_t)(data_next(random) % (most - op->min_inputs + 1));
    const uint32_t output_count = 1 + (uint32_t)(data_next(random) % 3);
    for (uint32_t i = 0; i < input_count; i++) inputs[i] = odd_tensor(random);
    const sp_status status =
        sp_op_run(op->name, &options, inputs, input_count, outputs, output_count);
    if (status != SP_OK) CHECK(sp_last_error()[0] != '\0');
    CHECK(status == SP_OK || status == SP_INVALID || status == SP_MISMATCH ||
          status == SP_UNSUPPORTED || status == SP_EXHAUSTED || status == SP_OUT_OF_MEMORY ||
          status == SP_FAILED);
    for (uint32_t i = 0; i < output_count; i++) {
        CHECK((outputs[i].bits != 0) == (status == SP_OK));
        CHECK_OK(sp_tensor_release(outputs[i]));
    }
    if (status == SP_OK) (*accepted)++;
    for (uint32_t i = 0; i < input_count; i++) {
        if (inputs[i].bits > 1 && inputs[i].bits != UINT64_MAX) {
            CHECK_OK(sp_tensor_release(inputs[i]));
        }
    }
}

TEST(made_up_calls_of_every_op_leave_nothing_behind)
{
    data_random random = {.state = 5};
    uint64_t accepted = 0, calls = 0;
    uint32_t op_count;
    const sp_op *ops = sp__op_table(&op_count);
    runtime_begin();
    CHECK_OK(sp_device_set_memory_limit(CPU, UINT64_C(256) << 20));
    const uint64_t rounds = test_count(20000, 300);
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < op_count; i++) make_odd_call(&random, &ops[i], &accepted);
        calls += op_count;
        (void)sp_stream_synchronize(current_stream());
    }
    test_note("%llu of %llu calls were accepted", (unsigned long long)accepted,
              (unsigned long long)calls);
    CHECK(accepted > calls / 50);
    runtime_end();
}

TEST_MAIN
