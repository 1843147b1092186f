/* SPDX-License-Identifier: Apache-2.0 */
/* The table of subjects, listed by hand. thread_count counts the threads that act at the same time,
 * workers and the host executor included. */
#include "subject.h"

#define DECLARE(name) void name(void *arg)

/* verify/subjects/subject_tagged_stack.c */
DECLARE(sp__subject_tagged_stack_2);
DECLARE(sp__subject_tagged_stack_3);
/* verify/subjects/subject_handle.c */
DECLARE(sp__subject_handle_release);
DECLARE(sp__subject_handle_publish);
DECLARE(sp__subject_handle_retain);
DECLARE(sp__subject_handle_reuse);
/* verify/subjects/subject_queue.c */
DECLARE(sp__subject_queue_claim);
DECLARE(sp__subject_queue_helpers);
DECLARE(sp__subject_queue_grow);
DECLARE(sp__subject_worker_sleeps);
DECLARE(sp__subject_worker_flush);
DECLARE(sp__subject_worker_new_queue);
DECLARE(sp__subject_list_release);
DECLARE(sp__subject_worker_two_queues);
DECLARE(sp__subject_workers_two);
/* verify/subjects/subject_timeline.c */
DECLARE(sp__subject_timeline_wait);
DECLARE(sp__subject_timeline_waiters);
DECLARE(sp__subject_timeline_cancel);
DECLARE(sp__subject_timeline_cancel_3);
DECLARE(sp__subject_timeline_timeout);
DECLARE(sp__subject_timeline_any);
DECLARE(sp__subject_timeline_any_timeout);
DECLARE(sp__subject_timeline_fault);
/* verify/subjects/subject_park.c */
DECLARE(sp__subject_park_unpark);
DECLARE(sp__subject_park_chain);
DECLARE(sp__subject_park_worker);
DECLARE(sp__subject_park_sleeper);
DECLARE(sp__subject_park_visitor);
/* verify/subjects/subject_host.c */
DECLARE(sp__subject_host_post);
DECLARE(sp__subject_host_stop);
DECLARE(sp__subject_host_block);
DECLARE(sp__subject_host_block_stop);
DECLARE(sp__subject_host_function);
DECLARE(sp__subject_host_own);
/* verify/subjects/subject_tiles.c */
DECLARE(sp__subject_tiles_join);
DECLARE(sp__subject_tiles_again);
DECLARE(sp__subject_tiles_worker);
/* verify/subjects/subject_throttle.c */
DECLARE(sp__subject_throttle);
/* verify/subjects/subject_pool.c */
DECLARE(sp__subject_pool_wait);
DECLARE(sp__subject_pool_wait_two);
DECLARE(sp__subject_pool_timeout);
DECLARE(sp__subject_pool_share);
DECLARE(sp__subject_pool_made);
DECLARE(sp__subject_pool_find);
/* verify/subjects/subject_event.c */
DECLARE(sp__subject_event_wait);
DECLARE(sp__subject_event_release);
DECLARE(sp__subject_event_time);
DECLARE(sp__subject_event_callback);
/* verify/subjects/subject_hazard.c */
DECLARE(sp__subject_hazard_writes);
DECLARE(sp__subject_hazard_read);
DECLARE(sp__subject_hazard_worker);
DECLARE(sp__subject_hazard_host);
DECLARE(sp__subject_hazard_hosts);
DECLARE(sp__subject_storage_release);
DECLARE(sp__subject_storage_touch);
DECLARE(sp__subject_storage_reuse);
/* verify/subjects/subject_allocator.c */
DECLARE(sp__subject_allocator_two);
DECLARE(sp__subject_allocator_shared);
DECLARE(sp__subject_allocator_limit);
DECLARE(sp__subject_allocator_trim);
DECLARE(sp__subject_allocator_flush);
DECLARE(sp__subject_allocator_pending);
DECLARE(sp__subject_allocator_passing);
/* verify/subjects/subject_slots.c */
DECLARE(sp__subject_slots_one);
DECLARE(sp__subject_slots_two);
DECLARE(sp__subject_slots_order);
DECLARE(sp__subject_slots_submitted);
/* verify/subjects/subject_plan_cache.c */
DECLARE(sp__subject_plan_cache);
DECLARE(sp__subject_plan_cache_keys);
DECLARE(sp__subject_plan_cache_retry);
DECLARE(sp__subject_plan_cache_bound);
DECLARE(sp__subject_plan_cache_private);
DECLARE(sp__subject_sessions);
DECLARE(sp__subject_sessions_give);
DECLARE(sp__subject_sessions_in_vain);
/* verify/subjects/subject_base.c */
DECLARE(sp__subject_once);
DECLARE(sp__subject_once_fails);
DECLARE(sp__subject_parker);
DECLARE(sp__subject_parker_two);
DECLARE(sp__subject_parker_timeout);
/* verify/subjects/subject_word_lock.c */
DECLARE(sp__subject_word_lock);
DECLARE(sp__subject_word_cond);
DECLARE(sp__subject_word_cond_hand_over);
DECLARE(sp__subject_word_cond_timeout);
/* verify/subjects/subject_close.c */
DECLARE(sp__subject_close);
DECLARE(sp__subject_close_new_queue);
DECLARE(sp__subject_close_fires);

/* Arguments of subjects that take a number of threads. */
static const uint32_t one = 1, two = 2, three = 3;

/* A worker, and whoever waits as a host does, naps or spins for a while before it sleeps. */
#define SLEEPERS {.free_spins = 4, .timeouts_are_choices = true}
#define SPINNERS {.free_spins = 4}

const sp_subject sp__subjects[] = {
    {.name = "tagged_stack_2",
     .test = sp__subject_tagged_stack_2,
     .thread_count = 2,
     .planted = "aba relaxed_pop relaxed_push",
     .must_exhaust = true},
    {.name = "tagged_stack_3",
     .test = sp__subject_tagged_stack_3,
     .thread_count = 3,
     .planted = "aba relaxed_pop relaxed_push"},
    {.name = "handle_release",
     .test = sp__subject_handle_release,
     .thread_count = 2,
     .must_exhaust = true},
    {.name = "handle_publish",
     .test = sp__subject_handle_publish,
     .thread_count = 2,
     .planted = "handle_early_publish",
     .must_exhaust = true},
    {.name = "handle_retain", .test = sp__subject_handle_retain, .thread_count = 3},
    {.name = "handle_reuse", .test = sp__subject_handle_reuse, .thread_count = 3},
    {.name = "queue_claim",
     .test = sp__subject_queue_claim,
     .thread_count = 2,
     .planted = "no_second_look check_then_act publish_before_data relaxed_look",
     .seconds = 0.5},
    {.name = "queue_helpers_2",
     .test = sp__subject_queue_helpers,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "check_then_act",
     .seconds = 0.5},
    {.name = "queue_helpers_3",
     .test = sp__subject_queue_helpers,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "check_then_act",
     .seconds = 0.5},
    {.name = "queue_grow", .test = sp__subject_queue_grow, .thread_count = 2, .seconds = 0.4},
    {.name = "worker_sleeps",
     .test = sp__subject_worker_sleeps,
     .thread_count = 2,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "worker_flush",
     .test = sp__subject_worker_flush,
     .thread_count = 2,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "worker_new_queue",
     .test = sp__subject_worker_new_queue,
     .thread_count = 2,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "list_release", .test = sp__subject_list_release, .thread_count = 2, .seconds = 0.5},
    {.name = "worker_two_queues",
     .test = sp__subject_worker_two_queues,
     .thread_count = 3,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "workers_two",
     .test = sp__subject_workers_two,
     .thread_count = 3,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "timeline_wait",
     .test = sp__subject_timeline_wait,
     .thread_count = 2,
     .planted = "relaxed_done check_before_register acq_rel_for_seq_cst",
     .options = SPINNERS},
    {.name = "timeline_waiters_same",
     .test = sp__subject_timeline_waiters,
     .arg = (void *)&one,
     .thread_count = 3,
     .planted = "signal_for_broadcast",
     .options = SPINNERS},
    {.name = "timeline_waiters_two",
     .test = sp__subject_timeline_waiters,
     .arg = (void *)&two,
     .thread_count = 3,
     .planted = "signal_for_broadcast",
     .options = SPINNERS},
    {.name = "timeline_cancel",
     .test = sp__subject_timeline_cancel,
     .thread_count = 2,
     .planted = "touch_after_done"},
    {.name = "timeline_cancel_3",
     .test = sp__subject_timeline_cancel_3,
     .thread_count = 3,
     .planted = "touch_after_done"},
    {.name = "timeline_timeout",
     .test = sp__subject_timeline_timeout,
     .thread_count = 2,
     .options = SLEEPERS},
    {.name = "timeline_any",
     .test = sp__subject_timeline_any,
     .thread_count = 3,
     .options = SPINNERS},
    {.name = "timeline_any_timeout",
     .test = sp__subject_timeline_any_timeout,
     .thread_count = 2,
     .options = SLEEPERS},
    {.name = "timeline_fault",
     .test = sp__subject_timeline_fault,
     .thread_count = 2,
     .options = SPINNERS},
    {.name = "park_unpark", .test = sp__subject_park_unpark, .thread_count = 2, .seconds = 0.5},
    {.name = "park_chain_2",
     .test = sp__subject_park_chain,
     .arg = (void *)&two,
     .thread_count = 2,
     .seconds = 0.5},
    {.name = "park_chain_3",
     .test = sp__subject_park_chain,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.5},
    {.name = "park_worker",
     .test = sp__subject_park_worker,
     .thread_count = 3,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "park_sleeper", .test = sp__subject_park_sleeper, .thread_count = 2, .seconds = 0.5},
    {.name = "park_visitor",
     .test = sp__subject_park_visitor,
     .thread_count = 2,
     .planted = "close_before_visitors",
     .seconds = 0.5},
    {.name = "host_post", .test = sp__subject_host_post, .thread_count = 3, .seconds = 0.5},
    {.name = "host_stop",
     .test = sp__subject_host_stop,
     .thread_count = 3,
     .planted = "close_drops_list",
     .seconds = 0.5},
    {.name = "host_block",
     .test = sp__subject_host_block,
     .thread_count = 4,
     .planted = "count_joined_threads",
     .seconds = 0.5},
    {.name = "host_block_stop",
     .test = sp__subject_host_block_stop,
     .thread_count = 4,
     .planted = "close_drops_list count_joined_threads",
     .seconds = 0.5},
    {.name = "host_function_1",
     .test = sp__subject_host_function,
     .arg = (void *)&one,
     .thread_count = 2,
     .seconds = 0.5},
    {.name = "host_function_2",
     .test = sp__subject_host_function,
     .arg = (void *)&two,
     .thread_count = 3,
     .seconds = 0.5},
    {.name = "host_own",
     .test = sp__subject_host_own,
     .thread_count = 3,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "tiles_join_2",
     .test = sp__subject_tiles_join,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "leave_before_joiners",
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_join_3",
     .test = sp__subject_tiles_join,
     .arg = (void *)&three,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_again",
     .test = sp__subject_tiles_again,
     .thread_count = 2,
     .planted = "leave_before_joiners",
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "tiles_worker",
     .test = sp__subject_tiles_worker,
     .thread_count = 2,
     .options = SLEEPERS,
     .seconds = 0.5},
    {.name = "throttle_2",
     .test = sp__subject_throttle,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "permit_is_lost",
     .seconds = 0.5},
    {.name = "throttle_3",
     .test = sp__subject_throttle,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "permit_is_lost",
     .seconds = 0.5},
    {.name = "pool_wait_2",
     .test = sp__subject_pool_wait,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "look_before_return",
     .seconds = 0.4},
    {.name = "pool_wait_3",
     .test = sp__subject_pool_wait,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "pool_wait_two", .test = sp__subject_pool_wait_two, .thread_count = 3, .seconds = 0.4},
    {.name = "pool_timeout_2",
     .test = sp__subject_pool_timeout,
     .arg = (void *)&two,
     .thread_count = 2,
     .options = {.timeouts_are_choices = true},
     .seconds = 0.4},
    {.name = "pool_timeout_3",
     .test = sp__subject_pool_timeout,
     .arg = (void *)&three,
     .thread_count = 3,
     .options = {.timeouts_are_choices = true},
     .seconds = 0.4},
    {.name = "pool_share_2",
     .test = sp__subject_pool_share,
     .arg = (void *)&two,
     .thread_count = 2,
     .seconds = 0.4},
    {.name = "pool_share_3",
     .test = sp__subject_pool_share,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "pool_made", .test = sp__subject_pool_made, .thread_count = 2, .seconds = 0.4},
    {.name = "pool_find_2",
     .test = sp__subject_pool_find,
     .arg = (void *)&two,
     .thread_count = 2,
     .seconds = 0.4},
    {.name = "pool_find_3",
     .test = sp__subject_pool_find,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "event_wait_2",
     .test = sp__subject_event_wait,
     .arg = (void *)&two,
     .thread_count = 2,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "event_wait_3",
     .test = sp__subject_event_wait,
     .arg = (void *)&three,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "event_release",
     .test = sp__subject_event_release,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "event_time",
     .test = sp__subject_event_time,
     .thread_count = 2,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "event_callback",
     .test = sp__subject_event_callback,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_writes",
     .test = sp__subject_hazard_writes,
     .thread_count = 2,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_read_2",
     .test = sp__subject_hazard_read,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_read_3",
     .test = sp__subject_hazard_read,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "missing_storage_lock",
     .seconds = 0.4},
    {.name = "hazard_worker",
     .test = sp__subject_hazard_worker,
     .thread_count = 3,
     .planted = "missing_storage_lock",
     .options = SLEEPERS,
     .seconds = 0.4},
    {.name = "hazard_host",
     .test = sp__subject_hazard_host,
     .thread_count = 2,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "hazard_hosts",
     .test = sp__subject_hazard_hosts,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "storage_release",
     .test = sp__subject_storage_release,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "storage_touch",
     .test = sp__subject_storage_touch,
     .thread_count = 2,
     .planted = "early_reuse release_touch",
     .options = SPINNERS,
     .seconds = 0.4},
    {.name = "storage_reuse",
     .test = sp__subject_storage_reuse,
     .thread_count = 2,
     .planted = "early_reuse",
     .seconds = 0.4},
    {.name = "allocator_two", .test = sp__subject_allocator_two, .thread_count = 2, .seconds = 0.4},
    {.name = "allocator_shared_2",
     .test = sp__subject_allocator_shared,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "two_in_cache",
     .seconds = 0.4},
    {.name = "allocator_shared_3",
     .test = sp__subject_allocator_shared,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "allocator_limit",
     .test = sp__subject_allocator_limit,
     .thread_count = 2,
     .seconds = 0.4},
    {.name = "allocator_trim_2",
     .test = sp__subject_allocator_trim,
     .arg = (void *)&two,
     .thread_count = 2,
     .seconds = 0.4},
    {.name = "allocator_trim_3",
     .test = sp__subject_allocator_trim,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.4},
    {.name = "allocator_flush",
     .test = sp__subject_allocator_flush,
     .thread_count = 2,
     .seconds = 0.4},
    {.name = "allocator_pending_2",
     .test = sp__subject_allocator_pending,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "early_reuse",
     .seconds = 0.4},
    {.name = "allocator_pending_3",
     .test = sp__subject_allocator_pending,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "early_reuse",
     .seconds = 0.4},
    {.name = "allocator_passing",
     .test = sp__subject_allocator_passing,
     .thread_count = 2,
     .planted = "passed_is_nothing",
     .seconds = 0.4},
    {.name = "slots_one_2",
     .test = sp__subject_slots_one,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "line_up_blindly"},
    {.name = "slots_one_3",
     .test = sp__subject_slots_one,
     .arg = (void *)&three,
     .thread_count = 3},
    {.name = "slots_two", .test = sp__subject_slots_two, .thread_count = 3},
    {.name = "slots_order", .test = sp__subject_slots_order, .thread_count = 3},
    {.name = "slots_submitted",
     .test = sp__subject_slots_submitted,
     .thread_count = 3,
     .planted = "leave_promised"},
    {.name = "plan_cache_2",
     .test = sp__subject_plan_cache,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "build_twice",
     .seconds = 0.5},
    {.name = "plan_cache_3",
     .test = sp__subject_plan_cache,
     .arg = (void *)&three,
     .thread_count = 3,
     .seconds = 0.5},
    {.name = "plan_cache_keys",
     .test = sp__subject_plan_cache_keys,
     .thread_count = 3,
     .seconds = 0.5},
    {.name = "plan_cache_retry",
     .test = sp__subject_plan_cache_retry,
     .thread_count = 2,
     .seconds = 0.5},
    {.name = "plan_cache_bound",
     .test = sp__subject_plan_cache_bound,
     .thread_count = 2,
     .planted = "quiet_drop",
     .seconds = 0.5},
    {.name = "plan_cache_private",
     .test = sp__subject_plan_cache_private,
     .thread_count = 2,
     .planted = "evict_in_use",
     .seconds = 0.5},
    {.name = "sessions", .test = sp__subject_sessions, .thread_count = 2},
    {.name = "sessions_give", .test = sp__subject_sessions_give, .thread_count = 2},
    {.name = "sessions_in_vain",
     .test = sp__subject_sessions_in_vain,
     .thread_count = 2,
     .planted = "unmade_session_counts"},
    {.name = "once_2", .test = sp__subject_once, .arg = (void *)&two, .thread_count = 2},
    {.name = "once_3",
     .test = sp__subject_once,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "once_wakes_one"},
    {.name = "once_fails_2",
     .test = sp__subject_once_fails,
     .arg = (void *)&two,
     .thread_count = 2},
    {.name = "once_fails_3",
     .test = sp__subject_once_fails,
     .arg = (void *)&three,
     .thread_count = 3},
    {.name = "parker",
     .test = sp__subject_parker,
     .thread_count = 2,
     .planted = "look_before_token"},
    {.name = "parker_two", .test = sp__subject_parker_two, .thread_count = 3},
    {.name = "parker_timeout",
     .test = sp__subject_parker_timeout,
     .thread_count = 2,
     .options = {.timeouts_are_choices = true}},
    {.name = "word_lock_2",
     .test = sp__subject_word_lock,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "relaxed_unlock"},
    {.name = "word_lock_3",
     .test = sp__subject_word_lock,
     .arg = (void *)&three,
     .thread_count = 3,
     .planted = "held_after_sleep"},
    {.name = "word_cond_2",
     .test = sp__subject_word_cond,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "look_after_unlock"},
    {.name = "word_cond_3",
     .test = sp__subject_word_cond,
     .arg = (void *)&three,
     .thread_count = 3},
    {.name = "word_cond_hand_over", .test = sp__subject_word_cond_hand_over, .thread_count = 3},
    {.name = "word_cond_timeout",
     .test = sp__subject_word_cond_timeout,
     .thread_count = 2,
     .options = {.timeouts_are_choices = true}},
    {.name = "close_one",
     .test = sp__subject_close,
     .arg = (void *)&two,
     .thread_count = 2,
     .planted = "accept_while_closing",
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "close_two",
     .test = sp__subject_close,
     .arg = (void *)&one,
     .thread_count = 3,
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "close_new_queue",
     .test = sp__subject_close_new_queue,
     .thread_count = 2,
     .planted = "queue_after_close",
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "close_fires",
     .test = sp__subject_close_fires,
     .thread_count = 2,
     .planted = "close_before_firing",
     .options = SPINNERS,
     .seconds = 0.5},
    {.name = "close_worker",
     .test = sp__subject_close,
     .arg = (void *)&three,
     .thread_count = 3,
     .options = SLEEPERS,
     .seconds = 0.5},
};

const uint32_t sp__subject_count = sizeof sp__subjects / sizeof sp__subjects[0];
