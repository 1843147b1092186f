/* SPDX-License-Identifier: Apache-2.0 */
/* Means of the pixels of images in blocks of channels: the bits of the means of plain images, for
 * numbers of pixels around those of the lanes and blocks of a reduction. */
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "support/image_graph.h"

enum { CHANNELS = 24 };

static const sp_graph *make_graph(image_graph *maker, const sp_shape *x)
{
    char w[16], inputs[32];
    add_input(&maker->graph, "x", 1, x->dims, 4);
    image_graph_add_weight(maker, (int64_t[]){CHANNELS, x->dims[1], 1, 1}, 4, false, w);
    (void)snprintf(inputs, sizeof inputs, "x %s", w);
    add_node(&maker->graph, make_node("Conv", inputs, "y"));
    add_node(&maker->graph, make_node("GlobalAveragePool", "y", "z"));
    add_output(&maker->graph, "z");
    return image_graph_load(maker);
}

/* The means of x; *count: the steps that compute them in blocks. */
static sp_array run(const sp_graph *graph, sp_cpu_isa isa, bool is_blocked, const sp_array *x,
                    uint64_t *count)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = x->shape};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(isa),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .is_blocked = is_blocked};
    const sp_graph_plan *plan = NULL;
    sp_array y = {0};
    *count = 0;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan == NULL) return y;
    CHECK_OK(sp__plan_check(plan));
    for (uint32_t s = 0; s < plan->step_count; s++) {
        *count += plan->steps[s].kernel == SP_KERNEL_ID_mean_blocked_f32;
    }
    CHECK_OK(data_run_plan(plan, x, &y));
    sp__plan_destroy(plan);
    return y;
}

static void check_pixels(int64_t images, int64_t pixels, uint64_t expected)
{
    image_graph maker = {.random = {(uint64_t)pixels}, .has_specials = pixels % 2 == 0};
    const sp_shape shape = SHAPE(images, 3, 1, pixels);
    const sp_graph *graph = make_graph(&maker, &shape);
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&maker.random, &shape);
    uint64_t count;
    sp_array want = run(graph, SP_CPU_PORTABLE, false, &x, &count);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        sp_array got = run(graph, (sp_cpu_isa)isa, true, &x, &count);
        CHECK_EQ_U64(count, expected);
        CHECK(got.data != NULL && want.data != NULL &&
              memcmp(got.data, want.data, (size_t)want.bytes) == 0);
        sp__array_deinit(&got);
    }
    sp__array_deinit(&want);
    sp__array_deinit(&x);
    sp__graph_destroy(graph);
}

TEST(means_of_blocks_have_the_bits_of_plain_ones)
{
    static const int64_t pixels[] = {2, 15, 16, 17, 33, 1000, 4095, 4096, 4097, 3 * 4096 + 100};
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++) check_pixels(2, pixels[i], 1);
}

TEST(an_image_of_one_pixel_has_no_mean)
{
    check_pixels(1, 1, 0);
}

TEST(an_image_of_more_pixels_than_the_kernel_sums_is_copied)
{
    check_pixels(1, (int64_t)SP_MEAN_BLOCKS * 4096, 1);
    check_pixels(1, (int64_t)SP_MEAN_BLOCKS * 4096 + 1, 0);
}

TEST_MAIN
