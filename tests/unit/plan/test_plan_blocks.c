/* SPDX-License-Identifier: Apache-2.0 */
/* Images in blocks of channels: random graphs of what is between convolutions have the bits of the
 * plan without blocks, on every instruction set, and the steps that are meant to be blocked are. */
#include "plan/plan_blocks.h"

#include <stdio.h>
#include <string.h>

#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- a random graph ---- */

enum { MAX_VALUES = 24 };

/* A value of shape [images, channels, height, width]. */
typedef struct image {
    char name[16];
    int64_t channels, height, width;
} image;

typedef struct graph_maker {
    data_random random;
    writer graph;
    image values[MAX_VALUES];
    int count, weights;
    int64_t images;
    bool has_specials; /* infinities and NaNs among the numbers */
} graph_maker;

static int64_t pick(graph_maker *g, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(&g->random) % (uint64_t)(high - low + 1));
}

static bool one_in(graph_maker *g, int64_t n)
{
    return pick(g, 1, n) == 1;
}

static void add_specials(graph_maker *g, float *values, size_t count)
{
    static const float specials[] = {__builtin_inff(), -__builtin_inff(), -0.0f, 1e-42f, 3e38f};
    for (size_t i = 0; g->has_specials && i < count; i += 1 + (size_t)pick(g, 20, 400)) {
        values[i] = one_in(g, 4) ? __builtin_nanf("") : specials[pick(g, 0, 4)];
    }
}

/* A weight of that shape; `is_positive` for variances. */
static void add_weight(graph_maker *g, const int64_t *dims, uint32_t rank, bool is_positive,
                       char name[16])
{
    static float values[1 << 18];
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    REQUIRE(count <= SP_COUNT_OF(values));
    data_fill(&g->random, values, count);
    for (size_t i = 0; i < count && is_positive; i++) values[i] = values[i] * values[i] + 0.1f;
    if (!is_positive) add_specials(g, values, count);
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, dims, rank, values, count * sizeof(float));
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static image *new_value(graph_maker *g, const image *from)
{
    image *value = &g->values[g->count];
    *value = *from;
    (void)snprintf(value->name, sizeof value->name, "v%d", g->count++);
    return value;
}

static const image *any_value(graph_maker *g)
{
    return &g->values[pick(g, g->count > 4 ? g->count - 4 : 0, g->count - 1)];
}

/* ---- nodes ---- */

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads)
{
    return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

/* Adds strides, dilations and pads of a window that fits, and sets the size of its outputs. */
static void add_window(graph_maker *g, writer *node, const int64_t kernel[2], bool is_pool,
                       image *to)
{
    int64_t strides[2], dilations[2], pads[4], *sizes[2] = {&to->height, &to->width};
    for (int i = 0; i < 2; i++) {
        const int64_t most = is_pool ? kernel[i] - 1 : kernel[i];
        strides[i] = one_in(g, 3) ? pick(g, 1, 3) : 1;
        dilations[i] = one_in(g, 4) ? 2 : 1;
        pads[i] = pick(g, 0, most);
        pads[i + 2] = pick(g, 0, most);
        while (out_size(*sizes[i], kernel[i], strides[i], dilations[i], pads[i] + pads[i + 2]) <
                   1 ||
               *sizes[i] + pads[i] + pads[i + 2] < (kernel[i] - 1) * dilations[i] + 1) {
            if (dilations[i] > 1) dilations[i] = 1;
            else pads[i + 2]++;
        }
        *sizes[i] = out_size(*sizes[i], kernel[i], strides[i], dilations[i], pads[i] + pads[i + 2]);
    }
    add_attribute_ints(node, "strides", strides, 2);
    add_attribute_ints(node, "dilations", dilations, 2);
    add_attribute_ints(node, "pads", pads, 4);
}

static void add_conv(graph_maker *g)
{
    const image from = *any_value(g);
    const int64_t kinds[] = {1, 3, 5};
    const bool is_square = !one_in(g, 3), is_depthwise = one_in(g, 3);
    const int64_t first = kinds[pick(g, 0, 2)];
    const int64_t kernel[2] = {first, is_square ? first : pick(g, 1, 7)};
    const int64_t groups = is_depthwise              ? from.channels
                           : from.channels % 32 == 0 ? pick(g, 1, 2)
                                                     : 1;
    const int64_t sizes[] = {1, 12, 16, 24, 32, 33, 48, 64};
    int64_t filters = is_depthwise ? from.channels : sizes[pick(g, 0, 7)];
    if (filters % groups != 0) filters = 32;
    image to = from;
    char w[16], b[16], inputs[64];
    add_weight(g, (int64_t[]){filters, from.channels / groups, kernel[0], kernel[1]}, 4, false, w);
    const bool has_bias = one_in(g, 2);
    if (has_bias) add_weight(g, &filters, 1, false, b);
    (void)snprintf(inputs, sizeof inputs, "%s %s %s", from.name, w, has_bias ? b : "");
    if (!has_bias) inputs[strlen(inputs) - 1] = '\0';
    to.channels = filters;
    writer node = make_node("Conv", inputs, new_value(g, &to)->name);
    image *y = &g->values[g->count - 1];
    add_window(g, &node, kernel, false, y);
    add_attribute_int(&node, "group", groups);
    add_node(&g->graph, node);
}

/* An image and the convolution of it: one of them may be computed with the other. */
static void add_residual(graph_maker *g)
{
    const image from = *any_value(g);
    const int64_t size = one_in(g, 2) ? 1 : 3, pad = size / 2, pads[4] = {pad, pad, pad, pad};
    const int64_t depth = from.channels;
    char w[16], inputs[64];
    add_weight(g, (int64_t[]){depth, depth, size, size}, 4, false, w);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, w);
    const char *conv = new_value(g, &from)->name;
    writer node = make_node("Conv", inputs, conv);
    add_attribute_ints(&node, "pads", pads, 4);
    add_node(&g->graph, node);
    const bool is_first = one_in(g, 2);
    (void)snprintf(inputs, sizeof inputs, "%s %s", is_first ? conv : from.name,
                   is_first ? from.name : conv);
    add_node(&g->graph, make_node("Add", inputs, new_value(g, &from)->name));
}

static void add_pool(graph_maker *g)
{
    const image from = *any_value(g);
    const int64_t kernel[2] = {pick(g, 1, 3), pick(g, 1, 3)};
    image *to = new_value(g, &from);
    writer node = make_node("MaxPool", from.name, to->name);
    add_attribute_ints(&node, "kernel_shape", kernel, 2);
    add_window(g, &node, kernel, true, to);
    add_node(&g->graph, node);
}

static void add_norm(graph_maker *g)
{
    const image from = *any_value(g);
    char lists[4][16], inputs[96];
    for (int i = 0; i < 4; i++) add_weight(g, &from.channels, 1, i == 3, lists[i]);
    (void)snprintf(inputs, sizeof inputs, "%s %s %s %s %s", from.name, lists[0], lists[1], lists[2],
                   lists[3]);
    writer node = make_node("BatchNormalization", inputs, new_value(g, &from)->name);
    add_attribute_float(&node, "epsilon", 0.01f);
    add_node(&g->graph, node);
}

static void add_unary(graph_maker *g)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu",
                                      "Sqrt", "Neg",     "Abs",  "Exp",       "Softmax"};
    const image from = *any_value(g);
    const char *op = ops[pick(g, 0, 9)];
    add_node(&g->graph, make_node(op, from.name, new_value(g, &from)->name));
}

/* Another value of the same shape, if there is one. */
static const image *find_like(const graph_maker *g, const image *from)
{
    for (int i = g->count - 1; i >= 0; i--) {
        const image *other = &g->values[i];
        const bool is_like = other->channels == from->channels && other->height == from->height &&
                             other->width == from->width;
        if (is_like && strcmp(other->name, from->name) != 0) return other;
    }
    return from;
}

static void add_binary(graph_maker *g)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Div", "Max", "Min"};
    const image from = *any_value(g);
    char other[16], inputs[64];
    switch (pick(g, 0, 3)) {
    case 0:
        add_weight(g, (int64_t[]){1, from.channels, 1, 1}, 4, false, other);
        break;
    case 1:
        add_weight(g, (int64_t[]){1}, 1, false, other);
        break;
    case 2:
        add_weight(g, (int64_t[]){g->images, from.channels, 1, 1}, 4, false, other);
        break;
    default:
        (void)snprintf(other, sizeof other, "%s", find_like(g, &from)->name);
        break;
    }
    const bool is_first = one_in(g, 2);
    (void)snprintf(inputs, sizeof inputs, "%s %s", is_first ? other : from.name,
                   is_first ? from.name : other);
    add_node(&g->graph, make_node(ops[pick(g, 0, 5)], inputs, new_value(g, &from)->name));
}

static void add_concat(graph_maker *g)
{
    const image a = *any_value(g);
    const image *b = find_like(g, &a);
    char inputs[64];
    (void)snprintf(inputs, sizeof inputs, "%s %s", a.name, b->name);
    image to = a;
    to.channels += b->channels;
    if (to.channels > 128) return;
    writer node = make_node("Concat", inputs, new_value(g, &to)->name);
    add_attribute_int(&node, "axis", 1);
    add_node(&g->graph, node);
}

static void add_resize(graph_maker *g)
{
    const image from = *any_value(g);
    if (from.height * from.width > 2000) return;
    image to = from;
    char name[16], inputs[64];
    const float scales[4] = {1, 1, (float)pick(g, 1, 2), (float)pick(g, 1, 2)};
    const int64_t four = 4;
    to.height *= (int64_t)scales[2];
    to.width *= (int64_t)scales[3];
    (void)snprintf(name, sizeof name, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, &four, 1, scales, sizeof scales);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    (void)snprintf(inputs, sizeof inputs, "%s - %s", from.name, name);
    writer node = make_node("Resize", inputs, new_value(g, &to)->name);
    add_attribute_text(&node, "mode", "nearest");
    add_attribute_text(&node, "nearest_mode", "floor");
    add_attribute_text(&node, "coordinate_transformation_mode", "asymmetric");
    add_node(&g->graph, node);
}

/* One number for each channel, which the graph computes: squeeze and excite. */
static void add_scale(graph_maker *g)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Div"};
    const image from = *any_value(g);
    image one = from;
    one.height = one.width = 1;
    const char *mean = new_value(g, &one)->name;
    char inputs[64];
    add_node(&g->graph, make_node("GlobalAveragePool", from.name, mean));
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, mean);
    add_node(&g->graph, make_node(ops[pick(g, 0, 3)], inputs, new_value(g, &from)->name));
}

/* The same elements as images of other sizes: what reads them must not take them for blocks. */
static void add_view(graph_maker *g)
{
    const image from = *any_value(g);
    if (from.channels % 2 != 0) return;
    image to = from;
    to.channels /= 2;
    to.height *= 2;
    char name[16], inputs[64];
    const int64_t dims[4] = {g->images, to.channels, to.height, to.width}, four = 4;
    (void)snprintf(name, sizeof name, "w%d", g->weights++);
    writer tensor = make_tensor(name, 7, &four, 1, dims, sizeof dims);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, name);
    add_node(&g->graph, make_node("Reshape", inputs, new_value(g, &to)->name));
}

static void add_any(graph_maker *g)
{
    switch (pick(g, 0, 12)) {
    case 12:
        add_residual(g);
        return;
    case 10:
        add_resize(g);
        return;
    case 11:
        add_scale(g);
        return;
    case 0:
    case 1:
    case 2:
        add_conv(g);
        return;
    case 3:
        add_pool(g);
        return;
    case 4:
        add_norm(g);
        return;
    case 5:
    case 6:
        add_unary(g);
        return;
    case 7:
        add_concat(g);
        return;
    case 8:
        if (one_in(g, 3)) add_view(g);
        return;
    default:
        add_binary(g);
        return;
    }
}

static const sp_graph *load(graph_maker *g)
{
    writer model = make_model(&g->graph, 14);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

static const sp_graph *make_graph(graph_maker *g, uint64_t seed, sp_shape *x)
{
    const int64_t sizes[] = {1, 3, 16, 20, 32};
    *g = (graph_maker){.random = {seed}};
    g->images = pick(g, 1, 3);
    g->has_specials = one_in(g, 3);
    const image first = {.channels = sizes[pick(g, 0, 4)],
                         .height = one_in(g, 4) ? 1 : pick(g, 1, 20),
                         .width = one_in(g, 8) ? 1 : pick(g, 1, one_in(g, 6) ? 150 : 30)};
    new_value(g, &first);
    *x = (sp_shape){.rank = 4, .dims = {g->images, first.channels, first.height, first.width}};
    add_input(&g->graph, "v0", 1, x->dims, 4);
    add_conv(g);
    const int nodes = (int)pick(g, 1, 16);
    for (int i = 0; i < nodes && g->count < MAX_VALUES - 2; i++) add_any(g);
    add_output(&g->graph, g->values[g->count - 1].name);
    if (g->count > 2) add_output(&g->graph, g->values[pick(g, 1, g->count - 2)].name);
    return load(g);
}

/* ---- the same run, blocked and not ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_plan_input *input,
                                    sp_cpu_isa isa, bool is_blocked)
{
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = input,
                                     .input_count = 1,
                                     .is_blocked = is_blocked};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* Steps of all blocked plans: by kernel; convolutions with more than their own. */
static uint64_t used[SP_KERNEL_COUNT], with_norm, with_other;

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
    }
}

/* Has every kernel, and both fusions, been in a plan? */
static bool has_seen_all(void)
{
    bool has = with_norm > 0 && with_other > 0;
#define HAS_SEEN(kernel) has = has && used[SP_KERNEL_ID_##kernel] > 0;
    SP_BLOCKED_KERNEL_LIST(HAS_SEEN)
#undef HAS_SEEN
    return has;
}

static void check_outputs(const sp_graph_plan *plan, const sp_array *x, const sp_array *want,
                          uint64_t seed)
{
    sp_array got[2] = {0};
    REQUIRE_OK(data_run_plan(plan, x, got));
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const bool is_same = memcmp(got[i].data, want[i].data, (size_t)want[i].bytes) == 0;
        CHECK(is_same);
        if (!is_same) test_note("graph %llu, output %u", (unsigned long long)seed, i);
        sp__array_deinit(&got[i]);
    }
}

/* Destroys the graph. */
static void check_graph(graph_maker *maker, const sp_graph *graph, const sp_plan_input *input,
                        uint64_t seed)
{
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&maker->random, &input->shape), want[2] = {0};
    add_specials(maker, x.data, (size_t)(x.bytes / sizeof(float)));
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
        graph_maker maker;
        sp_plan_input input = {.dtype = SP_F32};
        const sp_graph *graph = make_graph(&maker, seed, &input.shape);
        check_graph(&maker, graph, &input, seed);
    }
#define CHECK_USED(kernel) CHECK(used[SP_KERNEL_ID_##kernel] > 0);
    SP_BLOCKED_KERNEL_LIST(CHECK_USED)
#undef CHECK_USED
    CHECK(with_norm > 0);
    CHECK(with_other > 0);
}

/* More parts than one step can read: each step writes some of the output. */
TEST(a_join_of_many_images_keeps_all_of_them)
{
    graph_maker maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(2, 16, 2, 3)};
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    char w[16], node_inputs[64], parts[64] = "y";
    add_weight(&maker, (int64_t[]){16, 16, 1, 1}, 4, false, w);
    (void)snprintf(node_inputs, sizeof node_inputs, "x %s", w);
    add_node(&maker.graph, make_node("Conv", node_inputs, "y"));
    for (int i = 0; i < SP_CONCAT_MAX_PARTS; i++) {
        const size_t len = strlen(parts);
        (void)snprintf(parts + len, sizeof parts - len, "%s", i % 2 == 0 ? " x" : " y");
    }
    writer join = make_node("Concat", parts, "z");
    add_attribute_int(&join, "axis", 1);
    add_node(&maker.graph, join);
    add_output(&maker.graph, "z");
    check_graph(&maker, load(&maker), &input, 0);
}

/* In blocks an image of one channel has 16 times its bytes. */
TEST(a_view_of_few_channels_is_read_as_it_is)
{
    graph_maker maker = {.random = {1}};
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(1, 16, 8, 8)};
    const int64_t view[4] = {1, 1, 32, 32}, four = 4;
    add_input(&maker.graph, "x", 1, input.shape.dims, 4);
    char w[16], v[16], node_inputs[64];
    add_weight(&maker, (int64_t[]){16, 16, 1, 1}, 4, false, w);
    add_weight(&maker, (int64_t[]){16, 1, 3, 3}, 4, false, v);
    writer sizes = make_tensor("sizes", 7, &four, 1, view, sizeof view);
    write_message(&maker.graph, GRAPH_INITIALIZER_FIELD, &sizes);
    (void)snprintf(node_inputs, sizeof node_inputs, "x %s", w);
    add_node(&maker.graph, make_node("Conv", node_inputs, "y"));
    add_node(&maker.graph, make_node("Reshape", "y sizes", "one"));
    (void)snprintf(node_inputs, sizeof node_inputs, "one %s", v);
    add_node(&maker.graph, make_node("Conv", node_inputs, "z"));
    add_output(&maker.graph, "z");
    const sp_graph *graph = load(&maker);
    REQUIRE(graph != NULL);
    const sp_graph_plan *plan = compile(graph, &input, SP_CPU_PORTABLE, true);
    REQUIRE(plan != NULL);
    uint64_t blocks = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        blocks += plan->steps[s].kernel == SP_KERNEL_ID_channels_block;
    }
    CHECK_EQ_U64(blocks, 1); /* of x */
    sp__plan_destroy(plan);
    check_graph(&maker, graph, &input, 0);
}

/* A table of a device that has the kernels of images as they are. */
TEST(a_blocked_step_stands_for_the_step_that_other_devices_have)
{
    static const struct {
        sp_kernel_id blocked, plain;
    } cases[] = {{SP_KERNEL_ID_conv_blocked_f32, SP_KERNEL_ID_conv_f32},
                 {SP_KERNEL_ID_depthwise_blocked_f32, SP_KERNEL_ID_conv_depthwise_f32},
                 {SP_KERNEL_ID_max_pool_blocked_f32, SP_KERNEL_ID_max_pool_f32},
                 {SP_KERNEL_ID_norm_blocked_f32, SP_KERNEL_ID_batch_norm_f32},
                 {SP_KERNEL_ID_relu_f32, SP_KERNEL_ID_relu_f32}};
    static sp_kernel table[SP_KERNEL_COUNT];
    const sp_blocked_constants conv = {0}, normed = {.has_norm = true};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        CHECK(!sp__blocked_is_there(table, cases[i].blocked, &conv));
        table[cases[i].plain].run = sp__cpu_kernels(SP_CPU_PORTABLE)[cases[i].plain].run;
        CHECK(sp__blocked_is_there(table, cases[i].blocked, &conv));
    }
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channels_block, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channels_unblock, &conv));
    CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_conv_blocked_f32, &normed));
    table[SP_KERNEL_ID_batch_norm_f32].run = NULL;
    CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_conv_blocked_f32, &normed));
    for (int op = SP_CHANNEL_ADD; op <= SP_CHANNEL_DIV_INTO; op++) {
        const sp_channel_op_constants k = {.op = (uint8_t)op};
        CHECK(!sp__blocked_is_there(table, SP_KERNEL_ID_channel_op_f32, &k));
    }
    const sp_kernel_id plain[] = {SP_KERNEL_ID_add_f32, SP_KERNEL_ID_sub_f32, SP_KERNEL_ID_mul_f32,
                                  SP_KERNEL_ID_div_f32};
    for (size_t i = 0; i < SP_COUNT_OF(plain); i++) {
        table[plain[i]].run = sp__cpu_kernels(SP_CPU_PORTABLE)[plain[i]].run;
    }
    for (int op = SP_CHANNEL_ADD; op <= SP_CHANNEL_DIV_INTO; op++) {
        const sp_channel_op_constants k = {.op = (uint8_t)op};
        CHECK(sp__blocked_is_there(table, SP_KERNEL_ID_channel_op_f32, &k));
    }
}

TEST_MAIN
