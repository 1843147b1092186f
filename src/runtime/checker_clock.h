/* SPDX-License-Identifier: Apache-2.0 */
/* The checker's vector clocks: what is ordered after what. A component per timeline; a vector
 * holds, for each timeline, the newest value that something is ordered after.
 *
 *     stream    its newest submission: the points that it waits for, and all that the submitting
 *               threads had seen; older submissions by snapshots of the changes
 *     thread    the points that it has seen to have passed, and what hand-overs gave it
 *     hand-over what the threads that used an object had seen, for those that use it later
 *
 * Everything is guarded by the checker's lock. Whatever is forgotten counts as ordered. */
#ifndef SP_RUNTIME_CHECKER_CLOCK_H
#define SP_RUNTIME_CHECKER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "device/timeline.h"

/* Timelines with a component; uses on others count as ordered. */
#define SP_CHECK_CLOCKS 256
#define SP_NO_CLOCK UINT32_MAX

typedef struct sp_clock_vector {
    uint64_t values[SP_CHECK_CLOCKS];
} sp_clock_vector;

typedef struct sp_clock_snapshot sp_clock_snapshot;

typedef struct sp_stream_clock {
    const sp_timeline *timeline;
    sp_clock_vector now;
    sp_clock_snapshot *snapshots; /* ring buffer, oldest first; created with the first wait */
    uint32_t first, count;
    bool has_lost; /* a snapshot older than all that are kept is missing */
} sp_stream_clock;

typedef struct sp_thread_clock {
    sp_clock_vector seen;
    struct sp_thread_clock *next;
} sp_thread_clock;

#define SP_CHECK_TOKEN_LISTS 64
#define SP_CHECK_TOKENS 4096

/* The hand-over by one address of the application. */
typedef struct sp_check_token {
    const void *address;
    sp_clock_vector seen;
    struct sp_check_token *next;
} sp_check_token;

typedef struct sp_check_clocks {
    sp_stream_clock streams[SP_CHECK_CLOCKS];
    uint32_t count;
    sp_thread_clock *threads; /* of the running threads */
    sp_clock_vector ended;    /* what ended threads had seen: all threads know it */
    sp_clock_vector all;      /* what any thread has seen: the initial clock of a new thread */
    sp_thread_clock rest;     /* of all threads that could not allocate one */
    sp_check_token *tokens[SP_CHECK_TOKEN_LISTS];
    uint32_t token_count;
    sp_clock_vector other_tokens; /* of addresses beyond SP_CHECK_TOKENS, combined */
} sp_check_clocks;

/* Forgets everything; running threads start anew. */
void sp__clocks_reset(sp_check_clocks *clocks);

/* True if `into` has changed. */
bool sp__clock_join(sp_clock_vector *into, const sp_clock_vector *from);
/* Everything that is ordered before the point, and the point itself. */
bool sp__clock_join_point(sp_check_clocks *clocks, sp_clock_vector *into, sp_point point);

/* Of the timeline, assigned at the first query; SP_NO_CLOCK once all are in use. */
uint32_t sp__clock_of(sp_check_clocks *clocks, const sp_timeline *timeline);
/* The clock of an access's ticket, which is ordered after `after`. */
uint32_t sp__clock_of_ticket(sp_check_clocks *clocks, sp_point ticket,
                             const sp_clock_vector *after);

/* A new thread, and one that ends. In the other functions a NULL thread means those in `rest`. */
void sp__clock_thread_begin(sp_check_clocks *clocks, sp_thread_clock *thread);
void sp__clock_thread_end(sp_check_clocks *clocks, sp_thread_clock *thread);
/* What the thread is ordered after. */
void sp__clock_of_thread(const sp_check_clocks *clocks, const sp_thread_clock *thread,
                         sp_clock_vector *out);

/* The thread has seen what is in `seen`. */
void sp__clock_see(sp_check_clocks *clocks, sp_thread_clock *thread, const sp_clock_vector *seen);
/* The thread has submitted `point` behind `waits`. */
void sp__clock_submitted(sp_check_clocks *clocks, const sp_thread_clock *thread, sp_point point,
                         const sp_point *waits, uint32_t wait_count);
/* A host function of the submission at `point` has returned: what is ordered after the point is
 * ordered after all that its thread had seen. */
void sp__clock_returned(sp_check_clocks *clocks, const sp_thread_clock *thread, sp_point point);

/* Forgets the hand-over by the address. */
void sp__clock_forget_token(sp_check_clocks *clocks, const void *address);
/* The clock of an address; false if several addresses share it. */
bool sp__clock_of_token(sp_check_clocks *clocks, const void *address, sp_clock_vector **out);

#endif
