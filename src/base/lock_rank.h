/* SPDX-License-Identifier: Apache-2.0 */
/* The order of locks. A lock is acquired only while all locks that its thread holds are above it in
 * this list, and no lock is acquired inside a leaf; locks of one rank are held together only if
 * they have places (sp_mutex_set_place) and are acquired in ascending order of these. Debug builds
 * check this at every lock, see base/lock_check.h. docs/concurrency.md has the list too;
 * scripts/check-locks compares the two, and both with the mutexes in the sources. */
#ifndef SP_BASE_LOCK_RANK_H
#define SP_BASE_LOCK_RANK_H

/* kind (NESTS or LEAF), name, lock, file, what it guards. */
#define SP_LOCK_LIST(X)                                                                            \
    X(NESTS, RUNTIME, "runtime.lock", "runtime/runtime_state.c",                                   \
      "coming up and going down, which devices are open or being opened")                          \
    X(NESTS, LIST, "sp_rt_list.lock", "runtime/command_list.c",                                    \
      "a public list while it is recorded")                                                        \
    X(NESTS, STORAGE, "sp_rt_storage.lock", "runtime/storage.h",                                   \
      "what a storage is, its frontier, its open host accesses. Several at once, in the order of " \
      "their slots")                                                                               \
    X(NESTS, WAIT_GRAPH, "graph.lock", "device/wait_graph.c",                                      \
      "waits in the wait-for graph; what a search notes in each timeline")                         \
    X(NESTS, QUEUE, "sp_command_queue.lock", "device/queue/queue.h",                               \
      "the producer side of a queue: tail, pool of chunks, waits that are ahead, closed or not")   \
    X(NESTS, GPU_QUEUE, "sp_gpu_queue.lock", "device/gpu/gpu.h",                                   \
      "signals, timestamps and writes elsewhere of a GPU stream, raising its timeline")            \
    X(NESTS, CLASS_POOL, "sp_class_pool.lock", "runtime/block_pool.h",                             \
      "free blocks of one size class")                                                             \
    X(NESTS, BATCH_QUEUE, "sp_rt_batch_queue.lock", "batch/batch_queue.h",                         \
      "options, groups and counts of a batch queue, submitters that wait for room")                \
    X(NESTS, PARTIAL_THREADS, "pool.lock", "batch/partial_threads.c",                              \
      "submitted runs of partial plans, queued and computed, and the threads that compute them")   \
    X(LEAF, TIMELINE, "sp_timeline.lock", "device/timeline.h",                                     \
      "waiters, the log of failures; of a host access what it waits for")                          \
    X(LEAF, QUEUE_DEVICE, "sp_queue_device.lock", "device/queue/queue.h",                          \
      "whether the device is closed, and the adding of queues")                                    \
    X(LEAF, EXECUTOR, "executor.lock", "device/host_executor.c",                                   \
      "queued host jobs, the executor's threads")                                                  \
    X(LEAF, THROTTLE, "sp_throttle.lock", "device/queue/queue.h",                                  \
      "permits of a limited quirk and the queues parked for one")                                  \
    X(LEAF, CUDA_CLOCK, "sp_cuda_device.clock_lock", "device/cuda/cuda_device.h",                  \
      "the newest moment at which both clocks are known, references to older ones")                \
    X(LEAF, CUDA_GRAPH, "cuda_graph.lock", "device/cuda/cuda_graph.c", "launches of one graph")    \
    X(LEAF, CUDA_WORDS, "sp_cuda_words.lock", "device/cuda/cuda_words.h",                          \
      "words that no graph has, and their memory")                                                 \
    X(LEAF, GPU_GATE, "sp_gpu_gate.lock", "device/gpu/gpu_gate.h",                                 \
      "which driver calls keep the gate of a GPU closed, threads that wait for them")              \
    X(LEAF, OPTIONS, "given.lock", "base/option.c", "options that a program has set")              \
    X(LEAF, RECORDS, "records.lock", "device/thread_record.c",                                     \
      "free thread records, the last number given")                                                \
    X(LEAF, FAULTS, "ring.lock", "device/fault.c", "messages of faults")                           \
    X(LEAF, LEASE_FAULTS, "sp_lease_faults.lock", "device/lease_faults.h",                         \
      "the failed leases of a queue")                                                              \
    X(LEAF, CUDA_PROGRAMS, "sp_cuda_programs.lock", "device/cuda/cuda_program.h",                  \
      "which programs are loaded, loads that are going on, their failures")                        \
    X(LEAF, STREAM_POOL, "sp_stream_pool.lock", "runtime/stream_pool.h",                           \
      "the takers that wait for a stream")                                                         \
    X(LEAF, EVENT, "sp_rt_event.lock", "runtime/event.c", "an event's point and stamp")            \
    X(LEAF, STAMPS, "stamps.lock", "runtime/event.c", "stamps without an event")                   \
    X(LEAF, TICKETS, "tickets.lock", "runtime/host_ticket.c", "free tickets")                      \
    X(LEAF, PINNED, "pinned.lock", "runtime/host_memory.c", "the addresses of pinned host memory") \
    X(LEAF, WORKSPACES, "sp_workspaces.lock", "runtime/workspace.h",                               \
      "workspaces: which are taken, their sizes and last points; what is needed")                  \
    X(LEAF, CHECKER, "checker.lock", "runtime/checker.c",                                          \
      "the checker's clocks and histories (only with STREAMPOOL_CHECK=1)")                         \
    X(LEAF, PLAN_CACHE, "sp_plan_cache.lock", "exec/plan_cache.h",                                 \
      "builds that are going on, beginnings and ends of plans")                                    \
    X(LEAF, PACKED_WEIGHTS, "sp_packed_weights.lock", "exec/packed_weights.h",                     \
      "packed weights of a model, packers that are at it")                                         \
    X(LEAF, WEIGHT_STORE, "sp_weight_store.lock", "exec/weight_store.h",                           \
      "which weights of a model are parked, held or being moved")                                  \
    X(LEAF, EXECUTABLE, "sp_executable.lock", "exec/executable.h",                                 \
      "idle contexts of an executable, the wait queue for one")                                    \
    X(LEAF, CANCEL_TOKEN, "sp_rt_cancel_token.lock", "exec/cancel_token.h",                        \
      "those that a cancel of the token has to tell")                                              \
    X(LEAF, RUN_SLOTS, "sp_run_slots.lock", "exec/run_slots.h",                                    \
      "the queues for run slots, and the flows of models in them")                                 \
    X(LEAF, BATCHES, "sp_batch_bucket.lock", "batch/batch_plans.h",                                \
      "idle and missing batches of a bucket")                                                      \
    X(LEAF, BATCH_BUILDER, "builder.lock", "batch/batch_builder.c",                                \
      "plans that are to be built, the thread that builds them")                                   \
    X(LEAF, BATCH_TIMER, "timer.lock", "batch/batch_queue_timer.c",                                \
      "when the next gate of a batch queue opens, the thread that opens it")                       \
    X(LEAF, HANDLE_TABLE, "sp_handle_table.lock", "base/handle.h", "making new slots")             \
    X(LEAF, LOG, "sink.lock", "base/log.c", "the log's callback, calls into it")

typedef enum sp_lock_rank {
    SP_LOCK_UNKNOWN, /* of zeroed memory: to lock it is a bug */
#define SP_LOCK_ENUMERATOR(kind, name, ...) SP_LOCK_##name,
    SP_LOCK_LIST(SP_LOCK_ENUMERATOR)
#undef SP_LOCK_ENUMERATOR
    /* Locks of tests and benchmarks, which are to us what an application's are: not checked. */
    SP_LOCK_FOREIGN,
    SP_LOCK_RANK_COUNT
} sp_lock_rank;

#endif
