/* SPDX-License-Identifier: Apache-2.0 */
#include "support/image_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/macros.h"

/* ---- values ---- */

static int64_t pick(image_graph *g, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(&g->random) % (uint64_t)(high - low + 1));
}

static bool one_in(image_graph *g, int64_t n)
{
    return pick(g, 1, n) == 1;
}

void image_graph_add_specials(image_graph *g, float *values, size_t count)
{
    static const float specials[] = {__builtin_inff(), -__builtin_inff(), -0.0f, 1e-42f, 3e38f};
    for (size_t i = 0; g->has_specials && i < count; i += 1 + (size_t)pick(g, 20, 400)) {
        values[i] = one_in(g, 4) ? __builtin_nanf("") : specials[pick(g, 0, 4)];
    }
}

void image_graph_add_weight(image_graph *g, const int64_t *dims, uint32_t rank, bool is_positive,
                            char name[16])
{
    static float values[1 << 18];
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    REQUIRE(count <= SP_COUNT_OF(values));
    data_fill(&g->random, values, count);
    for (size_t i = 0; i < count && is_positive; i++) values[i] = values[i] * values[i] + 0.1f;
    if (!is_positive) image_graph_add_specials(g, values, count);
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, dims, rank, values, count * sizeof(float));
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static image *new_value(image_graph *g, const image *from)
{
    image *value = &g->values[g->count];
    *value = *from;
    (void)snprintf(value->name, sizeof value->name, "v%d", g->count++);
    return value;
}

static const image *any_value(image_graph *g)
{
    return &g->values[pick(g, g->count > 4 ? g->count - 4 : 0, g->count - 1)];
}

/* ---- nodes ---- */

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pads)
{
    return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

typedef enum window_kind { WINDOW_CONV, WINDOW_MAX, WINDOW_AVERAGE } window_kind;

/* Adds strides, dilations and pads of a window that fits, and sets the size of its outputs. Before
 * version 19 an average has no dilations. */
static void add_window(image_graph *g, writer *node, const int64_t kernel[2], window_kind kind,
                       image *to)
{
    int64_t strides[2], dilations[2], pads[4], *sizes[2] = {&to->height, &to->width};
    for (int i = 0; i < 2; i++) {
        const int64_t most = kind == WINDOW_CONV ? kernel[i] : kernel[i] - 1;
        strides[i] = one_in(g, 3) ? pick(g, 1, 3) : 1;
        dilations[i] = one_in(g, 4) && kind != WINDOW_AVERAGE ? 2 : 1;
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
    if (kind != WINDOW_AVERAGE) add_attribute_ints(node, "dilations", dilations, 2);
    add_attribute_ints(node, "pads", pads, 4);
}

static void add_conv(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t kinds[] = {1, 3, 5};
    const bool is_square = !one_in(g, 3), is_depthwise = one_in(g, 3);
    const int64_t first = kinds[pick(g, 0, 2)];
    const int64_t kernel[2] = {first, is_square ? first : pick(g, 1, 7)};
    int64_t groups = is_depthwise ? from.channels : one_in(g, 2) ? pick(g, 2, 4) : 1;
    if (from.channels % groups != 0) groups = 1;
    const int64_t sizes[] = {1, 2, 7, 9, 12, 16, 24, 32, 33, 48, 64};
    int64_t filters = is_depthwise ? from.channels : sizes[pick(g, 0, 10)];
    if (filters % groups != 0) filters = groups * pick(g, 10, 20);
    image to = from;
    char w[16], b[16], inputs[64];
    image_graph_add_weight(g, (int64_t[]){filters, from.channels / groups, kernel[0], kernel[1]}, 4,
                           false, w);
    const bool has_bias = one_in(g, 2);
    if (has_bias) image_graph_add_weight(g, &filters, 1, false, b);
    (void)snprintf(inputs, sizeof inputs, "%s %s %s", from.name, w, has_bias ? b : "");
    if (!has_bias) inputs[strlen(inputs) - 1] = '\0';
    to.channels = filters;
    writer node = make_node("Conv", inputs, new_value(g, &to)->name);
    image *y = &g->values[g->count - 1];
    add_window(g, &node, kernel, WINDOW_CONV, y);
    add_attribute_int(&node, "group", groups);
    add_node(&g->graph, node);
}

/* A pointwise convolution that reads some pixels. */
static void add_thin(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t strides[2] = {pick(g, 1, 3), pick(g, 1, 3)}, filters = pick(g, 30, 50);
    image to = {.channels = filters,
                .height = (from.height - 1) / strides[0] + 1,
                .width = (from.width - 1) / strides[1] + 1};
    char w[16], inputs[64];
    image_graph_add_weight(g, (int64_t[]){filters, from.channels, 1, 1}, 4, false, w);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, w);
    writer node = make_node("Conv", inputs, new_value(g, &to)->name);
    add_attribute_ints(&node, "strides", strides, 2);
    add_node(&g->graph, node);
}

/* A transposed convolution: mostly of a kernel as large as its stride, sometimes of a larger one.
 */
static void add_transposed(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t sizes[] = {1, 2, 3, 8, 12, 16, 24, 32}, filters = sizes[pick(g, 0, 7)];
    const int64_t strides[2] = {pick(g, 1, 3), pick(g, 1, 3)}, more = one_in(g, 8) ? 1 : 0;
    const int64_t kernel[2] = {strides[0] + more, strides[1]};
    const int64_t groups = one_in(g, 8) && from.channels % 2 == 0 ? 2 : 1;
    image to = {.channels = filters * groups,
                .height = from.height * strides[0] + more,
                .width = from.width * strides[1]};
    if (to.height * to.width > 4000) return;
    char w[16], b[16], inputs[64];
    image_graph_add_weight(g, (int64_t[]){from.channels, filters, kernel[0], kernel[1]}, 4, false,
                           w);
    const bool has_bias = one_in(g, 2);
    if (has_bias) image_graph_add_weight(g, &to.channels, 1, false, b);
    (void)snprintf(inputs, sizeof inputs, has_bias ? "%s %s %s" : "%s %s", from.name, w, b);
    writer node = make_node("ConvTranspose", inputs, new_value(g, &to)->name);
    add_attribute_ints(&node, "strides", strides, 2);
    add_attribute_int(&node, "group", groups);
    add_node(&g->graph, node);
}

/* An image and the convolution of it: one of them may be computed with the other. */
static void add_residual(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t size = one_in(g, 2) ? 1 : 3, pad = size / 2, pads[4] = {pad, pad, pad, pad};
    const int64_t depth = from.channels;
    char w[16], inputs[64];
    image_graph_add_weight(g, (int64_t[]){depth, depth, size, size}, 4, false, w);
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

static void add_pool(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t most = one_in(g, 6) ? 6 : 3;
    const int64_t kernel[2] = {pick(g, 1, most), pick(g, 1, most)};
    const bool is_average = one_in(g, 2);
    image *to = new_value(g, &from);
    writer node = make_node(is_average ? "AveragePool" : "MaxPool", from.name, to->name);
    if (is_average) add_attribute_int(&node, "count_include_pad", pick(g, 0, 1));
    add_attribute_ints(&node, "kernel_shape", kernel, 2);
    add_window(g, &node, kernel, is_average ? WINDOW_AVERAGE : WINDOW_MAX, to);
    add_node(&g->graph, node);
}

/* Often of a convolution: it may be computed there. */
static void add_norm(image_graph *g)
{
    const bool is_of_conv = one_in(g, 2);
    if (is_of_conv) add_conv(g);
    const image from = is_of_conv ? g->values[g->count - 1] : *any_value(g);
    char lists[4][16], inputs[96];
    for (int i = 0; i < 4; i++) image_graph_add_weight(g, &from.channels, 1, i == 3, lists[i]);
    (void)snprintf(inputs, sizeof inputs, "%s %s %s %s %s", from.name, lists[0], lists[1], lists[2],
                   lists[3]);
    writer node = make_node("BatchNormalization", inputs, new_value(g, &from)->name);
    add_attribute_float(&node, "epsilon", 0.01f);
    add_node(&g->graph, node);
}

static const char *hidden_value(image_graph *g, char name[16])
{
    (void)snprintf(name, 16, "h%d", g->hidden++);
    return name;
}

static void add_number(image_graph *g, float number, char name[16])
{
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, NULL, 0, &number, sizeof number);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* HardSwish by Clip, now and then with another number; of a value or of one that is scaled first.
 */
static void add_clip_gate(image_graph *g)
{
    const image from = *any_value(g);
    char x[16], names[4][16], values[3][16], inputs[64];
    const float numbers[4] = {one_in(g, 4) ? 2.5f : 3, 0, 6, 6};
    (void)snprintf(x, sizeof x, "%s", from.name);
    if (one_in(g, 2)) {
        image_graph_add_weight(g, (int64_t[]){1, from.channels, 1, 1}, 4, false, names[0]);
        (void)snprintf(inputs, sizeof inputs, "%s %s", x, names[0]);
        add_node(&g->graph, make_node("Mul", inputs, hidden_value(g, x)));
    }
    for (int i = 0; i < 4; i++) add_number(g, numbers[i], names[i]);
    (void)snprintf(inputs, sizeof inputs, "%s %s", x, names[0]);
    add_node(&g->graph, make_node("Add", inputs, hidden_value(g, values[0])));
    (void)snprintf(inputs, sizeof inputs, "%s %s %s", values[0], names[1], names[2]);
    add_node(&g->graph, make_node("Clip", inputs, hidden_value(g, values[1])));
    (void)snprintf(inputs, sizeof inputs, "%s %s", x, values[1]);
    add_node(&g->graph, make_node("Mul", inputs, hidden_value(g, values[2])));
    (void)snprintf(inputs, sizeof inputs, "%s %s", values[2], names[3]);
    add_node(&g->graph, make_node("Div", inputs, new_value(g, &from)->name));
}

static void add_unary(image_graph *g)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu",
                                      "Sqrt", "Neg",     "Abs",  "Exp",       "Softmax"};
    const int64_t which = pick(g, 0, 11);
    if (which >= (int64_t)SP_COUNT_OF(ops)) {
        add_clip_gate(g);
        return;
    }
    const image from = *any_value(g);
    add_node(&g->graph, make_node(ops[which], from.name, new_value(g, &from)->name));
}

/* Another value of the same shape, if there is one. */
static const image *find_like(const image_graph *g, const image *from)
{
    for (int i = g->count - 1; i >= 0; i--) {
        const image *other = &g->values[i];
        const bool is_like = other->channels == from->channels && other->height == from->height &&
                             other->width == from->width;
        if (is_like && strcmp(other->name, from->name) != 0) return other;
    }
    return from;
}

static void add_binary(image_graph *g)
{
    static const char *const ops[] = {"Add", "Mul", "Sub", "Div", "Max", "Min"};
    const image from = *any_value(g);
    char other[16], inputs[64];
    switch (pick(g, 0, 3)) {
    case 0:
        image_graph_add_weight(g, (int64_t[]){1, from.channels, 1, 1}, 4, false, other);
        break;
    case 1:
        image_graph_add_weight(g, (int64_t[]){1}, 1, false, other);
        break;
    case 2:
        image_graph_add_weight(g, (int64_t[]){g->images, from.channels, 1, 1}, 4, false, other);
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

static void add_concat(image_graph *g)
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

/* Zeros before or behind an image's channels, and now and then -0 among them. */
static void add_zeros(image_graph *g)
{
    static float values[1 << 16];
    const image from = *any_value(g);
    image to = from;
    const int64_t more = pick(g, 1, 40);
    const int64_t dims[4] = {g->images, more, from.height, from.width};
    const int64_t count = dims[0] * dims[1] * dims[2] * dims[3];
    to.channels += more;
    if (to.channels > 128 || count > (int64_t)SP_COUNT_OF(values)) return;
    char name[16], inputs[64];
    values[count - 1] = one_in(g, 8) ? -0.0f : 0;
    (void)snprintf(name, sizeof name, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, dims, 4, values, (size_t)count * sizeof(float));
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    values[count - 1] = 0;
    const bool is_first = one_in(g, 2);
    (void)snprintf(inputs, sizeof inputs, "%s %s", is_first ? name : from.name,
                   is_first ? from.name : name);
    writer node = make_node("Concat", inputs, new_value(g, &to)->name);
    add_attribute_int(&node, "axis", 1);
    add_node(&g->graph, node);
}

static void add_resize(image_graph *g)
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
static void add_scale(image_graph *g)
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

/* ---- channels in another order ---- */

static void add_numbers(image_graph *g, const int64_t *numbers, int64_t count, bool is_scalar,
                        char name[16])
{
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor =
        make_tensor(name, 7, &count, is_scalar ? 0 : 1, numbers, (size_t)count * sizeof *numbers);
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void reshape(image_graph *g, const char *from, const int64_t *dims, int64_t rank,
                    const char *to)
{
    char sizes[16], inputs[40];
    add_numbers(g, dims, rank, false, sizes);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from, sizes);
    add_node(&g->graph, make_node("Reshape", inputs, to));
}

/* As a shuffle of groups is written: two axes of the channels change places. */
static void add_shuffle(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t groups = pick(g, 2, 4), inner = from.channels / groups;
    const int64_t order[5] = {0, 2, 1, 3, 4};
    if (from.channels % groups != 0) return;
    char cut[16], turned[16];
    reshape(g, from.name, (int64_t[]){g->images, groups, inner, from.height, from.width}, 5,
            hidden_value(g, cut));
    writer node = make_node("Transpose", cut, hidden_value(g, turned));
    add_attribute_ints(&node, "perm", order, 5);
    add_node(&g->graph, node);
    const image *to = new_value(g, &from);
    reshape(g, turned, (int64_t[]){g->images, from.channels, from.height, from.width}, 4, to->name);
}

/* As a shuffle in halves is written: the images are an axis among those of the channels. */
static void add_halves(image_graph *g)
{
    const image from = *any_value(g);
    const int64_t half = from.channels / 2, planes = from.height * from.width;
    if (from.channels % 2 != 0) return;
    char cut[16], turned[16], halves[16], index[16], inputs[40];
    reshape(g, from.name, (int64_t[]){g->images * half, 2, planes}, 3, hidden_value(g, cut));
    writer node = make_node("Transpose", cut, hidden_value(g, turned));
    add_attribute_ints(&node, "perm", (int64_t[]){1, 0, 2}, 3);
    add_node(&g->graph, node);
    reshape(g, turned, (int64_t[]){2, g->images, half, from.height, from.width}, 5,
            hidden_value(g, halves));
    for (int64_t i = 0; i < 2 && g->count < IMAGE_VALUES - 1; i++) {
        image to = from;
        to.channels = half;
        add_numbers(g, &i, 1, true, index);
        (void)snprintf(inputs, sizeof inputs, "%s %s", halves, index);
        add_node(&g->graph, make_node("Gather", inputs, new_value(g, &to)->name));
    }
}

/* Some channels, by a list that may name one twice. */
static void add_gather(image_graph *g)
{
    const image from = *any_value(g);
    int64_t list[40];
    image to = from;
    to.channels = pick(g, 1, from.channels < 40 ? from.channels : 40);
    const bool is_even = one_in(g, 2);
    for (int64_t i = 0; i < to.channels; i++) {
        list[i] = is_even ? from.channels - 1 - i : pick(g, -from.channels, from.channels - 1);
    }
    char name[16], inputs[40];
    add_numbers(g, list, to.channels, false, name);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, name);
    writer node = make_node("Gather", inputs, new_value(g, &to)->name);
    add_attribute_int(&node, "axis", 1);
    add_node(&g->graph, node);
}

/* The channels before one of them, and the others. */
static void add_split(image_graph *g)
{
    const image from = *any_value(g);
    if (from.channels < 2) return;
    image first = from, second = from;
    first.channels = pick(g, 1, from.channels - 1);
    second.channels = from.channels - first.channels;
    const int64_t sizes[2] = {first.channels, second.channels};
    char name[16], inputs[40], outputs[40];
    add_numbers(g, sizes, 2, false, name);
    (void)snprintf(inputs, sizeof inputs, "%s %s", from.name, name);
    const image a = *new_value(g, &first), b = *new_value(g, &second);
    (void)snprintf(outputs, sizeof outputs, "%s %s", a.name, b.name);
    writer node = make_node("Split", inputs, outputs);
    add_attribute_int(&node, "axis", 1);
    add_node(&g->graph, node);
}

/* The same elements as images of other sizes: what reads them must not take them for blocks. */
static void add_view(image_graph *g)
{
    const image from = *any_value(g);
    if (from.channels % 2 != 0) return;
    image to = from;
    to.channels /= 2;
    to.height *= 2;
    const int64_t dims[4] = {g->images, to.channels, to.height, to.width};
    reshape(g, from.name, dims, 4, new_value(g, &to)->name);
}

static void add_any(image_graph *g)
{
    switch (pick(g, 0, 19)) {
    case 19:
        add_transposed(g);
        return;
    case 18:
        add_thin(g);
        return;
    case 17:
        add_zeros(g);
        return;
    case 13:
        add_shuffle(g);
        return;
    case 14:
        add_halves(g);
        return;
    case 15:
        add_gather(g);
        return;
    case 16:
        add_split(g);
        return;
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

const sp_graph *image_graph_load(image_graph *g)
{
    writer model = make_model(&g->graph, 14);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

const sp_graph *image_graph_make(image_graph *g, uint64_t seed, sp_shape *x)
{
    const int64_t sizes[] = {1, 3, 16, 20, 32, 68};
    *g = (image_graph){.random = {seed}};
    g->images = pick(g, 1, 3);
    g->has_specials = one_in(g, 3);
    const image first = {.channels = sizes[pick(g, 0, 5)],
                         .height = one_in(g, 4) ? 1 : pick(g, 1, 20),
                         .width = one_in(g, 8) ? 1 : pick(g, 1, one_in(g, 6) ? 150 : 30)};
    new_value(g, &first);
    *x = (sp_shape){.rank = 4, .dims = {g->images, first.channels, first.height, first.width}};
    add_input(&g->graph, "v0", 1, x->dims, 4);
    add_conv(g);
    const int nodes = (int)pick(g, 1, 16);
    for (int i = 0; i < nodes && g->count < IMAGE_VALUES - 2; i++) add_any(g); /* at most two */
    add_output(&g->graph, g->values[g->count - 1].name);
    if (g->count > 2) add_output(&g->graph, g->values[pick(g, 1, g->count - 2)].name);
    return image_graph_load(g);
}
