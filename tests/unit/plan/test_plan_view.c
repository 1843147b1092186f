/* SPDX-License-Identifier: Apache-2.0 */
/* Composed and inverted views find the elements that the two find one after the other. */
#include "plan/plan_view.h"

#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* The element with number `index` in the order of the view's dimensions. */
static int64_t element(const sp_view *view, int64_t index)
{
    int64_t at = view->first;
    for (uint32_t i = view->rank; i-- > 0; index /= view->dims[i]) {
        at += index % view->dims[i] * view->strides[i];
    }
    return at;
}

static sp_view random_view(data_random *random)
{
    sp_view view = {.rank = (uint32_t)pick(random, 1, 4), .first = pick(random, 0, 9)};
    for (uint32_t i = 0; i < view.rank; i++) {
        view.dims[i] = pick(random, 1, 6);
        view.strides[i] = pick(random, -40, 40);
    }
    return view;
}

/* A view inside of `count` elements. */
static sp_view view_inside(data_random *random, int64_t count)
{
    for (;;) {
        sp_view view = {.rank = (uint32_t)pick(random, 1, 3), .first = pick(random, 0, count - 1)};
        int64_t last = view.first;
        for (uint32_t i = 0; i < view.rank; i++) {
            view.dims[i] = pick(random, 1, 6);
            view.strides[i] = pick(random, 0, count);
            last += (view.dims[i] - 1) * view.strides[i];
        }
        if (last < count) return view;
    }
}

TEST(a_composed_view_has_the_elements_of_both)
{
    data_random random = {71};
    uint64_t composed = 0, refused = 0, split = 0;
    for (uint64_t i = 0; i < test_count(1000000, 50000); i++) {
        const sp_view of = random_view(&random);
        const sp_view inner = view_inside(&random, sp__view_count(&of));
        sp_view view = inner;
        for (uint32_t dim = 0; dim < view.rank && view.rank < SP_VIEW_RANK;) {
            const int64_t even = sp__view_even(&of, view.dims[dim], view.strides[dim]);
            if (even == 0 || even == view.dims[dim]) {
                dim++;
                continue;
            }
            sp__view_split(&view, dim, even);
            split++;
        }
        const sp_view before = view;
        if (!sp__view_compose(&of, &view)) {
            CHECK_EQ_INT(view.first, before.first);
            CHECK_EQ_MEM(view.strides, before.strides, sizeof view.strides);
            refused++;
            continue;
        }
        composed++;
        CHECK_EQ_INT(sp__view_count(&view), sp__view_count(&inner));
        for (int64_t k = 0; k < sp__view_count(&inner); k++) {
            CHECK_EQ_INT(element(&view, k), element(&of, element(&inner, k)));
        }
    }
    CHECK(composed > 1000);
    CHECK(refused > 1000);
    CHECK(split > 100);
}

/* A product has more dimensions than a copy: its view is not split further. */
TEST(a_view_of_many_dimensions_is_not_split)
{
    const sp_view of = {.rank = 2, .dims = {2, 2}, .strides = {100, 1}};
    for (uint32_t rank = 1; rank <= SP_VIEW_RANK; rank++) {
        sp_view view = {.rank = rank};
        for (uint32_t i = 0; i < rank; i++) view.dims[i] = 1;
        view.dims[rank - 1] = 4;
        view.strides[rank - 1] = 1;
        sp_view *const views[] = {&view};
        CHECK_EQ_INT(sp__view_compose_split(&of, views, 1, 0), rank < SP_KERNEL_RANK);
        CHECK_EQ_INT(view.rank, rank < SP_KERNEL_RANK ? rank + 1 : rank);
    }
}

/* Rows of an image and of the next one, of which each has its rows one after the other. */
TEST(strides_that_carry_are_refused)
{
    const sp_view of = {.rank = 2, .dims = {4, 6}, .strides = {100, 1}};
    sp_view view = {.rank = 1, .dims = {5}, .strides = {1}};
    CHECK(sp__view_compose(&of, &view));
    view = (sp_view){.rank = 1, .first = 3, .dims = {5}, .strides = {1}};
    CHECK(!sp__view_compose(&of, &view));
    view = (sp_view){.rank = 2, .dims = {2, 2}, .strides = {4, 4}};
    CHECK(!sp__view_compose(&of, &view));
    CHECK_EQ_INT(sp__view_even(&of, 12, 1), 6);
    CHECK_EQ_INT(sp__view_even(&of, 12, 2), 3);
    CHECK_EQ_INT(sp__view_even(&of, 4, 4), 0);
    CHECK_EQ_INT(sp__view_even(&of, 3, 7), 0);
    CHECK_EQ_INT(sp__view_even(&of, 2, -1), 0);
}

TEST(an_inverted_permutation_finds_the_original)
{
    data_random random = {72};
    for (int i = 0; i < 2000; i++) {
        sp_view view = {.rank = (uint32_t)pick(&random, 1, 5)}, inverse;
        uint32_t order[SP_VIEW_RANK] = {0};
        int64_t stride = 1;
        for (uint32_t k = 0; k < view.rank; k++) {
            const uint32_t other = (uint32_t)pick(&random, 0, k);
            order[k] = order[other];
            order[other] = k;
            view.dims[k] = pick(&random, 2, 5);
        }
        for (uint32_t k = 0; k < view.rank; k++) {
            view.strides[order[k]] = stride;
            stride *= view.dims[order[k]];
        }
        REQUIRE(sp__view_invert(&view, &inverse));
        CHECK_EQ_INT(sp__view_count(&inverse), sp__view_count(&view));
        for (int64_t k = 0; k < sp__view_count(&view); k++) {
            CHECK_EQ_INT(element(&inverse, element(&view, k)), k);
        }
        view.strides[order[0]] = 2; /* no longer each element once */
        CHECK(!sp__view_invert(&view, &inverse));
        view.strides[order[0]] = 1;
        view.first = 1;
        CHECK(!sp__view_invert(&view, &inverse));
    }
}

TEST_MAIN
