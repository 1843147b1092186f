/* SPDX-License-Identifier: Apache-2.0 */
/* Gemm, MatMul and Conv of types other than f32: the numbers of f32 if all are small integers, the
 * bits of f32 rounded once for half types, and the same bits on every instruction set and for every
 * row in any batch. */
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

static const sp_dtype floats[] = {SP_F64, SP_F16, SP_BF16};
static const sp_dtype integers[] = {SP_I32, SP_I64, SP_U32, SP_U64};

typedef struct product {
    const char *op;
    uint32_t version;
    sp_shape shapes[3];
    uint32_t input_count;
    sp_attribute attributes[6];
    uint32_t attribute_count;
} product;

static sp_array converted(const sp_array *from, sp_dtype dtype)
{
    /* ONNX's numbers of the types. */
    static const int64_t numbers[SP_BOOL + 1] = {
        [SP_F32] = 1,  [SP_I32] = 6,  [SP_I64] = 7,  [SP_F16] = 10,
        [SP_F64] = 11, [SP_U32] = 12, [SP_U64] = 13, [SP_BF16] = 16};
    const sp_attribute to = data_attribute_int("to", &numbers[dtype]);
    sp_array out = {0};
    CHECK_OK(data_run("Cast", 13, &to, 1, from, 1, &out, 1));
    return out;
}

static void fill_whole(data_random *random, sp_array *array)
{
    float *values = array->data;
    const uint64_t count = sp__shape_count(&array->shape);
    for (uint64_t i = 0; i < count; i++) values[i] = (float)(data_next(random) % 3);
}

static sp_array run(const product *p, const sp_array *inputs, sp_cpu_isa isa)
{
    const data_call call = {.op = p->op,
                            .version = p->version,
                            .attributes = p->attributes,
                            .attribute_count = p->attribute_count,
                            .inputs = inputs,
                            .input_count = p->input_count,
                            .output_count = 1,
                            .isa = isa,
                            .packs = strcmp(p->op, "Conv") != 0};
    sp_array out = {0};
    CHECK_OK(data_run_op(&call, &out));
    return out;
}

/* In `dtype`: the result of f32, rounded. */
static void check_type(const product *p, sp_dtype dtype, bool is_whole, data_random *random)
{
    sp_array wide[3] = {0};
    sp_array narrow[3] = {0};
    for (uint32_t i = 0; i < p->input_count; i++) {
        sp_array made = data_floats(random, &p->shapes[i]);
        if (is_whole) fill_whole(random, &made);
        narrow[i] = converted(&made, dtype);
        wide[i] = converted(&narrow[i], SP_F32);
        data_free(&made, 1);
    }
    sp_array exact = run(p, wide, SP_CPU_PORTABLE);
    sp_array want = converted(&exact, dtype);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        sp_array got = run(p, narrow, (sp_cpu_isa)isa);
        CHECK_EQ_INT(got.dtype, dtype);
        CHECK_EQ_U64(got.bytes, want.bytes);
        CHECK_EQ_MEM(got.data, want.data, want.bytes);
        data_free(&got, 1);
    }
    data_free(&exact, 1);
    data_free(&want, 1);
    data_free(wide, p->input_count);
    data_free(narrow, p->input_count);
}

static void check_floats(const product *p, data_random *random)
{
    for (size_t t = 0; t < SP_COUNT_OF(floats); t++) check_type(p, floats[t], true, random);
    check_type(p, SP_F16, false, random);
    check_type(p, SP_BF16, false, random);
}

static int64_t below(data_random *random, int64_t bound)
{
    return (int64_t)(data_next(random) % (uint64_t)bound);
}

TEST(gemm_of_every_type_is_the_product_of_f32_rounded_once)
{
    data_random random = {3};
    for (uint64_t round = 0; round < test_count(400, 60); round++) {
        const int64_t m = 1 + below(&random, 9), n = 1 + below(&random, 40);
        const int64_t k = below(&random, 20);
        const int64_t ta = below(&random, 2), tb = below(&random, 2);
        const float alpha = 2.0f, beta = 3.0f;
        const product p = {
            .op = "Gemm",
            .version = 13,
            .shapes = {ta ? SHAPE(k, m) : SHAPE(m, k), tb ? SHAPE(n, k) : SHAPE(k, n),
                       below(&random, 2) ? SHAPE(n) : SHAPE(m, 1)},
            .input_count = 2 + (uint32_t)below(&random, 2),
            .attributes = {data_attribute_int("transA", &ta), data_attribute_int("transB", &tb),
                           data_attribute_float("alpha", &alpha),
                           data_attribute_float("beta", &beta)},
            .attribute_count = 4};
        check_floats(&p, &random);
    }
}

TEST(matmul_of_every_type_broadcasts_batches_and_takes_vectors)
{
    const sp_shape shapes[][2] = {
        {SHAPE(5, 17), SHAPE(17, 19)},       {SHAPE(17), SHAPE(17, 19)},
        {SHAPE(4, 3, 6), SHAPE(6)},          {SHAPE(4, 3, 6), SHAPE(6, 5)},
        {SHAPE(2, 1, 3, 6), SHAPE(5, 6, 7)}, {SHAPE(2, 0, 6), SHAPE(2, 6, 7)},
        {SHAPE(3, 0), SHAPE(0, 4)},          {SHAPE(3, 600), SHAPE(600, 17)},
    };
    data_random random = {4};
    for (size_t i = 0; i < SP_COUNT_OF(shapes); i++) {
        const product p = {.op = "MatMul",
                           .version = 13,
                           .shapes = {shapes[i][0], shapes[i][1]},
                           .input_count = 2};
        check_floats(&p, &random);
        for (size_t t = 0; t < SP_COUNT_OF(integers); t++) {
            check_type(&p, integers[t], true, &random);
        }
    }
}

TEST(products_of_integers_wrap)
{
    sp_array in[2] = {data_counted(SP_U32, SHAPE(1, 2), 0xffffffffu),
                      data_counted(SP_U32, SHAPE(2, 1), 0x80000000u)};
    sp_array out = {0};
    CHECK_OK(data_run("MatMul", 13, NULL, 0, in, 2, &out, 1));
    /* (2^32 - 1) * 2^31 + 0 * (2^31 + 1) */
    CHECK_EQ_U64(data_element(&out, 0), 0x80000000u);
    data_free(in, 2);
    data_free(&out, 1);
}

TEST(conv_of_every_type_is_the_convolution_of_f32_rounded_once)
{
    data_random random = {5};
    for (uint64_t round = 0; round < test_count(300, 40); round++) {
        const int64_t group = 1 + below(&random, 2), filters = group * (1 + below(&random, 3));
        const int64_t channels = 1 + below(&random, 3);
        const uint32_t rank = 1 + (uint32_t)below(&random, 3);
        int64_t pads[6], strides[3], dilations[3];
        product p = {.op = "Conv",
                     .version = 11,
                     .shapes = {{.rank = rank + 2, .dims = {2, group * channels}},
                                {.rank = rank + 2, .dims = {filters, channels}},
                                SHAPE(filters)},
                     .input_count = 2 + (uint32_t)below(&random, 2)};
        for (uint32_t i = 0; i < rank; i++) {
            p.shapes[0].dims[2 + i] = 3 + below(&random, 6);
            p.shapes[1].dims[2 + i] = 1 + below(&random, 3);
            pads[i] = below(&random, 2);
            pads[rank + i] = below(&random, 3);
            strides[i] = 1 + below(&random, 2);
            dilations[i] = 1; /* a window of 3 fits */
        }
        p.attributes[p.attribute_count++] = data_attribute_int("group", &group);
        p.attributes[p.attribute_count++] = data_attribute_ints("pads", pads, 2 * rank);
        p.attributes[p.attribute_count++] = data_attribute_ints("strides", strides, rank);
        p.attributes[p.attribute_count++] = data_attribute_ints("dilations", dilations, rank);
        check_floats(&p, &random);
    }
}

/* Row r of `batch` rows of x times w, compared with the row alone. */
TEST(a_row_has_the_bits_of_the_row_alone_in_every_type)
{
    static const sp_dtype types[] = {SP_F32, SP_F64, SP_F16, SP_BF16};
    data_random random = {6};
    for (size_t t = 0; t < SP_COUNT_OF(types); t++) {
        const product p = {.op = "MatMul", .version = 13, .input_count = 2};
        sp_array made[2] = {data_floats(&random, &SHAPE(37, 65)),
                            data_floats(&random, &SHAPE(65, 33))};
        sp_array in[2] = {converted(&made[0], types[t]), converted(&made[1], types[t])};
        sp_array whole = run(&p, in, sp__cpu_isa_selected());
        const uint64_t row_in = in[0].bytes / 37;
        const uint64_t row_out = whole.bytes / 37;
        for (uint64_t r = 0; r < 37; r++) {
            sp_array row[2] = {in[0], in[1]};
            row[0].shape = SHAPE(1, 65);
            row[0].bytes = row_in;
            row[0].data = (char *)in[0].data + r * row_in;
            sp_array alone = run(&p, row, sp__cpu_isa_selected());
            CHECK_EQ_MEM(alone.data, (char *)whole.data + r * row_out, row_out);
            data_free(&alone, 1);
        }
        data_free(made, 2);
        data_free(in, 2);
        data_free(&whole, 1);
    }
}

TEST(gemm_of_opset_6_repeats_c_only_if_it_is_told_to)
{
    data_random random = {7};
    sp_array in[3] = {data_floats(&random, &SHAPE(2, 3)), data_floats(&random, &SHAPE(3, 4)),
                      data_floats(&random, &SHAPE(4))};
    const int64_t yes = 1;
    const sp_attribute broadcast = data_attribute_int("broadcast", &yes);
    sp_array out = {0};
    sp_array now = {0};
    CHECK_STATUS(data_run("Gemm", 6, NULL, 0, in, 3, &out, 1), SP_MISMATCH);
    CHECK_MESSAGE("does not broadcast");
    CHECK_OK(data_run("Gemm", 6, &broadcast, 1, in, 3, &out, 1));
    CHECK_OK(data_run("Gemm", 13, NULL, 0, in, 3, &now, 1));
    CHECK_EQ_MEM(out.data, now.data, now.bytes);
    data_free(in, 3);
    data_free(&out, 1);
    data_free(&now, 1);
}

TEST_MAIN
