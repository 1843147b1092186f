/* SPDX-License-Identifier: Apache-2.0 */
/* The list that takes completions from the library's threads to Python's.
 * primitive: what the tested file is made of. */
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "python/src/completion_list.h"
#include "support/test.h"

typedef struct item {
    sp_py_completion link;
    uint32_t thread;
    uint64_t number;
} item;

static bool is_readable(const sp_py_completion_list *list)
{
    struct pollfd wait = {.fd = sp_py_completion_list_fd(list), .events = POLLIN};
    return poll(&wait, 1, 0) == 1;
}

TEST(nodes_are_taken_in_the_order_of_their_pushes)
{
    item items[5];
    sp_py_completion_list *list = sp_py_completion_list_create();
    REQUIRE(list != NULL);
    CHECK(!is_readable(list));
    CHECK(sp_py_completion_list_take(list) == NULL);
    for (int i = 0; i < 5; i++) sp_py_completion_list_push(list, &items[i].link);
    CHECK(is_readable(list));
    sp_py_completion *node = sp_py_completion_list_take(list);
    for (int i = 0; i < 5; i++, node = node->next) CHECK(node == &items[i].link);
    CHECK(node == NULL);
    CHECK(!is_readable(list));
    sp_py_completion_list_release(list);
}

TEST(a_wake_without_a_node_makes_the_descriptor_readable_once)
{
    sp_py_completion_list *list = sp_py_completion_list_create();
    REQUIRE(list != NULL);
    sp_py_completion_list_wake(list);
    CHECK(is_readable(list));
    CHECK(sp_py_completion_list_take(list) == NULL);
    CHECK(!is_readable(list));
    sp_py_completion_list_release(list);
}

TEST(a_forwarded_list_passes_on_what_it_has_and_what_it_gets)
{
    item items[3];
    sp_py_completion_list *old = sp_py_completion_list_create();
    sp_py_completion_list *to = sp_py_completion_list_create();
    REQUIRE(old != NULL && to != NULL);
    sp_py_completion_list_push(old, &items[0].link);
    sp_py_completion_list_forward(old, to);
    sp_py_completion_list_push(old, &items[1].link);
    sp_py_completion_list_push(to, &items[2].link);
    CHECK(sp_py_completion_list_take(old) == NULL);
    CHECK(is_readable(to));
    sp_py_completion *node = sp_py_completion_list_take(to);
    for (int i = 0; i < 3; i++, node = node->next) CHECK(node == &items[i].link);
    CHECK(node == NULL);
    sp_py_completion_list_release(old);
    sp_py_completion_list_release(to);
}

TEST(a_forked_child_has_a_descriptor_of_its_own)
{
    item items[2];
    int status;
    sp_py_completion_list *list = sp_py_completion_list_create();
    REQUIRE(list != NULL);
    const int fd = sp_py_completion_list_fd(list);
    sp_py_completion_list_push(list, &items[0].link);
    const pid_t child = fork();
    if (child == 0) {
        sp_py_completion_list_after_fork(list);
        const bool is_new = !is_readable(list) && sp_py_completion_list_fd(list) == fd;
        sp_py_completion_list_push(list, &items[1].link);
        const bool is_woken = is_readable(list);
        const bool has_own = sp_py_completion_list_take(list) == &items[1].link;
        _exit(is_new && is_woken && has_own && !is_readable(list) ? 0 : 1);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(is_readable(list));
    CHECK(sp_py_completion_list_take(list) == &items[0].link);
    sp_py_completion_list_release(list);
}

/* ---- threads ---- */

enum { PUSHERS = 4 };

typedef struct pushing {
    sp_py_completion_list *list, *to;
    uint64_t each;
    atomic_uint done;
    uint64_t next[PUSHERS]; /* expected number of each pusher's next node */
    uint64_t taken;
} pushing;

static void push_items(pushing *p, uint32_t index)
{
    for (uint64_t i = 0; i < p->each; i++) {
        item *it = malloc(sizeof *it);
        REQUIRE(it != NULL);
        it->thread = index;
        it->number = i;
        sp_py_completion_list_push(p->list, &it->link);
    }
    atomic_fetch_add(&p->done, 1);
}

static void take_items(pushing *p, sp_py_completion_list *list)
{
    sp_py_completion *node = sp_py_completion_list_take(list);
    while (node != NULL) {
        item *it = (item *)node;
        node = node->next;
        /* Nodes that pass through a forwarded list may overtake each other. */
        if (p->to == NULL) CHECK_EQ_U64(it->number, p->next[it->thread]++);
        p->taken++;
        free(it);
    }
}

/* Sleeps on the descriptor: a push that did not write to it would make this hang. */
static void drain(pushing *p, sp_py_completion_list *list)
{
    while (p->taken < PUSHERS * p->each) {
        struct pollfd wait = {.fd = sp_py_completion_list_fd(list), .events = POLLIN};
        CHECK_EQ_INT(poll(&wait, 1, 30000), 1);
        take_items(p, list);
    }
}

static void push_or_drain(void *arg, uint32_t index)
{
    pushing *p = arg;
    if (index < PUSHERS) push_items(p, index);
    else drain(p, p->list);
}

TEST(a_drain_that_sleeps_on_the_descriptor_gets_every_node)
{
    pushing p = {.list = sp_py_completion_list_create(), .each = test_count(200000, 5000)};
    REQUIRE(p.list != NULL);
    test_threads(PUSHERS + 1, push_or_drain, &p);
    CHECK_EQ_U64(p.taken, PUSHERS * p.each);
    CHECK(sp_py_completion_list_take(p.list) == NULL);
    sp_py_completion_list_release(p.list);
}

typedef struct sharing {
    sp_py_completion_list *list;
    item *items; /* `each` of each pusher */
    uint64_t each;
    atomic_ullong taken;
} sharing;

static void push_or_take(void *arg, uint32_t index)
{
    sharing *s = arg;
    if (index < PUSHERS) {
        for (uint64_t i = 0; i < s->each; i++) {
            sp_py_completion_list_push(s->list, &s->items[index * s->each + i].link);
        }
        return;
    }
    while (atomic_load(&s->taken) < PUSHERS * s->each) {
        sp_py_completion *node = sp_py_completion_list_take(s->list);
        uint64_t count = 0;
        while (node != NULL) {
            item *it = (item *)node;
            node = node->next;
            it->number++;
            count++;
        }
        atomic_fetch_add(&s->taken, count);
    }
}

/* As threads of an interpreter without a lock may. */
TEST(several_takers_get_each_node_once)
{
    sharing s = {.list = sp_py_completion_list_create(), .each = test_count(100000, 5000)};
    REQUIRE(s.list != NULL);
    s.items = calloc(PUSHERS * s.each, sizeof *s.items);
    REQUIRE(s.items != NULL);
    test_threads(PUSHERS + 3, push_or_take, &s);
    uint64_t once = 0;
    for (uint64_t i = 0; i < PUSHERS * s.each; i++) once += s.items[i].number == 1;
    CHECK_EQ_U64(once, PUSHERS * s.each);
    CHECK_EQ_U64(atomic_load(&s.taken), PUSHERS * s.each);
    free(s.items);
    sp_py_completion_list_release(s.list);
}

/* Each push has a reference, which it drops; the owner forwards its list and drops its own. */
static void push_and_release(void *arg, uint32_t index)
{
    pushing *p = arg;
    if (index < PUSHERS) {
        push_items(p, index);
        sp_py_completion_list_release(p->list);
        return;
    }
    sp_py_completion_list_forward(p->list, p->to);
    sp_py_completion_list_release(p->list);
    drain(p, p->to);
}

/* With a reference too few a push writes to a freed list, which the sanitizers find. */
TEST(a_list_lives_until_its_last_push)
{
    for (uint64_t round = 0; round < test_count(500, 50); round++) {
        pushing p = {.list = sp_py_completion_list_create(),
                     .to = sp_py_completion_list_create(),
                     .each = 20};
        REQUIRE(p.list != NULL && p.to != NULL);
        for (int i = 0; i < PUSHERS; i++) sp_py_completion_list_retain(p.list);
        test_threads(PUSHERS + 1, push_and_release, &p);
        CHECK_EQ_U64(p.taken, PUSHERS * p.each);
        sp_py_completion_list_release(p.to);
    }
}

static void push_or_forward(void *arg, uint32_t index)
{
    pushing *p = arg;
    if (index < PUSHERS) {
        push_items(p, index);
        return;
    }
    for (int i = 0; i < 20; i++) take_items(p, p->list);
    sp_py_completion_list_forward(p->list, p->to);
    drain(p, p->to);
}

TEST(no_node_is_lost_while_a_list_is_forwarded)
{
    for (uint64_t round = 0; round < test_count(200, 20); round++) {
        pushing p = {.list = sp_py_completion_list_create(),
                     .to = sp_py_completion_list_create(),
                     .each = 200};
        REQUIRE(p.list != NULL && p.to != NULL);
        test_threads(PUSHERS + 1, push_or_forward, &p);
        CHECK_EQ_U64(p.taken, PUSHERS * p.each);
        sp_py_completion_list_release(p.list);
        sp_py_completion_list_release(p.to);
    }
}

TEST_MAIN
