/* SPDX-License-Identifier: Apache-2.0 */
/* Whether sharing dispatches saves time, by comparing: what those that were shared have taken, and
 * what they take on one thread. It does not where cores exchange a cache line in longer than some
 * tiles take, nor where another program has the cores, so that executors wait for workers that have
 * none. Neither can be seen otherwise. */
#include "device/queue/queue.h"

#include "base/clock.h"

/* Sharing has to save 1 / SAVED_SHARE of the time for which it has kept another core awake since
 * the last judgement, or the dispatches are not shared for a while. */
#define SAVED_SHARE 16u
/* The first of several pauses in a row, and how often the next one is twice as long. */
#define PAUSE_NS 5000000u
#define MOST_DOUBLINGS 7u
/* After some judgements there is a short pause, whatever they say, in which the dispatches are
 * timed on one thread: between shared ones that would take longer, since halves of what they read
 * are in another core's cache then. */
#define SHORT_PAUSE_NS 2000000u

/* After how much of its dispatches, on one thread, a class is judged, and after how many judgements
 * they are timed, at most. Longer ones lose more by a pause. */
static const struct {
    uint64_t judged_ns;
    uint32_t timed_each;
} classes[SP_SHARE_CLASSES] = {
    [SP_SHARE_VERY_SHORT] = {1000000, 64},
    [SP_SHARE_LONGER] = {4000000, 512},
};

bool sp__share_trial_is_paused(const sp_share_trial *trial)
{
    return trial->paused_until != 0 && sp_clock_now() < trial->paused_until;
}

/* How long a worker has been awake since the dispatch before this one: it spins no longer than
 * SP_SHARE_SPIN_NS, so between bursts of runs no worker is. */
static uint64_t trial_awake_ns(const sp_share_trial *trial, uint64_t now, uint64_t taken_ns)
{
    const uint64_t since_ns = now - trial->shared_at, most = taken_ns + SP_SHARE_SPIN_NS;
    return since_ns < most || SP_PLANTED(counts_sleep) ? since_ns : most;
}

/* One judgement may have met an interrupt. */
static uint64_t pause_after(uint32_t refusals)
{
    if (refusals < 2 && !(refusals == 1 && SP_PLANTED(believes_one_judgement))) return 0;
    const uint32_t doublings = refusals < 2 || SP_PLANTED(equal_pauses) ? 0 : refusals - 2;
    return (uint64_t)PAUSE_NS << (doublings < MOST_DOUBLINGS ? doublings : MOST_DOUBLINGS);
}

/* What was first known of the tiles is what one of them took, out of cold caches: the first
 * judgements are followed by pauses soon. */
static bool is_timed_after(uint32_t judgements, uint32_t each)
{
    if (SP_PLANTED(never_timed_alone)) return false;
    const bool is_power_of_two = (judgements & (judgements - 1)) == 0;
    return judgements % each == 0 || (is_power_of_two && judgements < each);
}

static void trial_judge(sp_share_trial *trial, sp_share_class class, uint64_t now)
{
    const uint64_t wanted_ns = trial->awake_ns / SAVED_SHARE;
    const bool pays = trial->taken_ns + wanted_ns < trial->alone_ns || SP_PLANTED(never_pauses);
    const bool is_timed = is_timed_after(++trial->judgements, classes[class].timed_each);
    trial->refusals = pays ? 0 : trial->refusals + 1;
    const uint64_t refused_ns = pause_after(trial->refusals);
    const uint64_t pause_ns = refused_ns > 0 || !is_timed ? refused_ns : SHORT_PAUSE_NS;
    trial->paused_until = pause_ns > 0 ? now + pause_ns : 0;
    trial->alone_ns = trial->taken_ns = 0;
}

void sp__queue_judge_sharing(sp_command_queue *queue, uint64_t alone_ns, uint64_t taken_ns)
{
    const sp_share_class class =
        sp__queue_is_very_short(queue, alone_ns) ? SP_SHARE_VERY_SHORT : SP_SHARE_LONGER;
    sp_share_trial *trial = &queue->history.trials[class];
    const uint64_t now = sp_clock_now();
    if (trial->alone_ns == 0) trial->awake_ns = taken_ns;
    else trial->awake_ns += trial_awake_ns(trial, now, taken_ns);
    trial->shared_at = now;
    trial->alone_ns += alone_ns;
    trial->taken_ns += taken_ns;
    if (trial->alone_ns >= classes[class].judged_ns) trial_judge(trial, class, now);
}
