/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workspace.h"

#include "base/backoff.h"
#include "base/delay.h"
#include "base/error.h"
#include "device/wait.h"
#include "runtime/allocator.h"
#include "runtime/workspace_growth.h"

/* A GPU computes several runs of small arenas at once; those of large ones fill it. */
#define TOTAL_BYTES ((uint64_t)96 << 20)
#define LEAST_COUNT 4

uint32_t sp__workspaces_most(uint64_t bytes)
{
    const uint64_t count = TOTAL_BYTES / (bytes + 1);
    if (count > SP_WORKSPACES_MOST) return SP_WORKSPACES_MOST;
    return count < LEAST_COUNT ? LEAST_COUNT : (uint32_t)count;
}

void sp__workspaces_init(sp_workspaces *workspaces, sp_allocator *allocator)
{
    workspaces->allocator = allocator;
    sp_mutex_init(&workspaces->lock, SP_LOCK_WORKSPACES);
}

static bool is_idle(const sp_workspace *workspace)
{
    return workspace->last.timeline == NULL || sp__point_has_passed(workspace->last);
}

/* It ends by itself. */
static bool is_issued(const sp_workspace *workspace)
{
    sp_queue *queue = workspace->last.timeline->owner;
    return queue->device->vtable->is_issued(queue, workspace->last.value);
}

static uint64_t largest_need_locked(sp_workspaces *workspaces) SP_REQUIRES(&workspaces->lock)
{
    uint64_t bytes = 0;
    for (const sp_workspace_need *it = workspaces->needs; it != NULL; it = it->next) {
        if (it->bytes > bytes) bytes = it->bytes;
    }
    return bytes;
}

/* A new one, without memory, for its taker; NULL: there are too many. */
static sp_workspace *workspace_add_locked(sp_workspaces *workspaces) SP_REQUIRES(&workspaces->lock)
{
    if (workspaces->count == SP_WORKSPACES_MOST) return NULL;
    return &workspaces->list[workspaces->count++];
}

/* ---- shrinking ---- */

/* Not the largest one, or of equal ones not the first. */
static bool is_spare_locked(const sp_workspaces *workspaces, const sp_workspace *workspace)
    SP_REQUIRES(&workspaces->lock)
{
    for (uint32_t i = 0; i < workspaces->count; i++) {
        const sp_workspace *it = &workspaces->list[i];
        if (it->mapped > workspace->mapped) return true;
        if (it->mapped == workspace->mapped && it < workspace) return true;
    }
    return false;
}

/* The parts that are not needed, newest first; the workspace is taken if there are any. Its last
 * point has passed: growing does not disturb what uses a workspace, and shrinking does. */
static sp_workspace_part *surplus_take_locked(sp_workspaces *workspaces, sp_workspace *workspace)
    SP_REQUIRES(&workspaces->lock)
{
    const bool is_spare = is_spare_locked(workspaces, workspace) || SP_PLANTED(workspace_unneeded);
    const uint64_t needed = is_spare ? 0 : largest_need_locked(workspaces);
    sp_workspace_part *first = workspace->parts, **end = &workspace->parts;
    while (*end != NULL && (*end)->offset >= needed) {
        workspace->mapped = (*end)->offset;
        end = &(*end)->next;
    }
    if (end == &workspace->parts) return NULL;
    workspace->parts = *end;
    *end = NULL;
    workspace->is_taken = true;
    return first;
}

static bool workspace_trim(sp_workspaces *workspaces, sp_workspace *workspace)
{
    sp__allocator_giver_begin(workspaces->allocator);
    sp_mutex_lock(&workspaces->lock);
    const bool is_done = is_idle(workspace) || SP_PLANTED(workspace_busy_trimmed);
    const bool is_free = !workspace->is_taken && is_done;
    sp_workspace_part *surplus = is_free ? surplus_take_locked(workspaces, workspace) : NULL;
    sp_mutex_unlock(&workspaces->lock);
    if (surplus != NULL) {
        sp_delay_point();
        sp__workspace_parts_destroy(workspaces, surplus);
        sp__workspace_put_back(workspaces, workspace);
    }
    sp__allocator_giver_end(workspaces->allocator, surplus != NULL);
    return surplus != NULL;
}

bool sp__workspaces_trim(sp_workspaces *workspaces)
{
    bool is_any = false;
    for (uint32_t i = 0; i < SP_WORKSPACES_MOST; i++) {
        is_any |= workspace_trim(workspaces, &workspaces->list[i]);
    }
    return is_any;
}

bool sp__workspaces_trim_one(sp_workspaces *workspaces)
{
    if (workspaces->allocator->dev->limits.range_unit == 0) return false;
    uint32_t at = 0;
    while (at < SP_WORKSPACES_MOST && !workspace_trim(workspaces, &workspaces->list[at])) at++;
    return at < SP_WORKSPACES_MOST;
}

void sp__workspaces_deinit(sp_workspaces *workspaces)
{
    for (uint32_t i = 0; i < SP_WORKSPACES_MOST; i++) {
        sp_workspace *workspace = &workspaces->list[i];
        sp__workspace_parts_destroy(workspaces, workspace->parts);
        if (workspace->range.address != NULL) {
            workspace->range.device->vtable->range_destroy(&workspace->range);
        }
    }
    sp_mutex_deinit(&workspaces->lock);
}

/* ---- needs ---- */

static void need_unlink_locked(sp_workspaces *workspaces, const sp_workspace_need *need)
    SP_REQUIRES(&workspaces->lock)
{
    (void)workspaces; /* for the analysis */
    *need->link = need->next;
    if (need->next != NULL) need->next->link = need->link;
}

/* The first of equal ones, or NULL. */
static sp_workspace *largest_find_locked(sp_workspaces *workspaces) SP_REQUIRES(&workspaces->lock)
{
    sp_workspace *largest = NULL;
    for (uint32_t i = 0; i < workspaces->count; i++) {
        sp_workspace *it = &workspaces->list[i];
        if (largest == NULL || it->mapped > largest->mapped) largest = it;
    }
    return largest;
}

/* The largest; NULL: it suffices, or (*suffices is false) is taken. No other one is grown for a
 * need, so what is not the largest is spare. */
static sp_workspace *take_to_grow_locked(sp_workspaces *workspaces, uint64_t bytes, bool *suffices)
    SP_REQUIRES(&workspaces->lock)
{
    sp_workspace *largest = largest_find_locked(workspaces);
    *suffices = largest != NULL && largest->mapped >= bytes;
    if (*suffices) return NULL;
    if (largest == NULL) largest = workspace_add_locked(workspaces);
    if (largest->is_taken) return NULL;
    largest->is_taken = true;
    return largest;
}

/* What is waited for first: nothing, work that ends by itself, work that may wait for anything. */
static uint32_t wait_rank(const sp_workspace *workspace)
{
    if (is_idle(workspace)) return 0;
    return is_issued(workspace) ? 1 : 2;
}

/* What a hold waits for: an issued or idle one, which no submission gets from then on; else some of
 * those that are taken, for a moment; else the first of these points. */
typedef struct spare_choice {
    sp_workspace *taken;
    bool is_any_taken; /* by another thread */
    uint32_t count;
    sp_point points[SP_WORKSPACES_MOST]; /* of those behind work that may wait for anything */
} spare_choice;

/* Of spare ones with memory. */
static void spare_choose_locked(sp_workspaces *workspaces, spare_choice *out)
    SP_REQUIRES(&workspaces->lock)
{
    uint32_t rank = 2;
    *out = (spare_choice){0};
    for (uint32_t i = 0; i < workspaces->count; i++) {
        sp_workspace *it = &workspaces->list[i];
        if (!is_spare_locked(workspaces, it)) continue;
        if (it->is_taken) out->is_any_taken = true;
        if (it->is_taken || it->mapped == 0) continue;
        const uint32_t own = wait_rank(it);
        if (own == 2) out->points[out->count++] = it->last;
        if (own >= rank) continue;
        out->taken = it;
        rank = own;
    }
    if (out->taken != NULL) out->taken->is_taken = true;
}

/* Waits for the end of what uses the taken workspace, and returns its memory. */
static bool spare_return(sp_workspaces *workspaces, sp_workspace *spare, sp_point last)
{
    const bool has_passed =
        last.timeline == NULL || sp__point_wait_passed(last, SP_NO_DEADLINE) == SP_OK;
    sp__allocator_giver_begin(workspaces->allocator);
    sp_mutex_lock(&workspaces->lock);
    sp_workspace_part *surplus = has_passed ? surplus_take_locked(workspaces, spare) : NULL;
    sp_mutex_unlock(&workspaces->lock);
    sp__workspace_parts_destroy(workspaces, surplus);
    sp__workspace_put_back(workspaces, spare);
    sp__allocator_giver_end(workspaces->allocator, surplus != NULL);
    return has_passed;
}

/* Waits for memory of spare workspaces, which runs use; false if none has any. Work that may wait
 * for anything may wait for the hold: only the first of such to end is waited for, and the
 * workspaces are left to submissions. */
static bool spare_wait(sp_workspaces *workspaces, sp_backoff *backoff)
{
    spare_choice choice;
    sp_mutex_lock(&workspaces->lock);
    spare_choose_locked(workspaces, &choice);
    const sp_point last = choice.taken != NULL ? choice.taken->last : (sp_point){0};
    sp_mutex_unlock(&workspaces->lock);
    if (choice.taken != NULL) return spare_return(workspaces, choice.taken, last);
    if (choice.is_any_taken) {
        sp_backoff_turn(backoff);
        return true;
    }
    bool is_ended; /* by the thread's check: the caller fails for want of memory */
    return choice.count > 0 &&
           sp__point_wait_any_passed(choice.points, choice.count, &is_ended) == SP_OK;
}

static void short_hold_count(sp_workspaces *workspaces, uint32_t change)
{
    sp_mutex_lock(&workspaces->lock);
    workspaces->short_holds += change;
    sp_mutex_unlock(&workspaces->lock);
}

static bool has_changed(sp_workspaces *workspaces, const sp_workspace *workspace, uint64_t mapped)
{
    sp_mutex_lock(&workspaces->lock);
    const bool is_other = workspace->mapped != mapped;
    sp_mutex_unlock(&workspaces->lock);
    return is_other;
}

/* Submissions get the workspace while this waits for memory, since that may be behind them. So
 * another thread may have grown it by then, and less is needed. */
static sp_status one_grow(sp_workspaces *workspaces, uint64_t bytes, bool is_spare)
{
    sp_backoff backoff = {0};
    for (;; sp_backoff_turn(&backoff)) {
        bool suffices;
        sp_workspace_growth growth = {.request = is_spare ? SP_UNCUT_SPARE : SP_UNCUT_NEEDED};
        sp_mutex_lock(&workspaces->lock);
        sp_workspace *workspace = take_to_grow_locked(workspaces, bytes, &suffices);
        sp_mutex_unlock(&workspaces->lock);
        if (suffices) return SP_OK;
        if (workspace == NULL) continue;
        sp_status status = sp__workspace_growth_plan(workspaces, workspace, bytes, &growth);
        sp__workspace_put_back(workspaces, workspace);
        if (status == SP_OK) status = sp__workspace_grow(workspaces, workspace, &growth);
        const bool is_short = status == SP_OUT_OF_MEMORY;
        if (is_short && has_changed(workspaces, workspace, growth.from)) continue;
        if (status != SP_BUSY) return status;
    }
}

/* As long as memory of spare ones is to be had, of which none gets more meanwhile. */
static sp_status one_grow_short(sp_workspaces *workspaces, uint64_t bytes)
{
    sp_backoff backoff = {0};
    sp_status status = SP_OUT_OF_MEMORY;
    short_hold_count(workspaces, 1);
    while (status == SP_OUT_OF_MEMORY && spare_wait(workspaces, &backoff)) {
        status = one_grow(workspaces, bytes, false);
    }
    short_hold_count(workspaces, UINT32_MAX);
    return status;
}

sp_status sp__workspaces_hold(sp_workspaces *workspaces, sp_workspace_need *need, uint64_t bytes,
                              bool is_spare)
{
    sp_mutex_lock(&workspaces->lock);
    *need =
        (sp_workspace_need){.bytes = bytes, .next = workspaces->needs, .link = &workspaces->needs};
    if (need->next != NULL) need->next->link = &need->next;
    workspaces->needs = need;
    sp_mutex_unlock(&workspaces->lock);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = one_grow(workspaces, bytes, is_spare);
    /* More than the device has is not to be had by waiting. */
    const bool is_possible = bytes <= workspaces->allocator->dev->limits.memory_bytes;
    if (status == SP_OUT_OF_MEMORY && !is_spare && is_possible) {
        status = one_grow_short(workspaces, bytes);
    }
    status = sp__error_settle(&scope, status);
    if (status != SP_OK) sp__workspaces_drop(workspaces, need);
    return status;
}

void sp__workspaces_drop(sp_workspaces *workspaces, sp_workspace_need *need)
{
    sp_mutex_lock(&workspaces->lock);
    need_unlink_locked(workspaces, need);
    const bool is_last = workspaces->needs == NULL;
    sp_mutex_unlock(&workspaces->lock);
    if (is_last) (void)sp__workspaces_trim(workspaces);
}

/* ---- submissions ---- */

/* What is preferred, in this order. */
typedef enum workspace_rank {
    RANK_FORMER, /* the lists have its address */
    RANK_READY,
    RANK_BEHIND, /* work that ends by itself */
    RANK_STUCK,  /* behind work that may wait for anything */
    RANK_NONE
} workspace_rank;

typedef struct workspace_wish {
    uint64_t bytes;
    const sp_queue *queue;
    const sp_workspace *former;
    bool may_grow;
    bool is_stuck; /* all that suffice are behind work that may wait for anything */
} workspace_wish;

/* The queue orders the submission behind the last one, or there is nothing to be behind. */
static bool is_ordered(const sp_workspace *workspace, const sp_queue *queue)
{
    return workspace->last.timeline == &queue->timeline || is_idle(workspace);
}

static workspace_rank rank_of(const sp_workspace *workspace, const workspace_wish *wish)
{
    if (workspace->is_taken || workspace->mapped < wish->bytes) return RANK_NONE;
    if (!is_ordered(workspace, wish->queue)) {
        return is_issued(workspace) ? RANK_BEHIND : RANK_STUCK;
    }
    return workspace == wish->former ? RANK_FORMER : RANK_READY;
}

static sp_workspace *best_find_locked(sp_workspaces *workspaces, const workspace_wish *wish,
                                      workspace_rank *rank) SP_REQUIRES(&workspaces->lock)
{
    sp_workspace *best = NULL;
    *rank = RANK_NONE;
    for (uint32_t i = 0; i < workspaces->count; i++) {
        sp_workspace *it = &workspaces->list[i];
        const workspace_rank own = rank_of(it, wish);
        if (own >= *rank) continue;
        best = it;
        *rank = own;
    }
    return best;
}

/* Those that suffice, and those that are being grown. */
static uint32_t count_large_locked(const sp_workspaces *workspaces, uint64_t bytes)
    SP_REQUIRES(&workspaces->lock)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < workspaces->count; i++) {
        const sp_workspace *it = &workspaces->list[i];
        count += it->is_taken || it->mapped >= bytes;
    }
    return count;
}

/* The largest of those that are ready but too small, or a new one. */
static sp_workspace *small_find_locked(sp_workspaces *workspaces, const workspace_wish *wish)
    SP_REQUIRES(&workspaces->lock)
{
    sp_workspace *found = NULL;
    for (uint32_t i = 0; i < workspaces->count; i++) {
        sp_workspace *it = &workspaces->list[i];
        if (it->is_taken || it->mapped >= wish->bytes || !is_ordered(it, wish->queue)) continue;
        if (found == NULL || it->mapped > found->mapped) found = it;
    }
    return found != NULL ? found : workspace_add_locked(workspaces);
}

/* Another one is made although there are many, and although others are short of memory, where the
 * submission would follow work that may wait for it. */
static sp_workspace *workspace_take_locked(sp_workspaces *workspaces, workspace_wish *wish)
    SP_REQUIRES(&workspaces->lock)
{
    workspace_rank rank;
    sp_workspace *best = best_find_locked(workspaces, wish, &rank);
    wish->is_stuck = rank == RANK_STUCK;
    /* Taken ones are put back in a moment, so they are waited for. */
    const bool is_useful =
        rank > RANK_READY && workspaces->short_holds == 0 &&
        count_large_locked(workspaces, wish->bytes) < sp__workspaces_most(wish->bytes);
    const bool is_new = wish->may_grow && (wish->is_stuck || is_useful);
    sp_workspace *small = is_new ? small_find_locked(workspaces, wish) : NULL;
    if (small != NULL) best = small;
    if (best != NULL && !SP_PLANTED(workspace_shared)) best->is_taken = true;
    return best;
}

/* From free memory alone: there is another one that suffices. */
static bool workspace_grow_spare(sp_workspaces *workspaces, sp_workspace *workspace,
                                 const workspace_wish *wish)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_workspace_growth growth = {.request = wish->is_stuck ? SP_UNCUT_FREE : SP_UNCUT_SPARE,
                                  .is_takers = true};
    sp_status status = sp__workspace_growth_plan(workspaces, workspace, wish->bytes, &growth);
    if (status == SP_OK) status = sp__workspace_grow(workspaces, workspace, &growth);
    sp__error_put_back(&scope);
    if (status != SP_OK) sp__workspace_put_back(workspaces, workspace);
    return status == SP_OK;
}

sp_workspace *sp__workspace_acquire(sp_workspaces *workspaces, const sp_workspace_need *need,
                                    const sp_queue *queue, sp_workspace *former, sp_point *after)
{
    workspace_wish wish = {
        .bytes = need->bytes, .queue = queue, .former = former, .may_grow = true};
    sp_backoff backoff = {0};
    for (;;) {
        *after = (sp_point){0};
        bool is_small = false;
        sp_mutex_lock(&workspaces->lock);
        sp_workspace *workspace = workspace_take_locked(workspaces, &wish);
        if (workspace != NULL) {
            is_small = workspace->mapped < wish.bytes;
            if (!is_ordered(workspace, queue) && !SP_PLANTED(workspace_early)) {
                *after = workspace->last;
            }
        }
        sp_mutex_unlock(&workspaces->lock);
        sp_delay_point();
        if (workspace == NULL) {
            sp_backoff_turn(&backoff);
        } else if (!is_small || workspace_grow_spare(workspaces, workspace, &wish)) {
            return workspace;
        } else {
            wish.may_grow = false;
        }
    }
}

void sp__workspace_release(sp_workspaces *workspaces, sp_workspace *workspace, sp_point last)
{
    sp_mutex_lock(&workspaces->lock);
    if (last.timeline != NULL) workspace->last = last;
    workspace->is_taken = false;
    sp_mutex_unlock(&workspaces->lock);
}
