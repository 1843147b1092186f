/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that share the dispatches of other threads: on which cores, how they learn of a dispatch,
 * and how they wait for the next one.
 *
 * A worker shares only on cores that no run needs (`sharing` of the device counts those that do): a
 * worker beyond them takes the core of a caller, who may be the executor that waits for the
 * worker's last tile. Waking a thread costs as much as several tiles, so a worker that has shared a
 * dispatch spins for the next one, as long as it has a core. All numbers here are hints: an
 * executor runs what nobody shares. */
#include "device/queue/queue.h"

#include "base/clock.h"
#include "base/delay.h"

/* Turns of spinning between two looks at the clock and at the cores. */
#define TURNS_PER_LOOK 32u
/* A sleeping worker is woken for work of so many times the least that is shared. */
#define WAKES_SLEEPER 2u
/* Workers that one thread wakes for a dispatch; these wake others. */
#define WAKES_AT_ONCE 3u
/* A sleeping worker is woken, and a short dispatch shared, only if more than this share of the
 * cores is free: runs that end and begin leave one for a moment. */
#define SPARE_SHARE 8u
/* A dispatch is short up to so many times the shortest one that is shared. */
#define SHORT_MOST 3u
/* Each sharer but the first is woken for so much work of one thread, at least. */
#define SHARER_NS 5000u
/* A very short dispatch is shared only if 1 / QUIET_SHARE of the cores has no run. */
#define QUIET_SHARE 2u
/* A sleeping worker is woken for missed dispatches of so much. Its wake-up costs the caller a
 * hundredth of that. */
#define MISSED_NS 500000u
/* One of so many dispatches that are not shared is timed where the time is not needed at once: a
 * clock may take as long as a small tile. A prime number: the dispatches of a model take turns. */
#define MEASURED_EACH 61u

/* Whether a worker that is counted in `sharing` still has a core. */
static bool device_has_core_for_sharer(const sp_queue_device *device)
{
    if (SP_PLANTED(shares_on_taken_cores)) return true;
    return sp_load_relaxed(&device->sharing) <= sp__device_free_width(&device->base);
}

/* Cores that neither a run nor a sharing worker needs. */
static uint32_t device_share_room(const sp_queue_device *device)
{
    const uint32_t free_width = sp__device_free_width(&device->base);
    const uint32_t sharing = sp_load_relaxed(&device->sharing);
    return sharing < free_width ? free_width - sharing : 0;
}

static bool device_has_spare_cores(const sp_queue_device *device)
{
    return device_share_room(device) > device->base.limits.width / SPARE_SHARE;
}

/* Cores that neither a run nor a dispatch of another thread needs: a worker that spins for the next
 * dispatch is on one of them. */
static uint64_t device_ready_room(const sp_queue_device *device)
{
    const uint64_t spinning =
        SP_PLANTED(spinner_not_ready) ? 0 : sp_load_relaxed(&device->spinning);
    /* Room may be UINT32_MAX: 64 bits. */
    return device_share_room(device) + (uint64_t)__builtin_popcountll(spinning);
}

static bool device_is_quiet(const sp_queue_device *device)
{
    return QUIET_SHARE * device_ready_room(device) >= device->base.limits.width;
}

void sp__queue_wake_sharers(sp_command_queue *queue, uint32_t tiles)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    if (SP_PLANTED(wakes_for_tiles)) {
        sp__queue_wake(device, tiles);
        return;
    }
    const uint64_t left_ns = (uint64_t)tiles * sp_load_relaxed(&queue->tiles.tile_ns);
    const uint64_t worth = device->options.share_ns > 0 ? left_ns / SHARER_NS : tiles;
    const uint32_t most = tiles < WAKES_AT_ONCE ? tiles : WAKES_AT_ONCE;
    const uint32_t least = tiles > 0 ? 1 : 0;
    const uint32_t wanted = worth > most ? most : worth > 0 ? (uint32_t)worth : least;
    const uint32_t woken = sp__queue_wake_spinning(device, wanted);
    if (woken == wanted || left_ns < WAKES_SLEEPER * device->options.share_ns) return;
    if (device_has_spare_cores(device)) sp__queue_wake(device, 1);
}

bool sp__queue_is_very_short(const sp_command_queue *queue, uint64_t ns)
{
    const sp_queue_device_options *options = &sp__queue_device_of(queue)->options;
    return options->ready_ns > 0 && ns >= options->ready_ns && ns < options->share_ns;
}

/* Where few cores are taken, so that runs which begin rarely find the worker on theirs. It may be
 * on its way from the last dispatch to the mask of those that spin. */
static bool queue_has_ready_sharer(const sp_command_queue *queue)
{
    const sp_queue_device *device = sp__queue_device_of(queue);
    const sp_share_history *history = &queue->history;
    if (SP_PLANTED(shares_with_nobody)) return true;
    if (sp__share_trial_is_paused(&history->trials[SP_SHARE_VERY_SHORT])) return false;
    const bool is_awake = history->has_sharer || sp_load_relaxed(&device->spinning) != 0;
    return is_awake && device_is_quiet(device);
}

bool sp__queue_shares(const sp_command_queue *queue, uint64_t ns)
{
    const sp_queue_device *device = sp__queue_device_of(queue);
    const uint64_t share_ns = device->options.share_ns;
    if (ns < share_ns) return sp__queue_is_very_short(queue, ns) && queue_has_ready_sharer(queue);
    const bool is_short = ns < SHORT_MOST * share_ns && !SP_PLANTED(shares_when_crowded);
    const bool is_crowded = device_ready_room(device) <= device->base.limits.width / SPARE_SHARE;
    if (is_short && is_crowded) return false;
    return !sp__share_trial_is_paused(&queue->history.trials[SP_SHARE_LONGER]);
}

bool sp__queue_times_tiles(sp_command_queue *queue, uint64_t ns)
{
    const sp_queue_device *device = sp__queue_device_of(queue);
    sp_share_history *history = &queue->history;
    const bool is_longer = ns >= device->options.share_ns;
    const bool is_needed = is_longer
                               ? history->trials[SP_SHARE_LONGER].paused_until != 0
                               : sp__queue_is_very_short(queue, ns) && device_is_quiet(device);
    return is_needed || ++history->untimed % MEASURED_EACH == 0;
}

/* The trial of a dispatch of a size of which several wake a sleeping worker, and one does not; NULL
 * of others. */
static const sp_share_trial *trial_of_missed(const sp_command_queue *queue, uint64_t ns)
{
    const uint64_t share_ns = sp__queue_device_of(queue)->options.share_ns;
    const sp_share_trial *trials = queue->history.trials;
    if (sp__queue_is_very_short(queue, ns)) return &trials[SP_SHARE_VERY_SHORT];
    const bool is_longer = ns >= share_ns && ns < WAKES_SLEEPER * share_ns;
    return is_longer && !SP_PLANTED(only_very_short_miss) ? &trials[SP_SHARE_LONGER] : NULL;
}

void sp__queue_miss(sp_command_queue *queue, uint64_t ns)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    sp_share_history *history = &queue->history;
    const sp_share_trial *trial = trial_of_missed(queue, ns);
    if (trial == NULL || sp__share_trial_is_paused(trial)) return;
    const uint64_t now = sp_clock_now();
    const bool is_in_row =
        now - history->missed_at < ns + SP_SHARE_SPIN_NS && device_is_quiet(device);
    history->missed_at = now;
    history->missed_ns = is_in_row || SP_PLANTED(wakes_when_crowded) ? history->missed_ns + ns : 0;
    if (history->missed_ns < MISSED_NS || SP_PLANTED(misses_for_ever)) return;
    history->missed_ns = 0;
    sp__queue_wake(device, 1);
}

bool sp__queue_has_tiles_to_share(const sp_command_queue *queue)
{
    return sp__queue_tiles_left(queue) > 0 && device_share_room(sp__queue_device_of(queue)) > 0;
}

bool sp__queue_share_tiles(sp_command_queue *queue)
{
    sp_queue_device *device = sp__queue_device_of(queue);
    if (!sp__queue_has_tiles_to_share(queue)) return false;
    /* Relaxed: a number of threads; it publishes nothing. */
    sp_fetch_add_relaxed(&device->sharing, 1);
    sp__queue_wake_sharers(queue, sp__queue_tiles_left(queue) / 2);
    const bool is_any = sp__queue_join_tiles(queue, device_has_core_for_sharer);
    sp_fetch_sub_relaxed(&device->sharing, 1);
    return is_any;
}

/* Spins until a waker has taken the worker's bit, no longer than until the deadline. */
static bool worker_spin(sp_queue_worker *worker, uint64_t deadline_ns)
{
    for (uint32_t turn = 0;; turn++) {
        if (sp_parker_take(&worker->parker)) return true;
        if (turn % SP_SPIN_TURNS(TURNS_PER_LOOK) == 0 &&
            (!device_has_core_for_sharer(worker->device) || sp_clock_now() >= deadline_ns)) {
            return false;
        }
        sp_spin_hint();
    }
}

bool sp__queue_spin(sp_queue_worker *worker)
{
    sp_queue_device *device = worker->device;
    const uint64_t deadline_ns = worker->shared_ns + SP_SHARE_SPIN_NS;
    if (worker->shared_ns == 0 || sp_clock_now() >= deadline_ns) return false;
    const uint64_t bit = (uint64_t)1 << worker->index;
    sp_fetch_or_seq_cst(&device->spinning, bit);
    sp_delay_point();
    bool is_woken = sp__queue_device_has_work(device);
    if (!is_woken) {
        /* Relaxed: a number of threads; it publishes nothing. */
        sp_fetch_add_relaxed(&device->sharing, 1);
        is_woken = worker_spin(worker, deadline_ns);
        sp_fetch_sub_relaxed(&device->sharing, 1);
    }
    /* A waker may have taken the bit after the last look; the worker polls again before it sleeps.
     */
    sp_fetch_and_acq_rel(&device->spinning, ~bit);
    return is_woken;
}
