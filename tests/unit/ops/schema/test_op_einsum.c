/* SPDX-License-Identifier: Apache-2.0 */
/* Einsum: the bits of the rule for products, summed in the order of the equation's indices, on
 * every instruction set; implicit outputs, diagonals and the ellipsis; and equations that are
 * refused. */
#include <string.h>

#include "product_rule.h"
#include "support/model_data.h"
#include "support/test.h"

enum { INDICES = 26, MOST = 4000 };

/* The terms of an equation of letters without an ellipsis: "bij,bjk->bik". */
typedef struct plain_equation {
    const char *text;
    char terms[3][SP_MAX_RANK + 1]; /* two inputs, of which the second may be missing; the output */
    uint32_t input_count;
    int64_t sizes[INDICES];
} plain_equation;

static plain_equation read_plain(const char *text, const int64_t *sizes)
{
    plain_equation e = {.text = text, .input_count = 1};
    uint32_t term = 0, at = 0;
    memcpy(e.sizes, sizes, sizeof e.sizes);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == ',') e.input_count = 2, term = 1, at = 0;
        else if (*c == '>') term = 2, at = 0;
        else if (*c != '-') e.terms[term][at++] = *c;
    }
    return e;
}

static sp_shape shape_of(const plain_equation *e, const char *term)
{
    sp_shape shape = {.rank = (uint32_t)strlen(term)};
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = e->sizes[term[i] - 'a'];
    return shape;
}

static float element(const plain_equation *e, const char *term, const sp_array *x,
                     const int64_t *at)
{
    int64_t place = 0;
    for (; *term != '\0'; term++) place = place * e->sizes[*term - 'a'] + at[*term - 'a'];
    return ((const float *)x->data)[place];
}

/* Steps through the indices of `order`, the last one first. False: at the end. */
static bool step(const plain_equation *e, const char *order, int64_t *at)
{
    for (size_t i = strlen(order); i-- > 0;) {
        const int index = order[i] - 'a';
        if (++at[index] < e->sizes[index]) return true;
        at[index] = 0;
    }
    return false;
}

/* The indices that are summed over, in the order of their first appearance. */
static void sums_of(const plain_equation *e, char out[INDICES + 1])
{
    size_t count = 0;
    out[0] = '\0';
    for (int term = 0; term < 2; term++) {
        for (const char *c = e->terms[term]; *c != '\0'; c++) {
            if (strchr(e->terms[2], *c) != NULL || strchr(out, *c) != NULL) continue;
            out[count++] = *c;
            out[count] = '\0';
        }
    }
}

static void expect(const plain_equation *e, const sp_array *in, float *out)
{
    char sums[INDICES + 1];
    int64_t at[INDICES] = {0};
    sums_of(e, sums);
    do {
        product_sum sum = product_begin(1);
        do {
            const float a = element(e, e->terms[0], &in[0], at);
            const float b = e->input_count == 2 ? element(e, e->terms[1], &in[1], at) : 1;
            product_step(&sum, a, b);
        } while (step(e, sums, at));
        *out++ = product_end(&sum);
    } while (step(e, e->terms[2], at));
}

static sp_status run_text(sp_text text, const sp_array *in, uint32_t count, sp_cpu_isa isa,
                          sp_array *out)
{
    const sp_attribute attribute = data_attribute_text("equation", &text);
    const data_call call = {.op = "Einsum",
                            .version = 12,
                            .attributes = &attribute,
                            .attribute_count = 1,
                            .inputs = in,
                            .input_count = count,
                            .output_count = 1,
                            .isa = isa};
    return data_run_op(&call, out);
}

static sp_status run(const char *equation, const sp_array *in, uint32_t count, sp_cpu_isa isa,
                     sp_array *out)
{
    return run_text(sp__text(equation), in, count, isa, out);
}

static void check_plain(const plain_equation *e, data_random *random)
{
    static float want[MOST];
    sp_array in[2] = {{0}};
    for (uint32_t i = 0; i < e->input_count; i++) {
        const sp_shape shape = shape_of(e, e->terms[i]);
        in[i] = data_floats(random, &shape);
    }
    const sp_shape y = shape_of(e, e->terms[2]);
    REQUIRE(sp__shape_count(&y) <= MOST);
    expect(e, in, want);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        sp_array out;
        REQUIRE_OK(run(e->text, in, e->input_count, (sp_cpu_isa)isa, &out));
        CHECK(sp__shape_equal(&out.shape, &y));
        if (memcmp(out.data, want, (size_t)out.bytes) != 0) test_note("%s", e->text);
        CHECK_EQ_MEM(out.data, want, (size_t)out.bytes);
        sp__array_deinit(&out);
    }
    data_free(in, e->input_count);
}

static const char *const equations[] = {"ij,jk->ik",
                                        "bij,bjk->bik",
                                        "bhqd,bhkd->bhqk",
                                        "bqhd,bkhd->bhqk",
                                        "ij,jk->ki",
                                        "ij,kj->ki",
                                        "ij,ij->ij",
                                        "i,j->ij",
                                        "i,i->",
                                        "ij,kl->",
                                        "ij,j->i",
                                        "i,ijk->jk",
                                        "abc,cd->abd",
                                        "nct,ncp->ntp",
                                        "bxyd,ed->bexy",
                                        "ijk,kj->i",
                                        "ii,ij->j",
                                        "iij,jk->ik",
                                        "ij->",
                                        "ij->j",
                                        "iij->j",
                                        "abcdefg,gh->abcdefh",
                                        "i,jk->kij",
                                        "abc,abd->abcd"};

TEST(products_have_the_bits_of_the_rule)
{
    data_random random = {11};
    for (size_t i = 0; i < SP_COUNT_OF(equations); i++) {
        for (int k = 0; k < 3; k++) {
            int64_t sizes[INDICES];
            for (int s = 0; s < INDICES; s++) sizes[s] = 1 + (int64_t)(data_next(&random) % 3);
            const plain_equation e = read_plain(equations[i], sizes);
            check_plain(&e, &random);
        }
    }
}

/* The sum is over j and k, 600 steps, in segments. */
TEST(long_sums_are_cut_into_segments)
{
    data_random random = {12};
    int64_t sizes[INDICES] = {0};
    sizes['i' - 'a'] = 5, sizes['j' - 'a'] = 20, sizes['k' - 'a'] = 30, sizes['l' - 'a'] = 19;
    const plain_equation one = read_plain("ijk,jkl->il", sizes);
    const plain_equation other = read_plain("ijk,kjl->li", sizes);
    check_plain(&one, &random);
    check_plain(&other, &random);
}

static void check_same(const char *equation, const char *other, const sp_shape *a,
                       const sp_shape *b)
{
    data_random random = {13};
    sp_array in[2] = {data_floats(&random, a), data_floats(&random, b)}, one, two;
    REQUIRE_OK(run(equation, in, 2, SP_CPU_PORTABLE, &one));
    REQUIRE_OK(run(other, in, 2, SP_CPU_PORTABLE, &two));
    CHECK(sp__shape_equal(&one.shape, &two.shape));
    CHECK_EQ_MEM(one.data, two.data, (size_t)one.bytes);
    sp__array_deinit(&one);
    sp__array_deinit(&two);
    data_free(in, 2);
}

TEST(implicit_outputs_and_the_ellipsis_stand_for_indices)
{
    const sp_shape a = SHAPE(2, 3, 4, 5), b = SHAPE(2, 3, 5, 6), square = SHAPE(3, 4);
    const sp_shape other = SHAPE(4, 5);
    check_same("...ij,...jk->...ik", "abij,abjk->abik", &a, &b);
    check_same("...ij,...jk", "abij,abjk->abik", &a, &b);
    check_same(" ...i j , ... jk -> ...ki ", "abij,abjk->abki", &a, &b);
    check_same("a...ij,a...jk->...ik", "abij,abjk->bik", &a, &b);
    check_same("zj,jA", "zj,jA->Az", &square, &other); /* capital letters first */
    check_same("ij,jk", "ij,jk->ik", &square, &other);
}

TEST(the_ellipsis_broadcasts)
{
    data_random random = {14};
    const sp_shape shapes[] = {SHAPE(2, 1, 3, 4), SHAPE(5, 4, 6)};
    sp_array in[2] = {data_floats(&random, &shapes[0]), data_floats(&random, &shapes[1])}, y, want;
    REQUIRE_OK(run("...ij,...jk->...ik", in, 2, SP_CPU_PORTABLE, &y));
    REQUIRE_OK(data_run("MatMul", 13, NULL, 0, in, 2, &want, 1));
    CHECK(sp__shape_equal(&y.shape, &want.shape));
    CHECK_EQ_MEM(y.data, want.data, (size_t)y.bytes);
    sp__array_deinit(&y);
    sp__array_deinit(&want);
    data_free(in, 2);
}

/* As if the operand had no such axis. */
TEST(an_index_of_size_1_repeats_along_the_other_operand)
{
    const struct {
        const char *equation, *other;
        sp_shape a, b, plain;
    } rows[] = {{"ij,ik->ijk", "ij,k->ijk", SHAPE(3, 4), SHAPE(1, 5), SHAPE(5)},
                {"ij,jk->ik", "ij,k->ik", SHAPE(3, 4), SHAPE(1, 5), SHAPE(5)},
                {"ij,iik->jk", "ij,k->jk", SHAPE(3, 4), SHAPE(1, 1, 5), SHAPE(5)},
                {"iij,ik", "iij,k->jk", SHAPE(3, 3, 4), SHAPE(1, 5), SHAPE(5)},
                {"ij...,j...->i...", "ijab,b->iab", SHAPE(2, 3, 4, 5), SHAPE(1, 1, 5), SHAPE(5)}};
    data_random random = {18};
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        sp_array in[2] = {data_floats(&random, &rows[i].a), data_floats(&random, &rows[i].b)};
        sp_array one, two, without[2] = {in[0], in[1]};
        REQUIRE_OK(run(rows[i].equation, in, 2, SP_CPU_PORTABLE, &one));
        without[1].shape = rows[i].plain;
        REQUIRE_OK(run(rows[i].other, without, 2, SP_CPU_PORTABLE, &two));
        CHECK(sp__shape_equal(&one.shape, &two.shape));
        CHECK_EQ_MEM(one.data, two.data, (size_t)one.bytes);
        sp__array_deinit(&one);
        sp__array_deinit(&two);
        data_free(in, 2);
    }
}

TEST(a_sum_of_no_elements_is_zero)
{
    data_random random = {15};
    const sp_shape shapes[] = {SHAPE(2, 0), SHAPE(0, 3)};
    sp_array in[2] = {data_floats(&random, &shapes[0]), data_floats(&random, &shapes[1])}, y;
    REQUIRE_OK(run("ij,jk->ik", in, 2, SP_CPU_PORTABLE, &y));
    for (int i = 0; i < 6; i++) CHECK(data_is_same(((const float *)y.data)[i], 0));
    sp__array_deinit(&y);
    data_free(in, 2);
}

TEST(bad_equations_are_refused_with_the_reason)
{
    static const struct {
        const char *equation;
        uint32_t inputs;
        sp_status status;
        const char *message;
    } rows[] = {{"ij->ij", 2, SP_CORRUPT, "a term for each input"},
                {"ij,jk->ik", 1, SP_CORRUPT, "its end"},
                {"ij,jk->iz", 2, SP_CORRUPT, "an index that no input has"},
                {"ij,jk->ii", 2, SP_CORRUPT, "an index twice"},
                {"ij,jk->i1", 2, SP_CORRUPT, "its end"},
                {"......,jk", 2, SP_CORRUPT, "two ellipses"},
                {"abcdefghi,jk", 2, SP_CORRUPT, "too many indices"},
                {"i,jk", 2, SP_MISMATCH, "1 indices for shape [3,4]"},
                {"ijk...,jk", 2, SP_MISMATCH, "3 indices for shape [3,4]"},
                {"ij,ik->jk", 2, SP_MISMATCH, "index 'i' has the sizes 3 and 4"},
                {"ii,jk", 2, SP_MISMATCH, "index 'i' has the sizes 3 and 4"},
                {"...,...", 2, SP_MISMATCH, "the ellipsis has the sizes"},
                {"ij,jk,kl", 3, SP_UNSUPPORTED, "more than two inputs"}};
    data_random random = {16};
    const sp_shape shapes[] = {SHAPE(3, 4), SHAPE(4, 5), SHAPE(5, 6)};
    sp_array in[3], out;
    for (int i = 0; i < 3; i++) in[i] = data_floats(&random, &shapes[i]);
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        CHECK_STATUS(run(rows[i].equation, in, rows[i].inputs, SP_CPU_PORTABLE, &out),
                     rows[i].status);
        CHECK_MESSAGE(rows[i].message);
    }
    data_free(in, 3);
}

/* The text of a file may have any bytes. */
TEST(a_zero_byte_is_not_the_end_of_an_equation)
{
    static const char text[] = "ij->i\0j";
    const sp_shape shape = SHAPE(3, 4);
    data_random random = {19};
    sp_array in = data_floats(&random, &shape), out;
    CHECK_STATUS(run_text((sp_text){text, sizeof text - 1}, &in, 1, SP_CPU_PORTABLE, &out),
                 SP_CORRUPT);
    CHECK_MESSAGE("its end");
    data_free(&in, 1);
}

TEST(more_axes_than_a_tensor_has_are_refused)
{
    data_random random = {17};
    const sp_shape shapes[] = {SHAPE(1, 1, 1, 1, 1), SHAPE(1, 1, 1, 1)};
    sp_array in[2] = {data_floats(&random, &shapes[0]), data_floats(&random, &shapes[1])}, out;
    CHECK_STATUS(run("abcde,fghi", in, 2, SP_CPU_PORTABLE, &out), SP_UNSUPPORTED);
    CHECK_MESSAGE("more than 8 axes");
    CHECK_STATUS(run("abcde,fghi->", in, 2, SP_CPU_PORTABLE, &out), SP_UNSUPPORTED);
    CHECK_MESSAGE("an operand of more than 8 axes");
    data_free(in, 2);
}

TEST_MAIN
