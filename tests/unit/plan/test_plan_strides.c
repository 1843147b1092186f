/* SPDX-License-Identifier: Apache-2.0 */
/* Operands by strides: random graphs of products, functions and what moves their operands have the
 * bits of the plan with all copies, on every instruction set; and the copies that are meant to
 * vanish do. */
#include "plan/plan_strides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- a random graph ---- */

enum { MAX_VALUES = 40, MAX_ELEMENTS = 1 << 15 };

typedef struct value {
    char name[16];
    sp_shape shape;
} value;

typedef struct graph_maker {
    data_random random;
    writer graph;
    value values[MAX_VALUES];
    int count, weights;
} graph_maker;

static int64_t pick(graph_maker *g, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(&g->random) % (uint64_t)(high - low + 1));
}

static bool one_in(graph_maker *g, int64_t n)
{
    return pick(g, 1, n) == 1;
}

static const char *add_floats(graph_maker *g, const sp_shape *shape, char name[16])
{
    static float values[MAX_ELEMENTS];
    const size_t count = (size_t)sp__shape_count(shape);
    if (count > SP_COUNT_OF(values)) abort();
    data_fill(&g->random, values, count);
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor = make_tensor(name, 1, shape->dims, shape->rank, values, count * sizeof(float));
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    return name;
}

static const char *add_ints(graph_maker *g, const int64_t *values, int64_t count, char name[16])
{
    (void)snprintf(name, 16, "w%d", g->weights++);
    writer tensor = make_tensor(name, 7, &count, 1, values, (size_t)count * sizeof(int64_t));
    write_message(&g->graph, GRAPH_INITIALIZER_FIELD, &tensor);
    return name;
}

static const value *new_value(graph_maker *g, const sp_shape *shape)
{
    value *made = &g->values[g->count];
    made->shape = *shape;
    (void)snprintf(made->name, sizeof made->name, "v%d", g->count++);
    return made;
}

static value any_value(graph_maker *g)
{
    return g->values[pick(g, g->count > 5 ? g->count - 5 : 0, g->count - 1)];
}

/* ---- nodes that move elements ---- */

static value add_transpose(graph_maker *g, const value *from, const int64_t *perm)
{
    sp_shape shape = from->shape;
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = from->shape.dims[perm[i]];
    const value *to = new_value(g, &shape);
    writer node = make_node("Transpose", from->name, to->name);
    add_attribute_ints(&node, "perm", perm, shape.rank);
    add_node(&g->graph, node);
    return *to;
}

static value add_any_transpose(graph_maker *g, const value *from)
{
    int64_t perm[SP_MAX_RANK] = {0};
    const uint32_t rank = from->shape.rank;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    for (uint32_t i = rank; i-- > 1;) {
        const uint32_t k = (uint32_t)pick(g, 0, i);
        const int64_t other = perm[k];
        perm[k] = perm[i];
        perm[i] = other;
    }
    return add_transpose(g, from, perm);
}

static value add_reshape(graph_maker *g, const value *from, const sp_shape *shape)
{
    char name[16], inputs[64];
    (void)snprintf(inputs, sizeof inputs, "%s %s", from->name,
                   add_ints(g, shape->dims, shape->rank, name));
    const value *to = new_value(g, shape);
    add_node(&g->graph, make_node("Reshape", inputs, to->name));
    return *to;
}

/* Two neighbouring dimensions become one, or one becomes two. */
static value add_any_reshape(graph_maker *g, const value *from)
{
    sp_shape shape = from->shape;
    const uint32_t at = (uint32_t)pick(g, 0, shape.rank - 1);
    if (shape.rank > 2 && at + 1 < shape.rank && one_in(g, 2)) {
        shape.dims[at] *= shape.dims[at + 1];
        for (uint32_t i = at + 1; i + 1 < shape.rank; i++) shape.dims[i] = shape.dims[i + 1];
        shape.rank--;
        return add_reshape(g, from, &shape);
    }
    int64_t part = pick(g, 1, 8);
    while (shape.dims[at] % part != 0) part--;
    if (shape.rank == 5) return *from;
    for (uint32_t i = shape.rank++; i > at; i--) shape.dims[i] = shape.dims[i - 1];
    shape.dims[at] /= part;
    shape.dims[at + 1] = part;
    return add_reshape(g, from, &shape);
}

static value add_slice(graph_maker *g, const value *from, uint32_t axis, int64_t start, int64_t end,
                       int64_t step)
{
    char names[4][16], inputs[96];
    sp_shape shape = from->shape;
    shape.dims[axis] = (end - start + step - 1) / step;
    (void)snprintf(inputs, sizeof inputs, "%s %s %s %s %s", from->name,
                   add_ints(g, &start, 1, names[0]), add_ints(g, &end, 1, names[1]),
                   add_ints(g, &(int64_t){axis}, 1, names[2]), add_ints(g, &step, 1, names[3]));
    const value *to = new_value(g, &shape);
    add_node(&g->graph, make_node("Slice", inputs, to->name));
    return *to;
}

static value add_any_slice(graph_maker *g, const value *from)
{
    const uint32_t axis = (uint32_t)pick(g, 0, from->shape.rank - 1);
    const int64_t size = from->shape.dims[axis], start = pick(g, 0, (size - 1) / 2);
    return add_slice(g, from, axis, start, pick(g, start + 1, size), one_in(g, 4) ? 2 : 1);
}

/* Three parts, of which the second one is returned. */
static value add_split(graph_maker *g, const value *from)
{
    const uint32_t axis = (uint32_t)pick(g, 0, from->shape.rank - 1);
    const int64_t size = from->shape.dims[axis];
    if (size < 3 || g->count > MAX_VALUES - 4) return *from;
    const int64_t first = pick(g, 1, size - 2), second = pick(g, 1, size - 1 - first);
    const int64_t sizes[3] = {first, second, size - first - second};
    char name[16], inputs[64], outputs[64] = "";
    (void)snprintf(inputs, sizeof inputs, "%s %s", from->name, add_ints(g, sizes, 3, name));
    for (int i = 0; i < 3; i++) {
        sp_shape shape = from->shape;
        shape.dims[axis] = sizes[i];
        const size_t len = strlen(outputs);
        (void)snprintf(outputs + len, sizeof outputs - len, "%s%s", i > 0 ? " " : "",
                       new_value(g, &shape)->name);
    }
    writer node = make_node("Split", inputs, outputs);
    add_attribute_int(&node, "axis", axis);
    add_node(&g->graph, node);
    return g->values[g->count - 2];
}

static value add_move(graph_maker *g, const value *from)
{
    switch (pick(g, 0, 4)) {
    case 0:
        return add_any_slice(g, from);
    case 1:
        return add_split(g, from);
    case 2:
        return add_any_reshape(g, from);
    default:
        return add_any_transpose(g, from);
    }
}

/* ---- nodes that compute ---- */

static value add_binary(graph_maker *g, const value *from)
{
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max"};
    char name[16], inputs[64];
    sp_shape shape = {.rank = 1, .dims = {from->shape.dims[from->shape.rank - 1]}};
    if (one_in(g, 3)) shape.dims[0] = 1;
    if (one_in(g, 3)) shape = from->shape;
    if (sp__shape_count(&shape) > MAX_ELEMENTS) shape = (sp_shape){.rank = 0};
    const char *other = add_floats(g, &shape, name);
    for (int i = g->count - 1; i >= 0; i--) {
        const value *like = &g->values[i];
        if (!sp__shape_equal(&like->shape, &from->shape) || one_in(g, 2)) continue;
        other = like->name;
        break;
    }
    const bool is_first = one_in(g, 3);
    (void)snprintf(inputs, sizeof inputs, "%s %s", is_first ? other : from->name,
                   is_first ? from->name : other);
    const value *to = new_value(g, &from->shape);
    add_node(&g->graph, make_node(ops[pick(g, 0, 4)], inputs, to->name));
    return *to;
}

static value add_matmul(graph_maker *g, const value *a, const value *b)
{
    char inputs[64];
    sp_shape shape = a->shape;
    shape.dims[shape.rank - 1] = b->shape.dims[b->shape.rank - 1];
    (void)snprintf(inputs, sizeof inputs, "%s %s", a->name, b->name);
    const value *to = new_value(g, &shape);
    add_node(&g->graph, make_node("MatMul", inputs, to->name));
    return *to;
}

/* A weight on the right, and perhaps a bias and an activation behind. */
static value add_linear(graph_maker *g, const value *a)
{
    const int64_t sizes[] = {3, 16, 24, 33, 48, 96};
    value b = {
        .shape = {.rank = 2, .dims = {a->shape.dims[a->shape.rank - 1], sizes[pick(g, 0, 5)]}}};
    if (b.shape.dims[0] * b.shape.dims[1] > MAX_ELEMENTS) return *a;
    char name[16];
    (void)snprintf(b.name, sizeof b.name, "%s", add_floats(g, &b.shape, name));
    value y = add_matmul(g, a, &b);
    if (one_in(g, 2)) y = add_binary(g, &y);
    if (!one_in(g, 3)) return y;
    const value *to = new_value(g, &y.shape);
    add_node(&g->graph, make_node("Relu", y.name, to->name));
    return *to;
}

/* x times itself, one of the two with its last dimensions swapped; or two of a sliced x. */
static value add_scores(graph_maker *g, const value *x)
{
    const uint32_t rank = x->shape.rank;
    int64_t perm[SP_MAX_RANK] = {0};
    if (rank < 2 || x->shape.dims[rank - 1] > 100 || x->shape.dims[rank - 2] > 100) return *x;
    for (uint32_t i = 0; i < rank; i++) perm[i] = i;
    perm[rank - 1] = rank - 2;
    perm[rank - 2] = rank - 1;
    const value t = add_transpose(g, x, perm);
    return one_in(g, 3) ? add_matmul(g, &t, x) : add_matmul(g, x, &t);
}

/* Attention with some heads, as frameworks export it: x [length, images, width]. */
static value add_attention(graph_maker *g, const value *x, bool has_sums)
{
    if (x->shape.rank != 3 || x->shape.dims[0] > 100 || g->count > MAX_VALUES - 16) return *x;
    const int64_t length = x->shape.dims[0], images = x->shape.dims[1];
    const int64_t heads = pick(g, 1, 4), size = one_in(g, 3) ? 16 : pick(g, 1, 20);
    const int64_t width = heads * size;
    value w = {.shape = {.rank = 2, .dims = {x->shape.dims[2], 3 * width}}}, parts[3];
    if (w.shape.dims[0] * w.shape.dims[1] > MAX_ELEMENTS) return *x;
    char name[16];
    (void)snprintf(w.name, sizeof w.name, "%s", add_floats(g, &w.shape, name));
    value all = add_matmul(g, x, &w);
    if (has_sums && one_in(g, 2)) all = add_binary(g, &all);
    for (int64_t i = 0; i < 3; i++) {
        const value part = add_slice(g, &all, 2, i * width, (i + 1) * width, 1);
        const value rows =
            add_reshape(g, &part, &(sp_shape){.rank = 3, .dims = {length, images * heads, size}});
        parts[i] =
            add_transpose(g, &rows, (int64_t[SP_MAX_RANK]){1, i == 1 ? 2 : 0, i == 1 ? 0 : 2});
    }
    if (has_sums && one_in(g, 2)) parts[0] = add_binary(g, &parts[0]);
    const value scores = add_matmul(g, &parts[0], &parts[1]);
    const value y = add_matmul(g, &scores, &parts[2]);
    const value back = add_transpose(g, &y, (int64_t[SP_MAX_RANK]){1, 0, 2});
    return add_reshape(g, &back, &(sp_shape){.rank = 3, .dims = {length, images, width}});
}

static void add_any(graph_maker *g)
{
    value x = any_value(g);
    for (int64_t moves = pick(g, 0, 3); moves > 0 && g->count < MAX_VALUES - 20; moves--) {
        x = add_move(g, &x);
    }
    switch (pick(g, 0, 4)) {
    case 0:
        (void)add_linear(g, &x);
        return;
    case 1:
        (void)add_binary(g, &x);
        return;
    case 2:
        x = add_scores(g, &x);
        if (one_in(g, 2)) (void)add_any_transpose(g, &x);
        return;
    default:
        (void)add_attention(g, &x, true);
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
    *g = (graph_maker){.random = {seed}};
    *x = (sp_shape){.rank = 3, .dims = {pick(g, 1, 20), pick(g, 1, 5), pick(g, 1, 40)}};
    (void)new_value(g, x);
    add_input(&g->graph, "v0", 1, x->dims, 3);
    if (one_in(g, 2)) (void)add_attention(g, &g->values[0], true);
    for (int64_t nodes = pick(g, 1, 6); nodes > 0 && g->count < MAX_VALUES - 20; nodes--) {
        add_any(g);
        const value *last = &g->values[g->count - 1];
        if (sp__shape_count(&last->shape) > MAX_ELEMENTS) break;
    }
    add_output(&g->graph, g->values[g->count - 1].name);
    if (g->count > 2) add_output(&g->graph, g->values[pick(g, 1, g->count - 2)].name);
    return load(g);
}

/* ---- the same run, by strides and with copies ---- */

static const sp_graph_plan *compile(const sp_graph *graph, const sp_plan_input *input,
                                    sp_cpu_isa isa, bool is_strided)
{
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = input,
                                     .input_count = 1,
                                     .is_unfused = !is_strided,
                                     .is_strided = is_strided};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* What there was in all plans by strides. */
static struct {
    uint64_t later_a, later_b, transposed, results, batches, functions, copies;
} seen;

static void count_product(const sp_gemm_strided_constants *k)
{
    seen.later_a += k->a_first > 0;
    seen.later_b += k->b_first > 0;
    seen.transposed += k->b_column != 1;
    seen.results += k->y_row != k->of.columns;
    seen.batches += k->of.batch_rank > 1;
}

static uint32_t count_copies(const sp_graph_plan *plan)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_kernel_id kernel = plan->steps[s].kernel;
        count += kernel == SP_KERNEL_ID_copy_strided || kernel == SP_KERNEL_ID_split;
    }
    return count;
}

static void count_steps(const sp_graph_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        if (step->kernel == SP_KERNEL_ID_gemm_strided_f32) count_product(step->constants);
        if (step->kernel < SP_KERNEL_ID_add_f32 || step->kernel > SP_KERNEL_ID_div_f32) continue;
        const sp_binary_constants *k = step->constants;
        sp_view a = {.rank = k->rank};
        memcpy(a.dims, k->dims, sizeof k->dims);
        memcpy(a.strides, k->a, sizeof k->a);
        bool is_repeated = false;
        for (uint32_t i = 0; i < k->rank; i++) is_repeated |= k->a[i] == 0;
        seen.functions += !is_repeated && !sp__view_is_plain(&a);
    }
}

static bool has_seen_all(void)
{
    return seen.later_a > 0 && seen.later_b > 0 && seen.transposed > 0 && seen.results > 0 &&
           seen.batches > 0 && seen.functions > 0 && seen.copies > 0;
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

/* Infinities and NaNs among the numbers of every third graph. */
static void add_specials(graph_maker *g, float *values, int64_t count)
{
    static const float specials[] = {__builtin_inff(), -__builtin_inff(), -0.0f, 1e-42f, 3e38f};
    if (!one_in(g, 3)) return;
    for (int64_t i = 0; i < count; i += pick(g, 20, 400)) {
        values[i] = one_in(g, 4) ? __builtin_nanf("") : specials[pick(g, 0, 4)];
    }
}

/* Destroys the graph. *copies is the number of copies in the plan by strides. */
static void check_graph(graph_maker *maker, const sp_graph *graph, const sp_plan_input *input,
                        uint64_t seed, uint32_t *copies)
{
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&maker->random, &input->shape), want[2] = {0};
    add_specials(maker, x.data, (int64_t)(x.bytes / sizeof(float)));
    const sp_graph_plan *copied = compile(graph, input, SP_CPU_PORTABLE, false);
    REQUIRE(copied != NULL);
    REQUIRE_OK(data_run_plan(copied, &x, want));
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_graph_plan *strided = compile(graph, input, (sp_cpu_isa)isa, true);
        REQUIRE(strided != NULL);
        count_steps(strided);
        *copies = count_copies(strided);
        seen.copies += count_copies(copied) > *copies;
        CHECK(count_copies(copied) >= *copies);
        check_outputs(strided, &x, want, seed);
        sp__plan_destroy(strided);
    }
    for (uint32_t i = 0; i < copied->output_count; i++) sp__array_deinit(&want[i]);
    sp__plan_destroy(copied);
    sp__array_deinit(&x);
    sp__graph_destroy(graph);
}

TEST(random_graphs_have_the_bits_of_plans_with_copies)
{
    const uint64_t count = test_count(40000, 1000);
    /* Some are rare: as many graphs as it takes, up to the quick count. */
    for (uint64_t seed = 1; seed <= count || (!has_seen_all() && seed <= 1000); seed++) {
        graph_maker maker;
        sp_plan_input input = {.dtype = SP_F32};
        const sp_graph *graph = make_graph(&maker, seed, &input.shape);
        uint32_t copies;
        check_graph(&maker, graph, &input, seed, &copies);
    }
    CHECK(seen.later_a > 0);
    CHECK(seen.later_b > 0);
    CHECK(seen.transposed > 0);
    CHECK(seen.results > 0);
    CHECK(seen.batches > 0);
    CHECK(seen.functions > 0);
    CHECK(seen.copies > 0);
}

/* All of attention but its products: also with more than one image, where the heads of an image are
 * further apart than those of the next one. */
TEST(attention_has_no_copies)
{
    for (int64_t images = 1; images <= 3; images++) {
        graph_maker maker = {.random = {5}};
        const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(9, images, 8)};
        (void)new_value(&maker, &input.shape);
        add_input(&maker.graph, "v0", 1, input.shape.dims, 3);
        const value y = add_attention(&maker, &maker.values[0], false);
        add_output(&maker.graph, y.name);
        uint32_t copies = UINT32_MAX;
        check_graph(&maker, load(&maker), &input, 0, &copies);
        CHECK_EQ_INT(copies, 0);
    }
}

TEST_MAIN
