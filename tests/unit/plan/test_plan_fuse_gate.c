/* SPDX-License-Identifier: Apache-2.0 */
/* GELU, by erf and by tanh, HardSwish, by Clip and by HardSigmoid, and Mish that a model writes in
 * steps: when they become one step, and that the bits are those of the steps, on every instruction
 * set, in blocks of channels too. */
#include "plan/plan_fuse.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- graphs ---- */

/* Numbers of the nodes below; a and b are alpha and beta of HardSigmoid. */
typedef struct numbers {
    float a, b, c, low, high;
} numbers;

static const numbers gelu_numbers = {.a = 1.41421354f, .b = 1, .c = 0.5f},
                     tanh_numbers = {.a = 0.0447149985f, .b = 1, .c = 0.5f, .low = 0.797884583f},
                     swish_numbers = {.a = 3, .c = 6, .low = 0, .high = 6},
                     other_numbers = {.a = 3, .c = 6, .low = 0, .high = 5},
                     hard_numbers = {.a = 1.0f / 6, .b = 0.5f};

static const char *const gelu[] = {"Div x a > q", "Erf q > e",   "Add e b > s",
                                   "Mul x s > p", "Mul p c > y", NULL},
                         *const tanh_gelu[] = {"Mul a x > i", "Mul x i > j",   "Mul x j > k",
                                               "Add x k > s", "Mul low s > t", "Tanh t > e",
                                               "Add b e > v", "Mul c v > p",   "Mul x p > y",
                                               NULL},
                         *const swish[] = {"Add x a > s", "Clip s low high > g", "Mul x g > p",
                                           "Div p c > y", NULL},
                         *const hard[] = {"HardSigmoid x > g", "Mul x g > y", NULL},
                         *const mish[] = {"Softplus x > s", "Tanh s > t", "Mul x t > y", NULL};

static const struct {
    const char *const *nodes;
    const numbers *numbers;
} functions[] = {{gelu, &gelu_numbers},
                 {swish, &swish_numbers},
                 {tanh_gelu, &tanh_numbers},
                 {hard, &hard_numbers},
                 {mish, &hard_numbers}};

static void add_floats(writer *graph, const char *name, const sp_shape *shape, const float *values)
{
    writer tensor = make_tensor(name, 1, shape->dims, shape->rank, values,
                                (size_t)sp__shape_count(shape) * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_random(writer *graph, const char *name, const sp_shape *shape)
{
    data_random random = {91};
    sp_array values = data_floats(&random, shape);
    add_floats(graph, name, shape, values.data);
    sp__array_deinit(&values);
}

/* The nodes, of which number `node` is `other`, then `more`; each of the latter may be NULL. The
 * input "given" is one number. */
typedef struct gate_case {
    const char *const *nodes;
    numbers numbers;
    sp_shape x;
    size_t node;
    const char *other, *more, *output;
    bool has_specials;
} gate_case;

static void add_gate_node(writer *graph, const gate_case *c, const char *text)
{
    writer node = make_text_node(text);
    if (strncmp(text, "HardSigmoid", 11) == 0) {
        add_attribute_float(&node, "alpha", c->numbers.a);
        add_attribute_float(&node, "beta", c->numbers.b);
    }
    add_node(graph, node);
}

static const sp_graph *load(const gate_case *c)
{
    const sp_shape one = {.rank = 0}, list = SHAPE(c->x.dims[c->x.rank - 1]);
    writer graph = {0};
    add_input(&graph, "x", 1, c->x.dims, (int)c->x.rank);
    add_input(&graph, "given", 1, NULL, 0);
    add_floats(&graph, "a", &one, &c->numbers.a);
    add_floats(&graph, "b", &one, &c->numbers.b);
    add_floats(&graph, "c", &one, &c->numbers.c);
    add_floats(&graph, "low", &one, &c->numbers.low);
    add_floats(&graph, "high", &one, &c->numbers.high);
    add_random(&graph, "list", &list);
    add_random(&graph, "image", &c->x);
    for (size_t i = 0; c->nodes[i] != NULL; i++) {
        add_gate_node(&graph, c, i == c->node && c->other != NULL ? c->other : c->nodes[i]);
    }
    if (c->more != NULL) add_node(&graph, make_text_node(c->more));
    add_output(&graph, "y");
    if (c->output != NULL) add_output(&graph, c->output);
    return fused_plans_load(&graph);
}

/* ---- the same run, fused and not ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_shape *x, sp_cpu_isa isa,
                                    bool is_unfused)
{
    const sp_array inputs[2] = {{.dtype = SP_F32, .shape = *x}, {.dtype = SP_F32}};
    return fused_plans_compile(graph, inputs, 2, isa, is_unfused);
}

/* Elements of the last gate that was seen, unused lanes of blocks included. */
static int64_t gate_count;

static bool is_gate(sp_kernel_id kernel)
{
    switch (kernel) {
    case SP_KERNEL_ID_erf_gate_f32:
    case SP_KERNEL_ID_tanh_gate_f32:
    case SP_KERNEL_ID_clip_gate_f32:
    case SP_KERNEL_ID_hard_sigmoid_gate_f32:
    case SP_KERNEL_ID_softplus_gate_f32:
        return true;
    default:
        return false;
    }
}

static uint32_t count_gates(const sp_graph_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        if (!is_gate(step->kernel)) continue;
        gate_count = ((const sp_gate_constants *)step->constants)->count;
        count++;
    }
    return count;
}

static sp_array make_x(const gate_case *c, data_random *random)
{
    static const float specials[] = {INFINITY, -INFINITY, -0.0f, 1e-42f, 3e38f, NAN, -3, 3};
    sp_array x = data_floats(random, &c->x);
    float *values = x.data;
    const uint64_t count = x.bytes / sizeof(float);
    for (uint64_t i = 0; i < count; i++) values[i] *= 8;
    for (uint64_t i = 0; c->has_specials && i < count; i += 1 + data_next(random) % 50) {
        values[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
    return x;
}

static void check_gate(const gate_case *c, uint64_t seed, uint32_t gates, const char *what)
{
    const sp_shape one = {.rank = 0};
    data_random random = {seed};
    const sp_graph *graph = load(c);
    REQUIRE(graph != NULL);
    sp_array inputs[2] = {make_x(c, &random), data_floats(&random, &one)}, want[2] = {0};
    const sp_graph_plan *apart = compile(graph, &c->x, SP_CPU_PORTABLE, true);
    REQUIRE(apart != NULL);
    CHECK_EQ_INT(count_gates(apart), 0);
    REQUIRE_OK(data_run_plan(apart, inputs, want));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_graph_plan *fused = compile(graph, &c->x, (sp_cpu_isa)isa, false);
        REQUIRE(fused != NULL);
        CHECK_EQ_INT(count_gates(fused), gates);
        if (count_gates(fused) != gates) test_note("%s", what);
        fused_plans_check_outputs(fused, inputs, want, what);
        sp__plan_destroy(fused);
    }
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
    for (int i = 0; i < 2; i++) sp__array_deinit(&inputs[i]);
}

static gate_case usual_case(const char *const *nodes, const sp_shape *x)
{
    size_t i = 0;
    while (functions[i].nodes != nodes) i++;
    return (gate_case){.nodes = nodes, .numbers = *functions[i].numbers, .x = *x};
}

/* ---- tests ---- */

static float any_number(data_random *random)
{
    static const float specials[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 3e38f, -1};
    const uint64_t which = data_next(random) % 16;
    if (which < SP_COUNT_OF(specials)) return specials[which];
    return (float)((int64_t)(data_next(random) % 2001) - 1000) / 128;
}

TEST(all_functions_in_steps_are_one_step_of_the_same_bits)
{
    const uint64_t count = test_count(20000, 600);
    data_random random = {92};
    for (uint64_t i = 0; i < count; i++) {
        const sp_shape shapes[] = {SHAPE(2 + (int64_t)(data_next(&random) % 300)),
                                   SHAPE(3, 1 + (int64_t)(data_next(&random) % 50)),
                                   SHAPE(2, 3, 5, 7)};
        gate_case c = usual_case(functions[i % SP_COUNT_OF(functions)].nodes,
                                 &shapes[data_next(&random) % SP_COUNT_OF(shapes)]);
        c.has_specials = data_next(&random) % 2 == 0;
        if (data_next(&random) % 2 == 0) {
            c.numbers = (numbers){any_number(&random), any_number(&random), any_number(&random),
                                  any_number(&random), any_number(&random)};
        }
        check_gate(&c, i + 1, 1, "one step");
    }
}

TEST(more_than_a_tile_has_the_same_bits)
{
    const sp_shape x = SHAPE(3, 50001);
    for (size_t i = 0; i < SP_COUNT_OF(functions); i++) {
        const gate_case c = usual_case(functions[i].nodes, &x);
        check_gate(&c, 93 + i, 1, c.nodes[0]);
    }
}

typedef struct other_node {
    size_t node;
    const char *text;
    uint32_t gates;
} other_node;

static void check_others(const char *const *nodes, const other_node *others, size_t count)
{
    const sp_shape x = SHAPE(7, 40);
    for (size_t i = 0; i < count; i++) {
        gate_case c = usual_case(nodes, &x);
        c.node = others[i].node;
        c.other = others[i].text;
        check_gate(&c, 95 + i, others[i].gates, others[i].text);
    }
}

TEST(other_nodes_in_gelu_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Div a x > q", 0},     {0, "Mul x a > q", 0},     {0, "Div x list > q", 0},
        {0, "Div x image > q", 0}, {0, "Div image a > q", 0}, {0, "Div x given > q", 0},
        {1, "Tanh q > e", 0},      {1, "Erf x > e", 0},       {2, "Sub e b > s", 0},
        {2, "Mul e b > s", 0},     {2, "Add e list > s", 0},  {2, "Add e given > s", 0},
        {2, "Add q b > s", 0},     {2, "Add e e > s", 0},     {3, "Add x s > p", 0},
        {3, "Mul q s > p", 0},     {3, "Mul image s > p", 0}, {3, "Mul s s > p", 0},
        {3, "Mul list s > p", 0},  {3, "Mul x e > p", 0},     {4, "Div p c > y", 0},
        {4, "Mul p list > y", 0},  {4, "Mul p given > y", 0}, {4, "Mul p p > y", 0},
        {4, "Mul s c > y", 0},     {2, "Add b e > s", 1},     {3, "Mul s x > p", 1},
        {4, "Mul c p > y", 1}};
    check_others(gelu, others, SP_COUNT_OF(others));
}

TEST(other_nodes_in_gelu_by_tanh_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Mul a image > i", 0}, {0, "Mul given x > i", 0}, {0, "Mul list x > i", 0},
        {0, "Add a x > i", 0},     {0, "Div a x > i", 0},     {1, "Mul image i > j", 0},
        {1, "Mul i i > j", 0},     {1, "Add x i > j", 0},     {2, "Mul i j > k", 0},
        {2, "Mul image j > k", 0}, {2, "Mul x i > k", 0},     {2, "Mul x x > k", 0},
        {3, "Add image k > s", 0}, {3, "Add x j > s", 0},     {3, "Sub x k > s", 0},
        {3, "Add k k > s", 0},     {3, "Add x x > s", 0},     {4, "Mul given s > t", 0},
        {4, "Mul list s > t", 0},  {4, "Add low s > t", 0},   {4, "Mul low k > t", 0},
        {5, "Sigmoid t > e", 0},   {5, "Tanh s > e", 0},      {6, "Add given e > v", 0},
        {6, "Mul b e > v", 0},     {6, "Add list e > v", 0},  {7, "Mul given v > p", 0},
        {7, "Add c v > p", 0},     {7, "Mul c e > p", 0},     {8, "Mul image p > y", 0},
        {8, "Add x p > y", 0},     {8, "Mul p p > y", 0},     {8, "Mul x v > y", 0},
        {0, "Mul x a > i", 1},     {1, "Mul i x > j", 1},     {2, "Mul j x > k", 1},
        {3, "Add k x > s", 1},     {4, "Mul s low > t", 1},   {6, "Add e b > v", 1},
        {7, "Mul v c > p", 1},     {8, "Mul p x > y", 1}};
    check_others(tanh_gelu, others, SP_COUNT_OF(others));
}

TEST(other_nodes_in_hard_swish_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Sub x a > s", 0},     {0, "Mul x a > s", 0},         {0, "Add x list > s", 0},
        {0, "Add x image > s", 0}, {0, "Add x given > s", 0},     {0, "Add image a > s", 0},
        {1, "Relu s > g", 0},      {1, "Clip x low high > g", 0}, {1, "Clip s low given > g", 0},
        {2, "Add x g > p", 0},     {2, "Mul image g > p", 0},     {2, "Mul s g > p", 0},
        {2, "Mul list g > p", 0},  {2, "Mul g g > p", 0},         {3, "Div c p > y", 0},
        {3, "Mul p c > y", 0},     {3, "Div p list > y", 0},      {3, "Div p given > y", 0},
        {3, "Div g c > y", 0},     {0, "Add a x > s", 1},         {2, "Mul g x > p", 1},
        {1, "Clip s low > g", 1}};
    check_others(swish, others, SP_COUNT_OF(others));
}

TEST(other_nodes_in_hard_swish_by_hard_sigmoid_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Sigmoid x > g", 0},  {0, "Elu x > g", 0},       {0, "HardSigmoid image > g", 0},
        {1, "Add x g > y", 0},    {1, "Div x g > y", 0},     {1, "Mul image g > y", 0},
        {1, "Mul list g > y", 0}, {1, "Mul g given > y", 0}, {1, "Mul g g > y", 0},
        {1, "Mul x x > y", 0},    {1, "Mul g x > y", 1}};
    check_others(hard, others, SP_COUNT_OF(others));
}

TEST(other_nodes_in_mish_keep_it_in_steps)
{
    static const other_node others[] = {
        {0, "Softsign x > s", 0},  {0, "Softplus image > s", 0}, {1, "Sigmoid s > t", 0},
        {1, "Tanh x > t", 0},      {1, "Tanh image > t", 0},     {2, "Add x t > y", 0},
        {2, "Div x t > y", 0},     {2, "Mul image t > y", 0},    {2, "Mul list t > y", 0},
        {2, "Mul t given > y", 0}, {2, "Mul t t > y", 0},        {2, "Mul x s > y", 0},
        {2, "Mul s t > y", 0},     {2, "Mul t x > y", 1}};
    check_others(mish, others, SP_COUNT_OF(others));
}

static void check_readers(const char *const *nodes, const char *values)
{
    const sp_shape x = SHAPE(7, 40);
    for (; *values != '\0'; values++) {
        const char name[2] = {*values, '\0'};
        char more[32];
        gate_case c = usual_case(nodes, &x);
        c.output = name;
        check_gate(&c, 96, 0, "an output");
        (void)snprintf(more, sizeof more, "Exp %s > more", name);
        c.more = more;
        c.output = "more";
        check_gate(&c, 97, 0, more);
    }
    gate_case c = usual_case(nodes, &x);
    c.more = "Exp x > more"; /* others may read x */
    c.output = "more";
    check_gate(&c, 98, 1, "x");
}

TEST(values_that_others_read_keep_it_in_steps)
{
    check_readers(gelu, "qesp");
    check_readers(swish, "sgp");
    check_readers(tanh_gelu, "ijkstevp");
    check_readers(hard, "g");
    check_readers(mish, "st");
}

TEST(two_in_a_row_and_an_activation_behind_are_fused_apart)
{
    static const char *const nodes[] = {
        "Add x a > s", "Clip s low high > g", "Mul x g > p", "Div p c > t",
        "Div t a > q", "Erf q > e",           "Add e b > v", "Mul t v > w",
        "Mul w c > u", "Relu u > y",          NULL};
    const gate_case c = {.nodes = nodes, .numbers = swish_numbers, .x = SHAPE(7, 40)};
    check_gate(&c, 99, 2, "both");
}

/* Between convolutions: on images in blocks, whose last lanes have no defined value. */
TEST(functions_of_images_in_blocks_have_the_same_bits)
{
    static const char *const nodes[][9] = {
        {"Conv x image > t", "Add t a > s", "Clip s low high > g", "Mul t g > p", "Div p c > u",
         "Conv u image > y", NULL},
        {"Conv x image > t", "Div t a > q", "Erf q > e", "Add e b > s", "Mul t s > p",
         "Mul p c > u", "Conv u image > y", NULL},
        {"Conv x image > t", "HardSigmoid t > g", "Mul t g > u", "Conv u image > y", NULL},
        {"Conv x image > t", "Softplus t > s", "Tanh s > e", "Mul e t > u", "Conv u image > y",
         NULL}};
    static const numbers *const of[] = {&other_numbers, &gelu_numbers, &hard_numbers,
                                        &hard_numbers};
    for (size_t i = 0; i < SP_COUNT_OF(nodes); i++) {
        const gate_case c = {.nodes = nodes[i], .numbers = *of[i], .x = SHAPE(30, 30, 1, 1)};
        check_gate(&c, 101 + i, 1, "in blocks");
        CHECK_EQ_INT(gate_count, 30 * 32);
    }
}

/* An activation of the step in front of it, in blocks and not; with other numbers it stays. */
TEST(hard_swish_behind_a_step_that_applies_activations_is_one)
{
    static const char *const nodes[][7] = {{"Sub list x > t", "Add t a > s", "Clip s low high > g",
                                            "Mul t g > p", "Div p c > y", NULL},
                                           {"Conv x image > t", "Add t a > s",
                                            "Clip s low high > g", "Mul t g > p", "Div p c > u",
                                            "Conv u image > y", NULL}};
    numbers of[] = {swish_numbers, swish_numbers, swish_numbers, swish_numbers, swish_numbers};
    of[1].a = 2;
    of[2].c = 5;
    of[3].low = -0.0f;
    of[4].high = 7;
    for (size_t n = 0; n < SP_COUNT_OF(nodes); n++) {
        for (size_t i = 0; i < SP_COUNT_OF(of); i++) {
            const sp_shape x = n == 0 ? SHAPE(30, 77) : SHAPE(30, 30, 1, 1);
            const gate_case c = {
                .nodes = nodes[n], .numbers = of[i], .x = x, .has_specials = n == 0};
            check_gate(&c, 105 + i, i == 0 ? 0 : 1, "behind a step");
        }
    }
}

TEST(the_step_has_the_names_of_its_nodes)
{
    const sp_shape x = SHAPE(8, 32);
    const gate_case c = usual_case(swish, &x);
    const sp_graph *graph = load(&c);
    const sp_graph_plan *plan = compile(graph, &x, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    REQUIRE_EQ_INT(plan->step_count, 1);
    CHECK_EQ_STR(plan->steps[0].node_name, "s");
    CHECK_EQ_STR(plan->steps[0].op_name, "Add+Clip+Mul+Div");
    CHECK_EQ_U64(plan->arena_bytes, 0);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

TEST_MAIN
