/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of waiters compared with a plain list, on random sequences of calls. */
#include "device/waiter_heap.h"

#include <string.h>

#include "support/test.h"

#define NODES 64u

typedef struct model {
    sp_waiter_heap heap;
    sp_waiter nodes[NODES];
    bool is_in[NODES];
    uint64_t turns[NODES]; /* when each was added */
    uint64_t turn;
    uint64_t seed;
} model;

static uint32_t draw(model *m, uint32_t bound)
{
    m->seed = m->seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(m->seed >> 33) % bound;
}

/* The first of the contained nodes; NODES if there is none. */
static uint32_t first_of(const model *m)
{
    uint32_t first = NODES;
    for (uint32_t i = 0; i < NODES; i++) {
        if (!m->is_in[i]) continue;
        if (first == NODES || m->nodes[i].value < m->nodes[first].value ||
            (m->nodes[i].value == m->nodes[first].value && m->turns[i] < m->turns[first])) {
            first = i;
        }
    }
    return first;
}

static void add(model *m, uint32_t node, uint64_t value)
{
    m->nodes[node].value = value;
    m->turns[node] = ++m->turn;
    m->is_in[node] = true;
    sp__waiter_heap_add(&m->heap, &m->nodes[node]);
}

static void take(model *m, uint64_t value)
{
    const sp_waiter *taken = sp__waiter_heap_pop(&m->heap, value);
    for (; taken != NULL; taken = taken->next) {
        const uint32_t expected = first_of(m);
        REQUIRE(expected < NODES);
        REQUIRE(taken == &m->nodes[expected]);
        CHECK(taken->value <= value);
        m->is_in[expected] = false;
    }
    const uint32_t left = first_of(m);
    CHECK(left == NODES || m->nodes[left].value > value);
}

static void one_step(model *m)
{
    const uint32_t node = draw(m, NODES);
    switch (draw(m, 4)) {
    case 0:
        CHECK(sp__waiter_heap_remove(&m->heap, &m->nodes[node]) == m->is_in[node]);
        m->is_in[node] = false;
        break;
    case 1:
        take(m, draw(m, 12));
        break;
    default:
        if (!m->is_in[node]) add(m, node, draw(m, 16));
        break;
    }
    const uint32_t first = first_of(m);
    CHECK(m->heap.first == (first < NODES ? &m->nodes[first] : NULL));
}

TEST(random_calls_give_what_a_sorted_list_would)
{
    static model m;
    memset(&m, 0, sizeof m);
    m.seed = 7;
    const uint64_t steps = test_count(2000000, 100000);
    for (uint64_t i = 0; i < steps; i++) one_step(&m);
    take(&m, UINT64_MAX);
    CHECK(m.heap.first == NULL);
}

TEST(equal_values_come_in_the_order_of_their_insertion)
{
    static model m;
    memset(&m, 0, sizeof m);
    for (uint32_t i = 0; i < NODES; i++) add(&m, (i * 37) % NODES, i % 2);
    take(&m, 0);
    take(&m, 1);
    CHECK(m.heap.first == NULL);
}

TEST(what_is_not_in_the_heap_is_not_removed)
{
    sp_waiter_heap heap = {0};
    sp_waiter in = {.value = 1};
    sp_waiter out = {.value = 2};
    CHECK(!sp__waiter_heap_remove(&heap, &out));
    sp__waiter_heap_add(&heap, &in);
    CHECK(!sp__waiter_heap_remove(&heap, &out));
    CHECK(sp__waiter_heap_pop(&heap, 0) == NULL);
    CHECK(sp__waiter_heap_remove(&heap, &in));
    CHECK(!sp__waiter_heap_remove(&heap, &in));
}

TEST_MAIN
