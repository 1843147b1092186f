/* SPDX-License-Identifier: Apache-2.0 */
/* Models: an ONNX file, loaded once and run from any number of threads at the same time.
 *
 * A model is immutable. What a run needs is compiled once for each set of input shapes (a plan) and
 * kept; the memory that one run needs (a context) is pooled. Outputs are bit-identical whatever
 * else runs. A model may have any number of inputs and outputs, up to 65,535 in all. */
#ifndef STREAMPOOL_MODEL_H
#define STREAMPOOL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/cancel.h>
#include <streampool/device.h>
#include <streampool/dtype.h>
#include <streampool/future.h>

SP_EXTERN_C_BEGIN

typedef struct sp_model {
    uint64_t bits;
} sp_model;

typedef struct sp_model_options {
    sp_device device; /* zero: cpu */
    /* Most plans that are kept, at most 4,096; zero: the value of STREAMPOOL_PLANS, 32 by default.
     * A run with new shapes replaces a plan that was not used lately. Plans that no run uses also
     * end when their device's memory is needed, least recently used first. */
    uint32_t max_plans;
    /* Limits for files that are not trusted; a run past them is SP_EXHAUSTED with both numbers.
     *
     * Most bytes of memory that one run may take; zero: as much as the device has. Counted are the
     * arena of its plan and its outputs, unrequested ones too; where a run goes through several
     * plans, the values between them and the arena of the plan that computes. Checked when a plan
     * is compiled, before its memory is taken, and when a value between two plans is created. Not
     * counted are inputs, weights, packed or not, constants that are computed ahead of runs
     * (256 MiB at most at load, and as much for each plan), and the copies of inputs and outputs
     * that a device with memory of its own needs. */
    uint64_t max_run_bytes;
    /* Most times that one run may execute bodies of Loop and Scan, all of them together; zero: the
     * value of STREAMPOOL_LOOP_TRIPS, 2^30 by default. */
    uint64_t max_loop_trips;
    /* Most bytes that one run may keep between its plans, where it goes through several; zero: the
     * value of STREAMPOOL_PARTIAL_MEMORY, 4 GiB by default. */
    uint64_t max_partial_bytes;
    /* ONNX ops, as in "Conv,Tanh", whose steps run on cpu though the model's device is another one;
     * "" is none, NULL the value of STREAMPOOL_CPU_OPS. Copied by the load. Of a step with
     * a product that `precision` rounds, only the names Conv, Gemm and MatMul count. */
    const char *cpu_ops;
    /* Share of the device's run slots, against the weights of other models whose runs wait for them
     * too: 1 to 1,000; zero: 1. A model that waits alone gets all slots. */
    uint32_t weight;
    /* Most runs that compute at the same time; zero: as many as the device has run slots, or, of
     * submitted runs of one priority on the cpu, cores. */
    uint32_t max_concurrent_runs;
    /* Most runs that wait for a run slot: one more is SP_BUSY at once. Zero: any number of threads,
     * and 32,768 submitted runs of all models of the device that are not done. */
    uint32_t max_waiting;
    /* Zero: every result is that of the file's types, with the same bits on all devices. Else the
     * products with constant matrices (Gemm, and MatMul whose right operand has rank 2), and the
     * convolutions of images of 16 channels or more, in one group, by constant weights, are
     * computed by tensor cores.
     * Operands of f32 are rounded to this type, to nearest even; f16 and bf16 of the file keep
     * theirs. Sums are f32. With f16 and bf16 so is every other MatMul of f32, of two computed
     * values, as in attention. Everything else stays as the file says, and so do products of depth
     * 1, which add nothing up.
     *
     * A row's bits then depend on the model, the precision and the architecture of the GPU only:
     * not on other rows, batches, threads, streams or time. They differ from the cpu's, so a run in
     * a host function or callback, which the calling thread computes, is SP_UNSUPPORTED; as is the
     * load for another device than a GPU of compute capability 8.0 or more. */
    sp_precision precision;
} sp_model_options;

/* Loads an ONNX file. The data of initializers may be in other files of its folder, or below it;
 * nothing outside is read. NULL options are all defaults.
 * Errors: SP_IO naming the file; SP_CORRUPT, SP_UNSUPPORTED saying what and where in it;
 * SP_UNSUPPORTED for a precision that the device does not have. */
SP_API sp_status sp_model_load(const char *path, const sp_model_options *options, sp_model *out);

/* The same from the bytes of a file, which are not needed afterwards. There are no other files
 * then: SP_INVALID if the model asks for one. SP_INVALID for a `len` above PTRDIFF_MAX, before
 * anything is read. */
SP_API sp_status sp_model_load_from_memory(const void *bytes, size_t len,
                                           const sp_model_options *options, sp_model *out);

/* One more reference to the model. */
SP_API sp_status sp_model_retain(sp_model model);
/* Drops a reference; runs in flight finish. Does nothing for the zero handle. */
SP_API sp_status sp_model_release(sp_model model);

/* An input or output, as the file declares it. The strings live as long as the model. */
typedef struct sp_port {
    const char *name;
    sp_dtype dtype; /* SP_DTYPE_NONE if the file does not say */
    uint32_t rank;
    int64_t shape[SP_MAX_RANK];         /* -1 is free */
    const char *dim_names[SP_MAX_RANK]; /* of free dimensions, "" if unnamed */
    /* An input from which sizes or branches of the graph follow. A plan is compiled for its values,
     * up to 512 bytes, as for the shapes; sp_model_infer needs them too. */
    bool determines_shapes;
    bool has_shape; /* false: the file does not say; rank is 0 and a run may give any shape */
} sp_port;

/* Inputs and outputs of a run, and statistics. Initializers that are also inputs are not counted; a
 * run may override them by name. */
typedef struct sp_model_info {
    uint32_t input_count;
    uint32_t output_count;
    uint32_t node_count;
    uint32_t opset;        /* of ONNX's own domain; 0: the file names none */
    uint64_t weight_bytes; /* as the file has them, those too that are in memory only packed */
    sp_device device;
    uint64_t runs;           /* called, refused ones too */
    uint32_t plan_count;     /* sets of input shapes that are compiled now */
    uint64_t plan_builds;    /* started, failed ones too */
    uint64_t plan_evictions; /* plans replaced by others */
    uint32_t context_count;  /* memories for one run each */
    /* Highest number of runs that were seen to compute at the same time; not every run looks. Runs
     * in a batch count as one, in one without a thread as none. */
    uint32_t most_in_flight;
    /* Plans of the last run that needed several, since sizes, branches or loops followed from
     * values that it computed; each iteration of a loop counts. 0: no run did. */
    uint64_t partial_plan_count;
    /* Of the plan compiled last; 0 before the first. */
    uint32_t step_count;     /* kernel launches in a run */
    uint32_t cpu_step_count; /* of these, on cpu instead of the model's device */
    uint32_t segment_count;  /* parts of a run, each on one device; 1: all on the model's */
    /* Copies of weights in the layouts that kernels need, on all devices. The first plan that needs
     * one creates it, for all plans; they end with the model. Weights of STREAMPOOL_PARK_BYTES and
     * more with a copy in host memory are in the file's layout only while something reads that. */
    uint64_t packed_bytes;
    /* Runs that waited for a run slot and were computed together (STREAMPOOL_BATCHING): how many
     * times, and how many runs in all. */
    uint64_t batches;
    uint64_t batched_runs;
    sp_precision precision; /* of sp_model_options */
} sp_model_info;

/* Counts and statistics of the model; those that change are read one by one. */
SP_API sp_status sp_model_get_info(sp_model model, sp_model_info *out);

/* Most runs that are computed as one batch. */
#define SP_MODEL_BATCH_ROWS 64

/* What became of the model's runs since its load. Of runs that several plans compute (partial
 * ones), each plan waits for itself. */
typedef struct sp_model_statistics {
    uint64_t runs; /* accepted: waiting, in flight, successful, and the next three */
    uint64_t failed;
    uint64_t cancelled;
    uint64_t expired;   /* not begun within their time-out */
    uint64_t refused;   /* not accepted: SP_BUSY by no_wait, max_waiting or a full stream */
    uint32_t waiting;   /* now, for a run slot */
    uint32_t in_flight; /* now; runs in a batch as in sp_model_info */
    uint32_t most_in_flight;
    uint64_t waited;  /* runs that have waited for a run slot */
    uint64_t wait_ns; /* how long, in all */
    uint64_t longest_wait_ns;
    uint64_t timed;    /* runs that were timed: one in 64 */
    uint64_t timed_ns; /* time in their slots, in all; of a run that leads a batch, the batch's */
    uint64_t batches;
    uint64_t batched_runs;
    uint64_t batches_of[SP_MODEL_BATCH_ROWS + 1]; /* by the number of runs in it */
} sp_model_statistics;

/* Read one by one, while they change. */
SP_API sp_status sp_model_get_statistics(sp_model model, sp_model_statistics *out);

/* An op type whose steps run on cpu, with copies in both directions, though the model's device is
 * another one: that has no kernel for it, or cpu_ops of sp_model_options names it. */
typedef struct sp_model_cpu_op {
    char name[64]; /* ONNX's, or several with a + between them that run as one step */
    uint32_t step_count;
} sp_model_cpu_op;

/* The `index`-th of these op types in the plan compiled last. SP_NOT_FOUND past the end. */
SP_API sp_status sp_model_get_cpu_op(sp_model model, uint32_t index, sp_model_cpu_op *out);

/* Op types that models may use, and how many of them the device runs itself. An op counts if the
 * device has what it needs on f32, or, if it has nothing for f32, on all its types. Steps on
 * elements of other types, and rare forms (a Conv of volumes), may still run on cpu
 * (sp_model_get_cpu_op). */
typedef struct sp_device_ops {
    uint32_t op_count;
    uint32_t own_count;
    /* Of the processor, that its kernels use: "portable", "avx2", "avx512" or "neon"; the best one
     * that the processor has, or STREAMPOOL_ISA. NULL: they run elsewhere. Results do not depend on
     * it. */
    const char *instruction_set;
    const char *instruction_set_reason; /* in a few words; NULL as well */
} sp_device_ops;

/* The device's coverage of the op types that models may use, and its kernels. */
SP_API sp_status sp_device_get_ops(sp_device device, sp_device_ops *out);

/* The `index`-th input. SP_NOT_FOUND past the end. */
SP_API sp_status sp_model_get_input(sp_model model, uint32_t index, sp_port *out);
/* The `index`-th output. SP_NOT_FOUND past the end. */
SP_API sp_status sp_model_get_output(sp_model model, uint32_t index, sp_port *out);

/* The index of the input of that name. SP_NOT_FOUND lists the names that exist. */
SP_API sp_status sp_model_find_input(sp_model model, const char *name, uint32_t *index);
/* The index of the output of that name. SP_NOT_FOUND lists the names that exist. */
SP_API sp_status sp_model_find_output(sp_model model, const char *name, uint32_t *index);

/* A tensor in host memory: contiguous, outermost dimension first. The struct belongs to the caller;
 * one that is zeroed, but for the name, is an output that the library allocates.
 *
 *            the caller sets                           the call writes
 *   input    data, bytes, dtype, rank, shape           nothing
 *   output   data and capacity, or leaves both zero    bytes, dtype, rank, shape; data and capacity
 *                                                      if both were zero */
typedef struct sp_host_tensor {
    /* NULL: the input or output with the index that the tensor has in its array. */
    const char *name;
    void *data;        /* of an input only read; may be NULL if the shape has no elements */
    uint64_t bytes;    /* of the elements: exactly what dtype and shape give */
    uint64_t capacity; /* of an output: bytes at `data`, as many as needed or more. Else not read */
    sp_dtype dtype;
    uint32_t rank;
    int64_t shape[SP_MAX_RANK];
} sp_host_tensor;

/* Which runs get the next free run slot. */
typedef enum sp_priority {
    SP_PRIORITY_NORMAL,
    /* Before all runs of normal priority that wait; those get every ninth slot at least. */
    SP_PRIORITY_HIGH
} sp_priority;

/* How a run waits for its turn. Zeroed: with normal priority, for as long as it takes. */
typedef struct sp_run_options {
    sp_priority priority;
    /* A run that has not begun so many nanoseconds after the call is not run: SP_TIMEOUT. Zero: no
     * limit. A run that has begun is finished. */
    int64_t timeout_ns;
    sp_cancel_token cancel_token; /* cancels the run (cancel.h); zero: none */
    /* SP_BUSY, if no run slot is free at the call, or the model's max_concurrent_runs is reached;
     * for a submitted run on the cpu also if as many of its priority as there are cores have one.
     */
    bool no_wait;
} sp_run_options;

/* Alignment of the outputs that the library allocates. */
#define SP_HOST_TENSOR_ALIGNMENT 64

/* Frees `data` of an output that the library has allocated; then `data` is NULL and `capacity` 0,
 * so that the next run allocates it again. Does nothing if `data` is NULL. Never for memory that
 * the library has not allocated. Valid in any state of the library, after sp_shutdown too. */
SP_API void sp_host_tensor_free(sp_host_tensor *tensor);

/* Writes dtype, rank, shape and bytes of the outputs that a run on these inputs would have. `data`
 * and `capacity` of outputs are not read; `data` of inputs is read only where shapes or branches
 * depend on the values (sp_port's determines_shapes): the sizes of a Reshape, the bounds of a
 * Slice. If shapes depend on values that the model computes (NonZero, Loop), this call is a run,
 * and needs the data of all inputs: SP_UNSUPPORTED without. Such a model is better run with outputs
 * that the library allocates. */
SP_API sp_status sp_model_infer(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                                sp_host_tensor *outputs, uint32_t output_count);

/* Where an input or output of a batch has its rows. A batch is one run on the inputs of several
 * runs, its rows: 8 inputs of shape [1,3,224,224] as one of [8,3,224,224]. */
typedef struct sp_batch_axis {
    bool has_rows; /* false: an input that is the same for all rows */
    /* The dimension along which the tensors of the rows are concatenated. -1: they are interleaved
     * inside of one dimension. */
    int32_t axis;
    /* In row-major order the elements of one row are [outer, inner], those of the batch
     * [outer, rows, inner]. */
    uint64_t inner;
} sp_batch_axis;

/* Whether the rows of a batch can be computed together (sp_model_get_batching). Strings live as
 * long as the model. */
typedef struct sp_model_batching {
    bool is_separable;
    const char *reason; /* if they cannot: such as "it normalises along the batch axis"; else "" */
    /* The first node for which the reason holds: its name in the file, or of its first output, and
     * its op. "" if the reason is that of no node. */
    const char *node, *op;
    char message[256]; /* the error of the batch if it cannot run; else "" */
} sp_model_batching;

/* Finds out whether a run on a batch computes each row by itself, with the bits of a run on that
 * row alone. Inputs are those of one row, given as for sp_model_infer; the dimension of the rows
 * has size 1 in them, is found by the call, and may be fixed at 1 in the file. It is proved node by
 * node for these shapes, these values of inputs that determine shapes, and this number of rows, at
 * least 2; nothing is run. A model whose rows cannot be separated is no error.
 *
 * `input_axes` and `output_axes` have room for the inputs and outputs of sp_model_info, or are
 * NULL; they are written if the model is separable. The proof is not about failures: an index out
 * of range in one row fails the batch.
 * Errors: those of sp_plan_create (plan.h); SP_INVALID for fewer than 2 rows. */
SP_API sp_status sp_model_get_batching(sp_model model, const sp_host_tensor *inputs,
                                       uint32_t input_count, uint32_t rows, sp_model_batching *out,
                                       sp_batch_axis *input_axes, sp_batch_axis *output_axes);

/* Runs the model on the calling thread's current stream and waits for the result. All inputs must
 * be given, in order or by name; outputs that are not requested are not returned. The result is in
 * the output's `data`, which is allocated if `data` is NULL and `capacity` 0 (sp_host_tensor_free
 * frees it; an output of 0 bytes stays NULL). An allocated output may be passed to the next run,
 * which then writes to the same memory.
 *
 * If an output's capacity is too small, the run is SP_MISMATCH, which names output, needed bytes
 * and capacity; bytes, dtype, rank and shape of all outputs are written then, and no data.
 *
 * Any number of threads may run one model. At most as many runs as the device has run slots compute
 * at the same time, the others wait, by priority, then by model, then in order of arrival; a thread
 * that calls again at once may keep its slot for a millisecond. After the first run with the same
 * input shapes, a run with at most 64 inputs and 64 outputs in the caller's memory allocates
 * nothing, except on a thread that has not called the library before: its record and its stream are
 * created then (or earlier, by sp_stream_current and sp_stream_synchronize). On the cpu the calling
 * thread computes: 128 KiB of stack are enough for that.
 *
 * Where shapes, branches or loops follow from values that the run computes, it goes through several
 * plans, one after the other, and keeps the values between them in memory of the device's
 * allocator, at most max_partial_bytes of the model (SP_EXHAUSTED); closing the device ends such a
 * run (SP_CLOSED). SP_EXHAUSTED also past the model's max_run_bytes and max_loop_trips. A run
 * inside a host function or callback takes no slot. Steps that the model's device has no kernel for
 * run on cpu in between, in the order of the stream: see sp_model_get_cpu_op.
 *
 * Errors: SP_MISMATCH naming the tensor (count, dtype, rank, shape, capacity), SP_NOT_FOUND for a
 * name, with a list of the names that exist; a failed kernel's status, naming node and op;
 * SP_INVALID for outputs that overlap inputs or each other, and for data that is not aligned for
 * its dtype; SP_EXHAUSTED or SP_TIMEOUT from the pool of streams, SP_BUSY if the stream is full,
 * SP_OUT_OF_MEMORY, SP_DEVICE_LOST. On failure the bytes at `data` of outputs are undefined, and
 * nothing stays allocated. A failed run is reported by the call alone: sp_stream_synchronize does
 * not return it again, and no later command of the stream fails for it. */
SP_API sp_status sp_model_run(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                              sp_host_tensor *outputs, uint32_t output_count);

/* The same with options; NULL: all defaults. Other errors: SP_TIMEOUT, SP_BUSY by the options and
 * by max_waiting of the model; SP_CANCELLED, if the token was cancelled before the call or in time
 * during it; SP_INVALID for a priority that does not exist, a negative time-out, and a token that
 * does not work. Inside a host function or callback a run waits for nothing, so that only the token
 * has an effect. */
SP_API sp_status sp_model_run_with(sp_model model, const sp_run_options *options,
                                   const sp_host_tensor *inputs, uint32_t input_count,
                                   sp_host_tensor *outputs, uint32_t output_count);

/* Runs the model on the calling thread if that takes neither a wait nor more than `most_ns`, as
 * expected from earlier runs of the same plan (SP_FOREVER: however long); else SP_BUSY, with
 * nothing changed, and the caller may call sp_model_run. For a thread with a lock that others need:
 * one of an interpreter, or of an event loop.
 *
 * It waits for no plan, run slot, execution context, stream or batch, starts no other thread and
 * needs none. So it is SP_BUSY: if there is no plan for these inputs yet, or none of its runs was
 * timed; if the plan is partial; if no run slot or context is free; if the calling thread has no
 * stream of the device, or work on it is not done; on devices other than the cpu; in host functions
 * and callbacks. Memory that it takes is free memory. The run is in the statistics of the model if
 * it was not SP_BUSY, and in none of the stream.
 *
 * Outputs have the bits of sp_model_run. Errors are its errors, but for those of waiting, and
 * SP_INVALID for a negative `most_ns` other than SP_FOREVER. */
SP_API sp_status sp_model_try_run(sp_model model, int64_t most_ns, const sp_host_tensor *inputs,
                                  uint32_t input_count, sp_host_tensor *outputs,
                                  uint32_t output_count);

/* Submits a run and returns; *out is done when the run is (future.h). One thread can so have many
 * runs in flight. The arrays, shapes and names are only read and written during the call: bytes,
 * dtype, rank and shape of the outputs, and `data` of those that the library allocates, are written
 * by it. So the structs may end before the future is done. The memory at `data` belongs to the run
 * until then: inputs must not be written, outputs neither read, written nor freed. After a failure
 * of the run the bytes of outputs are undefined; those that were allocated are the caller's to
 * free.
 *
 * Where shapes, branches or loops follow from values that the run computes, the sizes of outputs
 * are not known at the call, which writes nothing to their structs. Outputs that the library
 * allocates belong to the future, and too little capacity is the future's SP_MISMATCH.
 * sp_future_take_output returns what the call could not: dtype, shape and bytes, and that memory;
 * for other models it repeats what the call has written. Such a run is computed by a thread of the
 * library: as many at a time as the device is wide, 16 at most, in order of submission.
 *
 * The call never waits for a run: if all run slots are taken, or on the cpu one for each core by
 * submitted runs, the run is queued with the others that wait, in order of arrival, and starts by
 * itself when it is its turn; SP_BUSY if 32,768 of the device are not done. It may build a plan, or
 * wait for a cache entry for one, as sp_model_run does. The run belongs to no stream and is not
 * ordered after what was submitted to one: whatever it reads must be complete at the call, and
 * sp_device_synchronize does not wait for it or report its failure: the future does. It computes
 * the same bits as sp_model_run. The model may be released at once.
 *
 * Errors of the call are those of sp_model_run but for the pool of streams, and SP_EXHAUSTED if the
 * system gives no thread for a run that needs one; then *out is the zero handle. What fails later
 * is the future's status: a failed kernel's, SP_OUT_OF_MEMORY, SP_CLOSED where the device was
 * closed or the library shut down before the run's turn, SP_DEVICE_LOST; and whatever sp_model_run
 * finds only when it has computed the values that sizes follow from. */
SP_API sp_status sp_model_submit(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                                 sp_host_tensor *outputs, uint32_t output_count, sp_future *out);

/* The same with options; NULL: all defaults. A run past its time-out is not run: its future is done
 * with SP_TIMEOUT when its turn comes. A cancel of the token is sp_future_cancel of the run. Other
 * errors of the call: SP_BUSY by no_wait, and by max_waiting of the model; SP_CANCELLED, if the
 * token was cancelled before; SP_INVALID as sp_model_run_with. */
SP_API sp_status sp_model_submit_with(sp_model model, const sp_run_options *options,
                                      const sp_host_tensor *inputs, uint32_t input_count,
                                      sp_host_tensor *outputs, uint32_t output_count,
                                      sp_future *out);

SP_EXTERN_C_END

#endif
