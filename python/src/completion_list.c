/* SPDX-License-Identifier: Apache-2.0 */
/* primitive: the extension has the library's public headers only. */
#include "completion_list.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct sp_py_completion_list {
    _Atomic(sp_py_completion *) head; /* newest first; release by a push, acquire by a take */
    /* Sequentially consistent with `head`: a pusher writes `head` and reads this, a forwarder
     * writes this and takes `head`; one of the two sees the other. */
    _Atomic(sp_py_completion_list *) forward;
    atomic_uint references;
    int fd;
};

sp_py_completion_list *sp_py_completion_list_create(void)
{
    sp_py_completion_list *list = calloc(1, sizeof *list);
    if (list == NULL) return NULL;
    atomic_init(&list->references, 1);
    list->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (list->fd >= 0) return list;
    free(list);
    return NULL;
}

void sp_py_completion_list_retain(sp_py_completion_list *list)
{
    atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
}

void sp_py_completion_list_release(sp_py_completion_list *list)
{
    if (list == NULL) return;
    if (atomic_fetch_sub_explicit(&list->references, 1, memory_order_acq_rel) != 1) return;
    sp_py_completion_list_release(atomic_load_explicit(&list->forward, memory_order_relaxed));
    if (list->fd >= 0) close(list->fd);
    free(list);
}

int sp_py_completion_list_fd(const sp_py_completion_list *list)
{
    return list->fd;
}

void sp_py_completion_list_wake(sp_py_completion_list *list)
{
    const uint64_t one = 1;
    /* It fails only where the counter is at its limit: then the descriptor is readable. */
    const ssize_t written = write(list->fd, &one, sizeof one);
    (void)written;
}

/* A chain whose first node is the newest. */
static void chain_push(sp_py_completion_list *list, sp_py_completion *first, sp_py_completion *last)
{
    sp_py_completion *head = atomic_load_explicit(&list->head, memory_order_relaxed);
    do {
        last->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&list->head, &head, first, memory_order_seq_cst,
                                                    memory_order_relaxed));
    if (head == NULL) sp_py_completion_list_wake(list);
}

static void chain_move(sp_py_completion_list *list, sp_py_completion_list *to)
{
    sp_py_completion *first = atomic_exchange_explicit(&list->head, NULL, memory_order_seq_cst);
    if (first == NULL) return;
    sp_py_completion *last = first;
    while (last->next != NULL) last = last->next;
    chain_push(to, first, last);
}

void sp_py_completion_list_push(sp_py_completion_list *list, sp_py_completion *node)
{
    chain_push(list, node, node);
    sp_py_completion_list *to = atomic_load_explicit(&list->forward, memory_order_seq_cst);
    if (to != NULL) chain_move(list, to);
}

sp_py_completion *sp_py_completion_list_take(sp_py_completion_list *list)
{
    uint64_t count;
    /* Before the nodes are taken: a push after that finds an empty list, and writes again. */
    const ssize_t got = read(list->fd, &count, sizeof count);
    (void)got;
    sp_py_completion *newest = atomic_exchange_explicit(&list->head, NULL, memory_order_acquire);
    sp_py_completion *oldest = NULL;
    while (newest != NULL) {
        sp_py_completion *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void sp_py_completion_list_forward(sp_py_completion_list *list, sp_py_completion_list *to)
{
    sp_py_completion_list_retain(to);
    atomic_store_explicit(&list->forward, to, memory_order_seq_cst);
    chain_move(list, to);
}

void sp_py_completion_list_after_fork(sp_py_completion_list *list)
{
    const int own = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    atomic_store_explicit(&list->head, NULL, memory_order_relaxed);
    if (own < 0) {
        close(list->fd);
        list->fd = -1; /* poll() ignores it */
        return;
    }
    dup2(own, list->fd);
    fcntl(list->fd, F_SETFD, FD_CLOEXEC);
    close(own);
}
