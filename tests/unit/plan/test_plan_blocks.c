/* SPDX-License-Identifier: Apache-2.0 */
/* Images in blocks of channels: random graphs of what is between convolutions have the bits of the
 * plan without blocks, on every instruction set, and the steps that are meant to be blocked are. */
#include "plan/plan_blocks.h"

#include <stdio.h>
#include <string.h>

#include "support/image_graph.h"

/* ---- the same run, blocked and not ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_plan_input *input,
                                    sp_cpu_isa isa, bool is_blocked)
{
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = input,
                                     .input_count = 1,
                                     .is_blocked = is_blocked,
                                     .pools_any_size = true};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* Steps of all blocked plans: by kernel; convolutions with more than their own. */
static uint64_t used[SP_KERNEL_COUNT], with_norm, with_other, with_offsets;

static void count_steps(const sp_graph_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        used[step->kernel]++;
        const bool is_conv = step->kernel == SP_KERNEL_ID_conv_blocked_f32 ||
                             step->kernel == SP_KERNEL_ID_depthwise_blocked_f32;
        const sp_blocked_constants *k = step->constants;
        with_norm += is_conv && k->has_norm;
        with_other += is_conv && k->has_other;
        with_offsets += is_conv && k->has_offsets;
    }
    for (uint32_t i = 0; i < plan->packing_count; i++) used[plan->packings[i].kernel]++;
}

/* Has every kernel, and each of what a convolution can have, been in a plan? */
static bool has_seen_all(void)
{
    bool has = with_norm > 0 && with_other > 0 && with_offsets > 0;
#define HAS_SEEN(kernel) has = has && used[SP_KERNEL_ID_##kernel] > 0;
    SP_BLOCKED_KERNEL_LIST(HAS_SEEN)
#undef HAS_SEEN
    return has;
}

static bool has_other_bits; /* a blocked plan */

static void check_outputs(const sp_graph_plan *plan, const sp_array *x, const sp_array *want,
                          uint64_t seed)
{
    sp_array got[2] = {0};
    REQUIRE_OK(data_run_plan(plan, x, got));
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const bool is_same = memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
        CHECK(is_same);
        has_other_bits = has_other_bits || !is_same;
        if (!is_same) test_note("graph %llu, output %u", (unsigned long long)seed, i);
        sp__array_deinit(&got[i]);
    }
}

/* Destroys the graph. */
static void check_graph(image_graph *maker, const sp_graph *graph, const sp_plan_input *input,
                        uint64_t seed)
{
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&maker->random, &input->shape), want[2] = {0};
    image_graph_add_specials(maker, x.data, (size_t)(x.bytes / sizeof(float)));
    const sp_graph_plan *plain = compile(graph, input, SP_CPU_PORTABLE, false);
    REQUIRE(plain != NULL);
    REQUIRE_OK(data_run_plan(plain, &x, want));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_graph_plan *blocked = compile(graph, input, (sp_cpu_isa)isa, true);
        REQUIRE(blocked != NULL);
        count_steps(blocked);
        check_outputs(blocked, &x, want, seed);
        sp__plan_destroy(blocked);
    }
    for (uint32_t i = 0; i < plain->output_count; i++) sp__array_deinit(&want[i]);
    sp__plan_destroy(plain);
    sp__array_deinit(&x);
    sp__graph_destroy(graph);
}

TEST(random_graphs_have_the_bits_of_plans_without_blocks)
{
    const uint64_t count = test_count(20000, 400);
    /* Some are rare: as many graphs as it takes, up to the quick count. */
    for (uint64_t seed = 1; seed <= count || (!has_seen_all() && seed <= 400); seed++) {
        if (has_other_bits) return;
        image_graph maker;
        sp_plan_input input = {.dtype = SP_F32};
        const sp_graph *graph = image_graph_make(&maker, seed, &input.shape);
        check_graph(&maker, graph, &input, seed);
    }
#define CHECK_USED(kernel) CHECK(used[SP_KERNEL_ID_##kernel] > 0);
    SP_BLOCKED_KERNEL_LIST(CHECK_USED)
#undef CHECK_USED
    CHECK(with_norm > 0);
    CHECK(with_other > 0);
    CHECK(with_offsets > 0);
}

/* A convolution of `x` by random filters of that shape. */
static void add_conv(image_graph *maker, const char *x, const int64_t dims[4], const char *y)
{
    char w[16], inputs[64];
    image_graph_add_weight(maker, dims, 4, false, w);
    (void)snprintf(inputs, sizeof inputs, "%s %s", x, w);
    add_node(&maker->graph, make_node("Conv", inputs, y));
}

/* The sizes "sizes", for Reshape and Split. */
static void add_sizes(image_graph *maker, const int64_t *sizes, int64_t count)
{
    writer tensor = make_tensor("sizes", 7, &count, 1, sizes, (size_t)count * sizeof *sizes);
    write_message(&maker->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* The plan has that many steps with the kernel; the bits are those without blocks. Destroys the
 * graph. */
static void check_steps(image_graph *maker, const sp_plan_input *input, sp_kernel_id kernel,
                        uint64_t expected)
{
    const sp_graph *graph = image_graph_load(maker);
    REQUIRE(graph != NULL);
    const sp_graph_plan *plan = compile(graph, input, SP_CPU_PORTABLE, true);
    REQUIRE(plan != NULL);
    uint64_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) count += plan->steps[s].kernel == kernel;
    CHECK_EQ_U64(count, expected);
    sp__plan_destroy(plan);
    check_graph(maker, graph, input, 0);
}

/* More parts than one step can read: each step writes some of the output. */
TEST(a_join_of_many_images_keeps_all_of_them)
{
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(2, 16, 2, 3)};
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    char parts[64] = "y";
    add_conv(&maker, "x", (int64_t[]){16, 16, 1, 1}, "y");
    for (int i = 0; i < SP_CONCAT_MAX_PARTS; i++) {
        const size_t len = strlen(parts);
        (void)snprintf(parts + len, sizeof parts - len, "%s", i % 2 == 0 ? " x" : " y");
    }
    writer join = make_node("Concat", parts, "z");
    add_attribute_int(&join, "axis", 1);
    add_node(&maker.graph, join);
    add_output(&maker.graph, "z");
    check_graph(&maker, image_graph_load(&maker), &input, 0);
}

/* In blocks an image of one channel has 16 times its bytes. */
TEST(a_view_of_few_channels_is_read_as_it_is)
{
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(1, 16, 8, 8)};
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_sizes(&maker, (int64_t[]){1, 1, 32, 32}, 4);
    add_conv(&maker, "x", (int64_t[]){16, 16, 1, 1}, "y");
    add_node(&maker.graph, make_node("Reshape", "y sizes", "one"));
    add_conv(&maker, "one", (int64_t[]){16, 1, 3, 3}, "z");
    add_output(&maker.graph, "z");
    check_steps(&maker, &input, SP_KERNEL_ID_channels_block, 1); /* of x */
}

TEST(a_split_of_whole_channels_moves_nothing)
{
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(2, 16, 3, 5)};
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_sizes(&maker, (int64_t[]){11, 21}, 2);
    add_conv(&maker, "x", (int64_t[]){32, 16, 1, 1}, "y");
    writer node = make_node("Split", "y sizes", "a b");
    add_attribute_int(&node, "axis", 1);
    add_node(&maker.graph, node);
    add_conv(&maker, "b", (int64_t[]){16, 21, 1, 1}, "z");
    add_output(&maker.graph, "z");
    check_steps(&maker, &input, SP_KERNEL_ID_split, 0);
}

/* A batch that is reshaped between a convolution and a normalisation: the lists of that are of
 * other channels than the filters. */
static void check_reshaped_norm(int64_t images, bool is_depthwise)
{
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(images, 32, 3, 5)};
    const int64_t filters = images == 1 ? 64 : 32, channels = 96 - filters;
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_sizes(&maker, (int64_t[]){3 - images, channels, 3, 5}, 4);
    add_conv(&maker, "x", (int64_t[]){filters, 32, 1, 1}, is_depthwise ? "v" : "y");
    char w[16], lists[4][16], node_inputs[96];
    if (is_depthwise) {
        image_graph_add_weight(&maker, (int64_t[]){filters, 1, 1, 1}, 4, false, w);
        (void)snprintf(node_inputs, sizeof node_inputs, "v %s", w);
        writer node = make_node("Conv", node_inputs, "y");
        add_attribute_int(&node, "group", filters);
        add_node(&maker.graph, node);
    }
    add_node(&maker.graph, make_node("Reshape", "y sizes", "r"));
    for (int i = 0; i < 4; i++) image_graph_add_weight(&maker, &channels, 1, i == 3, lists[i]);
    (void)snprintf(node_inputs, sizeof node_inputs, "r %s %s %s %s", lists[0], lists[1], lists[2],
                   lists[3]);
    add_node(&maker.graph, make_node("BatchNormalization", node_inputs, "z"));
    add_output(&maker.graph, "z");
    check_graph(&maker, image_graph_load(&maker), &input, 0);
}

TEST(a_normalisation_of_a_reshaped_batch_has_its_own_channels)
{
    for (int64_t images = 1; images <= 2; images++) {
        check_reshaped_norm(images, false);
        check_reshaped_norm(images, true);
    }
}

/* A transposed convolution of an image [2, channels, 5, 13]. */
typedef struct transposed_case {
    int64_t channels, filters, kernel[2], stride[2], groups;
    bool has_bias;
    sp_kernel_id step; /* the kernel that has the products */
} transposed_case;

static void check_transposed(const transposed_case *of, uint64_t seed)
{
    image_graph maker = {.random = {seed}, .has_specials = seed % 2 == 0};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(2, of->channels, 5, 13)};
    const int64_t filters = of->filters * of->groups;
    char w[16], b[16], inputs[64];
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    image_graph_add_weight(
        &maker, (int64_t[]){of->channels, of->filters, of->kernel[0], of->kernel[1]}, 4, false, w);
    if (of->has_bias) image_graph_add_weight(&maker, &filters, 1, false, b);
    (void)snprintf(inputs, sizeof inputs, of->has_bias ? "x %s %s" : "x %s", w, b);
    writer node = make_node("ConvTranspose", inputs, "y");
    add_attribute_ints(&node, "strides", of->stride, 2);
    add_attribute_int(&node, "group", of->groups);
    add_node(&maker.graph, node);
    add_node(&maker.graph, make_node("Relu", "y", "z"));
    add_output(&maker.graph, "z");
    check_steps(&maker, &input, of->step, 1);
}

/* Lanes of whole blocks, of blocks with gaps; channels in blocks; rows; segments of 128 and of 32
 * channels, and parts of one. */
TEST(a_transposed_convolution_without_overlap_is_a_pointwise_one)
{
    const transposed_case cases[] = {
        {24, 24, {2, 2}, {2, 2}, 1, true, SP_KERNEL_ID_conv_blocked_f32},
        {200, 16, {2, 2}, {2, 2}, 1, true, SP_KERNEL_ID_conv_blocked_f32},
        {70, 32, {3, 3}, {3, 3}, 1, false, SP_KERNEL_ID_conv_blocked_f32},
        {8, 16, {1, 2}, {1, 2}, 1, false, SP_KERNEL_ID_conv_blocked_f32},
        {20, 5, {3, 2}, {3, 2}, 1, true, SP_KERNEL_ID_conv_blocked_f32},
        {40, 3, {3, 3}, {3, 3}, 1, false, SP_KERNEL_ID_conv_blocked_f32},
        {24, 1, {2, 2}, {2, 2}, 1, true, SP_KERNEL_ID_conv_rows_f32},
        {140, 3, {2, 2}, {2, 2}, 1, false, SP_KERNEL_ID_conv_rows_f32},
        {24, 24, {3, 2}, {2, 2}, 1, true, SP_KERNEL_ID_conv_transpose_f32},
        {24, 24, {2, 1}, {2, 2}, 1, true, SP_KERNEL_ID_conv_transpose_f32},
        {24, 12, {2, 2}, {2, 2}, 2, true, SP_KERNEL_ID_conv_transpose_f32}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        check_transposed(&cases[i], 2 * i + 1);
        check_transposed(&cases[i], 2 * i + 2);
    }
}

/* HardSwish, as PaddleOCR exports it, or with another number. Once a graph. */
static void add_gate(image_graph *maker, float six, const char *x, const char *y)
{
    const float numbers[3] = {3, 0, six};
    const char *const names[3] = {"three", "zero", "six"};
    char inputs[64];
    for (int i = 0; i < 3; i++) {
        writer tensor = make_tensor(names[i], 1, NULL, 0, &numbers[i], sizeof *numbers);
        write_message(&maker->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    }
    (void)snprintf(inputs, sizeof inputs, "%s three", x);
    add_node(&maker->graph, make_node("Add", inputs, "g0"));
    add_node(&maker->graph, make_node("Clip", "g0 zero six", "g1"));
    (void)snprintf(inputs, sizeof inputs, "%s g1", x);
    add_node(&maker->graph, make_node("Mul", inputs, "g2"));
    add_node(&maker->graph, make_node("Div", "g2 six", y));
}

/* Of one image in 2 blocks, between two convolutions; a third one reads the result `read`, if there
 * is such. */
static void check_chain(uint64_t seed, const char *const *ops, int count, const char *read,
                        uint64_t chains)
{
    image_graph maker = {.random = {seed}, .has_specials = seed % 2 == 0};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(1, 16, 5, 7)};
    const int64_t channels = 28;
    char lists[4][16], inputs[96], from[16] = "c", to[16];
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_conv(&maker, "x", (int64_t[]){channels, 16, 1, 1}, "c");
    for (int i = 0; i < count; i++) {
        (void)snprintf(to, sizeof to, "t%d", i);
        if (strcmp(ops[i], "Gate") == 0) {
            add_gate(&maker, seed % 3 == 0 ? 5 : 6, from, to);
            (void)snprintf(from, sizeof from, "%s", to);
            continue;
        }
        if (strcmp(ops[i], "BatchNormalization") == 0) {
            for (int k = 0; k < 4; k++) {
                image_graph_add_weight(&maker, &channels, 1, k == 3, lists[k]);
            }
            (void)snprintf(inputs, sizeof inputs, "%s %s %s %s %s", from, lists[0], lists[1],
                           lists[2], lists[3]);
        } else if (strcmp(ops[i], "Relu") == 0 || strcmp(ops[i], "Sigmoid") == 0 ||
                   strcmp(ops[i], "Abs") == 0) {
            (void)snprintf(inputs, sizeof inputs, "%s", from);
        } else {
            const bool is_number = data_next(&maker.random) % 2 == 0;
            const int64_t dims[4] = {1, is_number ? 1 : channels, 1, 1};
            image_graph_add_weight(&maker, dims, 4, false, lists[0]);
            const bool is_first = data_next(&maker.random) % 2 == 0;
            (void)snprintf(inputs, sizeof inputs, "%s %s", is_first ? lists[0] : from,
                           is_first ? from : lists[0]);
        }
        add_node(&maker.graph, make_node(ops[i], inputs, to));
        (void)snprintf(from, sizeof from, "%s", to);
    }
    add_conv(&maker, from, (int64_t[]){16, channels, 1, 1}, "z");
    add_output(&maker.graph, "z");
    if (read != NULL) add_conv(&maker, read, (int64_t[]){16, channels, 1, 1}, "also");
    if (read != NULL) add_output(&maker.graph, "also");
    check_steps(&maker, &input, SP_KERNEL_ID_channel_chain_f32, chains);
}

TEST(elementwise_steps_between_convolutions_are_one_step)
{
    static const char *const
        scaled[] = {"Mul", "Add", "Relu", "Div", "Sub"},
        *const normed[] = {"Abs", "BatchNormalization", "Mul", "Add", "Relu"},
        *const many[] = {"Mul", "Add", "Mul", "Add", "Div", "Sub", "Mul", "Add", "Mul", "Add"},
        *const ended[] = {"Mul", "Sigmoid", "Add", "Mul", "Sigmoid"},
        *const gated[] = {"Mul", "Add", "Gate", "Mul", "Add"}, *const single[] = {"Mul", "Relu"};
    for (uint64_t seed = 1; seed <= 40; seed++) {
        check_chain(seed, scaled, 5, NULL, 1);
        check_chain(seed, many, 10, NULL, 2); /* 8 operations, and 2 */
        /* A product with its activation; a sum and a product with theirs. */
        check_chain(seed, ended, 5, NULL, 1);
        check_chain(seed, gated, 5, NULL, 1);
        check_chain(seed, single, 2, NULL, 0);
        check_chain(seed, normed, 5, NULL, 1);
        check_chain(seed, many, 3, "t0", 1);       /* a product that stays, a sum and a product */
        check_chain(seed, normed + 1, 4, NULL, 1); /* the convolution normalises */
    }
}

/* ---- shapes of hostile models ---- */

/* Compiles only: such a run is refused, or needs more memory than there is. */
static void check_compiles(image_graph *maker, const sp_plan_input *input)
{
    const sp_graph *graph = image_graph_load(maker);
    REQUIRE(graph != NULL);
    const sp_graph_plan *plan = compile(graph, input, SP_CPU_PORTABLE, true);
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

static void add_list(image_graph *maker, const char *name, int64_t value)
{
    const int64_t count = 1;
    writer tensor = make_tensor(name, 7, &count, 1, &value, sizeof value);
    write_message(&maker->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* Of which padding makes outputs. */
TEST(an_image_without_pixels_stays_as_it_is)
{
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(1, 16, 4, 4)};
    const int64_t pads[] = {1, 0, 1, 0};
    char w[16], inputs[64];
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_list(&maker, "zero", 0);
    add_list(&maker, "two", 2);
    add_node(&maker.graph, make_node("Slice", "x zero zero two", "s"));
    image_graph_add_weight(&maker, (int64_t[]){16, 16, 1, 1}, 4, false, w);
    (void)snprintf(inputs, sizeof inputs, "s %s", w);
    writer conv = make_node("Conv", inputs, "c");
    add_attribute_ints(&conv, "pads", pads, 4);
    add_node(&maker.graph, conv);
    writer gather = make_node("Gather", "s zero", "g");
    add_attribute_int(&gather, "axis", 2);
    add_node(&maker.graph, gather);
    add_output(&maker.graph, "c");
    add_output(&maker.graph, "g");
    check_compiles(&maker, &input);
}

/* The time and memory of the pass follow the graph, not the number of planes. */
TEST(billions_of_planes_are_not_looked_at)
{
    const int64_t images = (int64_t)1 << 28, channels = 32;
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(images, 16, 1, 1)};
    char lists[4][16], inputs[96];
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_sizes(&maker, (int64_t[]){images / 2, channels, 1, 1}, 4);
    add_conv(&maker, "x", (int64_t[]){16, 16, 1, 1}, "y");
    add_node(&maker.graph, make_node("Reshape", "y sizes", "r"));
    for (int i = 0; i < 4; i++) image_graph_add_weight(&maker, &channels, 1, i == 3, lists[i]);
    (void)snprintf(inputs, sizeof inputs, "r %s %s %s %s", lists[0], lists[1], lists[2], lists[3]);
    add_node(&maker.graph, make_node("BatchNormalization", inputs, "z"));
    add_output(&maker.graph, "z");
    check_compiles(&maker, &input);
}

TEST(a_join_of_billions_of_channels_is_a_copy)
{
    const int64_t images = (int64_t)1 << 26;
    image_graph maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(images, 16, 1, 1)};
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    add_sizes(&maker, (int64_t[]){1, images * 16, 1, 1}, 4);
    add_conv(&maker, "x", (int64_t[]){16, 16, 1, 1}, "y");
    add_node(&maker.graph, make_node("Reshape", "y sizes", "r"));
    writer join = make_node("Concat", "r r", "z");
    add_attribute_int(&join, "axis", 1);
    add_node(&maker.graph, join);
    add_output(&maker.graph, "z");
    check_compiles(&maker, &input);
}

/* A table of a device that has the kernels of images as they are. */
TEST(a_blocked_step_stands_for_the_step_that_other_devices_have)
{
    static const struct {
        sp_kernel_id blocked, plain;
    } cases[] = {{SP_KERNEL_ID_conv_blocked_f32, SP_KERNEL_ID_conv_f32},
                 {SP_KERNEL_ID_depthwise_blocked_f32, SP_KERNEL_ID_conv_depthwise_f32},
                 {SP_KERNEL_ID_max_pool_blocked_f32, SP_KERNEL_ID_max_pool_f32},
                 {SP_KERNEL_ID_average_pool_blocked_f32, SP_KERNEL_ID_average_pool_f32},
                 {SP_KERNEL_ID_mean_blocked_f32, SP_KERNEL_ID_reduce_f32},
                 {SP_KERNEL_ID_norm_blocked_f32, SP_KERNEL_ID_batch_norm_f32},
                 {SP_KERNEL_ID_relu_f32, SP_KERNEL_ID_relu_f32}};
    static sp_kernel table[SP_KERNEL_COUNT];
    const sp_blocked_constants conv = {0}, normed = {.has_norm = true};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        CHECK(!sp__blocked_is_there(table, cases[i].blocked, &conv));
        table[cases[i].plain].run = sp__cpu_kernels(SP_CPU_PORTABLE)[cases[i].plain].run;
        CHECK(sp__blocked_is_there(table, cases[i].blocked, &conv));
    }
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_conv_pool_blocked_f32, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channels_block, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channels_unblock, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channels_move, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_conv_blocked_f32, &normed));
    table[SP_KERNEL_ID_max_pool_f32].run = NULL;
    CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_conv_pool_blocked_f32, &conv));
    table[SP_KERNEL_ID_batch_norm_f32].run = NULL;
    CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_conv_blocked_f32, &normed));
    for (int op = SP_ELEMENT_ADD; op <= SP_ELEMENT_DIV_INTO; op++) {
        const sp_channel_op_constants k = {.op = (uint8_t)op};
        CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_channel_op_f32, &k));
    }
    const sp_channel_chain_constants chain = {.count = 3,
                                              .ops = {{.op = SP_ELEMENT_CLIP_GATE},
                                                      {.op = SP_ACTIVATION_HARD_SWISH},
                                                      {.op = SP_ELEMENT_SUB_FROM}}};
    CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_channel_chain_f32, &chain));
    const sp_kernel_id plain[] = {SP_KERNEL_ID_add_f32, SP_KERNEL_ID_sub_f32, SP_KERNEL_ID_mul_f32,
                                  SP_KERNEL_ID_div_f32};
    for (size_t i = 0; i < SP_COUNT_OF(plain); i++) {
        table[plain[i]].run = sp__cpu_kernels(SP_CPU_PORTABLE)[plain[i]].run;
    }
    for (int op = SP_ELEMENT_ADD; op <= SP_ELEMENT_DIV_INTO; op++) {
        const sp_channel_op_constants k = {.op = (uint8_t)op};
        CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channel_op_f32, &k));
    }
    CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_channel_chain_f32, &chain));
    table[SP_KERNEL_ID_clip_gate_f32].run = table[SP_KERNEL_ID_sub_f32].run;
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channel_chain_f32, &chain));
}

TEST_MAIN
