/* SPDX-License-Identifier: Apache-2.0 */
/* Assignments to slices, as exporters write them: ScatterND by known indices. Random graphs of a
 * product whose results are put into a tensor have the bits of the same graph with indices that are
 * an input, on every instruction set; and the scatter is a copy where the indices are a slice. */
#include <stdio.h>
#include <string.h>

#include "plan/plan_strides.h"
#include "support/image_graph.h"

enum { RANK = 3, MAX_INDICES = 4096 };

typedef struct slice_case {
    sp_shape data, places, updates; /* places: with the depth of an index */
    int64_t indices[MAX_INDICES];
    bool is_slice, has_relu;
} slice_case;

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static bool one_in(data_random *random, int64_t n)
{
    return pick(random, 1, n) == 1;
}

/* Indices of a part of each of the first dimensions, from the front more often than not. */
static slice_case random_case(data_random *random)
{
    const int64_t depth = pick(random, 1, RANK);
    int64_t first[RANK] = {0}, step[RANK];
    slice_case c = {.data = SHAPE(pick(random, 1, 8), pick(random, 1, 8), pick(random, 1, 9)),
                    .places = {.rank = (uint32_t)depth + 1},
                    .is_slice = true,
                    .has_relu = one_in(random, 2)};
    c.updates = c.data;
    for (int64_t d = 0; d < depth; d++) {
        const int64_t size = c.data.dims[d];
        if (one_in(random, 3)) first[d] = pick(random, 0, size - 1);
        step[d] = one_in(random, 4) ? 2 : 1;
        c.places.dims[d] = c.updates.dims[d] = pick(random, 1, (size - 1 - first[d]) / step[d] + 1);
    }
    c.places.dims[depth] = depth;
    const int64_t count = (int64_t)sp__shape_count(&c.places) / depth;
    for (int64_t i = 0; i < count; i++) {
        int64_t left = i;
        for (int64_t d = depth; d-- > 0; left /= c.places.dims[d]) {
            c.indices[i * depth + d] = first[d] + left % c.places.dims[d] * step[d];
            if (one_in(random, 5)) c.indices[i * depth + d] -= c.data.dims[d];
        }
    }
    if (count < 3 || !one_in(random, 4)) return c;
    /* The last index is that of the first update again: the later update wins. */
    memcpy(c.indices + (count - 1) * depth, c.indices, (size_t)depth * sizeof *c.indices);
    c.is_slice = false;
    return c;
}

/* x times a matrix, put into a constant at the indices. */
static const sp_graph *make_graph(const slice_case *c, uint64_t seed, bool is_known)
{
    image_graph maker = {.random = {seed}};
    char data[16], w[16], inputs[64];
    const int64_t columns = c->updates.dims[RANK - 1], dims[2] = {5, columns}, three = RANK;
    const int64_t x[2] = {(int64_t)sp__shape_count(&c->updates) / columns, 5};
    add_input(&maker.graph, "x", 1, x, 2);
    image_graph_add_weight(&maker, c->data.dims, RANK, false, data);
    image_graph_add_weight(&maker, dims, 2, false, w);
    writer sizes = make_tensor("sizes", 7, &three, 1, c->updates.dims, sizeof(int64_t) * RANK);
    write_message(&maker.graph, GRAPH_INITIALIZER_FIELD, &sizes);
    if (is_known) {
        writer indices = make_tensor("i", 7, c->places.dims, c->places.rank, c->indices,
                                     (size_t)sp__shape_count(&c->places) * sizeof(int64_t));
        write_message(&maker.graph, GRAPH_INITIALIZER_FIELD, &indices);
    } else {
        add_input(&maker.graph, "i", 7, c->places.dims, (int)c->places.rank);
    }
    (void)snprintf(inputs, sizeof inputs, "x %s", w);
    add_node(&maker.graph, make_node("MatMul", inputs, "p"));
    add_node(&maker.graph, make_node("Reshape", "p sizes", "u"));
    (void)snprintf(inputs, sizeof inputs, "%s i u", data);
    add_node(&maker.graph, make_node("ScatterND", inputs, "y"));
    if (c->has_relu) add_node(&maker.graph, make_node("Relu", "y", "z"));
    add_output(&maker.graph, c->has_relu ? "z" : "y");
    return image_graph_load(&maker);
}

static void run(const sp_graph *graph, sp_cpu_isa isa, bool is_strided, const sp_array *in,
                uint32_t count, sp_array *out, uint64_t *scatters)
{
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = in[0].shape},
                                     {.dtype = SP_I64, .shape = in[1].shape}};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = inputs,
                                     .input_count = count,
                                     .is_blocked = is_strided,
                                     .is_strided = is_strided};
    const sp_graph_plan *plan;
    REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
    CHECK_OK(sp__plan_check(plan));
    *scatters = 0;
    for (uint32_t s = 0; s < plan->step_count; s++) {
        *scatters += plan->steps[s].kernel == SP_KERNEL_ID_scatter_nd;
    }
    REQUIRE_OK(data_run_plan(plan, in, out));
    sp__plan_destroy(plan);
}

static bool check_case(const slice_case *c, uint64_t seed)
{
    const sp_graph *known = make_graph(c, seed, true), *given = make_graph(c, seed, false);
    if (known == NULL || given == NULL) return false;
    data_random random = {seed};
    const int64_t columns = c->updates.dims[RANK - 1];
    const sp_shape x = SHAPE((int64_t)sp__shape_count(&c->updates) / columns, 5);
    sp_array in[2] = {data_floats(&random, &x), data_counted(SP_I64, c->places, 0)}, want, got;
    memcpy(in[1].data, c->indices, (size_t)in[1].bytes);
    uint64_t scatters;
    bool is_same = true;
    run(given, SP_CPU_PORTABLE, false, in, 2, &want, &scatters);
    CHECK_EQ_U64(scatters, 1);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        run(known, (sp_cpu_isa)isa, isa != SP_CPU_PORTABLE, in, 1, &got, &scatters);
        CHECK_EQ_U64(scatters, c->is_slice ? 0 : 1);
        is_same = is_same && memcmp(got.data, want.data, (size_t)want.bytes) == 0;
        CHECK(is_same);
        sp__array_deinit(&got);
    }
    sp__array_deinit(&want);
    data_free(in, 2);
    sp__graph_destroy(known);
    sp__graph_destroy(given);
    return is_same;
}

TEST(slices_that_are_known_are_copies_with_the_bits_of_a_scatter)
{
    const uint64_t count = test_count(20000, 2000);
    for (uint64_t seed = 1; seed <= count; seed++) {
        data_random random = {seed};
        const slice_case c = random_case(&random);
        if (check_case(&c, seed)) continue;
        test_note("graph %llu", (unsigned long long)seed);
        return;
    }
}

TEST_MAIN
