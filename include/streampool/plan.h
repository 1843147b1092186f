/* SPDX-License-Identifier: Apache-2.0 */
/* Plans: what a run of a model executes for inputs of given shapes, for tools that show it. Nothing
 * is run but by sp_model_time_steps, and no device memory is allocated.
 *
 * A plan is a list of steps, each one launch of a kernel, in the order of execution. It is
 * partitioned into segments, runs of consecutive steps on one device: the model's, or cpu for steps
 * that the model's device has no kernel for. Values between the steps are in the arena, one block
 * of memory that a run needs beside its inputs and outputs.
 *
 * A plan is immutable and may be read from any thread. It keeps the model alive. It is compiled
 * like the plan that sp_model_run uses for the same inputs, but is a separate object: it is not in
 * the model's plan cache, and the model's counts do not change. Strings of a plan live as long as
 * the plan.
 *
 * Errors of all calls that take a plan: SP_INVALID for a zero, stale or foreign handle. Of calls
 * that take an index: SP_NOT_FOUND past the end. */
#ifndef STREAMPOOL_PLAN_H
#define STREAMPOOL_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/device.h>
#include <streampool/model.h>

SP_EXTERN_C_BEGIN

typedef struct sp_plan {
    uint64_t bits;
} sp_plan;

/* Compiles the model for inputs of these types and shapes. Inputs are given as for sp_model_infer:
 * in order or by name, `data` and `bytes` only where shapes or branches depend on the values. If
 * such values are omitted, or are computed by the model, the plan is partial. max_run_bytes of the
 * model is not applied: the plan tells what a run would need.
 * Errors: SP_MISMATCH, with the input or node; SP_INVALID; SP_NOT_FOUND (name); SP_UNSUPPORTED,
 * with op, version and dtype; SP_EXHAUSTED for absurd sizes; SP_CLOSED if the model's device is
 * closed. */
SP_API sp_status sp_plan_create(sp_model model, const sp_host_tensor *inputs, uint32_t input_count,
                                sp_plan *out);

/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_plan_retain(sp_plan plan);
/* One reference less. The zero handle is fine. */
SP_API sp_status sp_plan_release(sp_plan plan);

typedef struct sp_plan_info {
    sp_device device; /* the model's */
    uint32_t step_count;
    uint32_t cpu_step_count; /* of these, on cpu instead of the model's device */
    uint32_t segment_count;  /* at least 1 */
    uint32_t input_count;    /* the model's, and defaults that the caller overrides */
    uint32_t output_count;   /* of a partial plan: values that the rest of the run needs */
    uint32_t buffer_count;   /* in the arena */
    uint64_t arena_bytes;    /* for each run */
    uint64_t constant_bytes; /* computed when the plan is compiled, shared by its runs */
    uint64_t weight_bytes;   /* of the model in the file's layout, shared by all plans */
    /* A partial plan is the first of several that a run executes, since shapes, branches or loops
     * depend on values that the run computes. It ends before its stops. */
    bool is_partial;
    uint32_t stop_count; /* 0 unless partial */
    uint32_t loop_count; /* Loop and Scan nodes of the model */
} sp_plan_info;

/* Counts and sizes of the plan. */
SP_API sp_status sp_plan_get_info(sp_plan plan, sp_plan_info *out);

/* The `index`-th input of a run: name, dtype, rank, shape and bytes; `data` is NULL. */
SP_API sp_status sp_plan_get_input(sp_plan plan, uint32_t index, sp_host_tensor *out);
/* The `index`-th output, likewise. */
SP_API sp_status sp_plan_get_output(sp_plan plan, uint32_t index, sp_host_tensor *out);

/* One launch of a kernel. */
typedef struct sp_plan_step_info {
    const char *op;         /* the ONNX name; fused operators are joined by + */
    const char *node;       /* the node's name in the file, or the name of its first output */
    const char *kernel;     /* kernels of this name on other devices compute the same bits */
    uint32_t grid[3];       /* tiles; those of one step may run at the same time */
    uint64_t read_bytes;    /* of all operands and weights; an operand used twice counts twice */
    uint64_t written_bytes; /* of all results */
    uint32_t segment;       /* index of the segment that the step belongs to */
    /* Of the sums of products of a Conv, ConvTranspose, Gemm, MatMul, LSTM, GRU or RNN, padding
     * included; 0: other steps. */
    uint64_t multiply_adds;
} sp_plan_step_info;

/* The `index`-th step, in order of execution. */
SP_API sp_status sp_plan_get_step(sp_plan plan, uint32_t index, sp_plan_step_info *out);

/* Runs the model once, step by step on the calling thread alone, and writes how long each step took
 * to `step_ns`. For tools: the run takes no stream and no run slot, cannot be cancelled, and is not
 * counted in the model's statistics. Inputs and outputs are as for sp_model_run; `step_count` is
 * that of the plan which sp_plan_create makes for these inputs, whose steps the times belong to. A
 * reading of the clock a step, some 20 to 50 ns, is part of the times. The model's device must be
 * the cpu.
 * Errors: those of sp_model_run; SP_UNSUPPORTED for another device and for a partial plan;
 * SP_MISMATCH for another number of steps; SP_INVALID if step_ns is NULL. */
SP_API sp_status sp_model_time_steps(sp_model model, const sp_host_tensor *inputs,
                                     uint32_t input_count, sp_host_tensor *outputs,
                                     uint32_t output_count, uint64_t *step_ns, uint32_t step_count);

/* Whether devices of a kind ("cpu", "null" or "cuda", as in sp_device_info) have the kernel of the
 * `index`-th step; devices without it run the step on cpu. A step of images in blocks of channels,
 * which only cpu has, stands for the step that others have in its place. No device of the kind
 * needs to be open or exist. SP_NOT_FOUND also for an unknown kind. */
SP_API sp_status sp_plan_step_has_kernel(sp_plan plan, uint32_t index, const char *kind, bool *out);

/* Consecutive steps on one device. */
typedef struct sp_plan_segment_info {
    sp_device device;
    uint32_t first_step;
    uint32_t step_count; /* 0: only copies, at the begin or end of a run */
    /* Copies of a device with its own memory: from the host before the steps (inputs, and values
     * that steps on cpu wrote), to the host after them (outputs, and values that steps on cpu will
     * read). A device that uses host memory omits them. 0 in cpu segments of a plan for another
     * device. */
    uint32_t copy_in_count, copy_out_count;
    uint64_t copy_in_bytes, copy_out_bytes;
} sp_plan_segment_info;

/* The `index`-th segment, in order of execution. Neighbours are on different devices; the first and
 * the last one are on the model's. */
SP_API sp_status sp_plan_get_segment(sp_plan plan, uint32_t index, sp_plan_segment_info *out);

/* A range of the arena that holds one value from the first to the last step that uses it. Buffers
 * in use at the same step do not overlap, unless the step writes its result over an operand. */
typedef struct sp_plan_buffer_info {
    uint64_t offset; /* in the arena, a multiple of 64 */
    uint64_t bytes;
    uint32_t first_step, last_step; /* both included */
} sp_plan_buffer_info;

/* The `index`-th buffer, in the order of their first steps. */
SP_API sp_status sp_plan_get_buffer(sp_plan plan, uint32_t index, sp_plan_buffer_info *out);

/* A place where a partial plan ends. */
typedef struct sp_plan_stop_info {
    const char *op;   /* of the first node that needs values of the run; "If" for a condition */
    const char *name; /* of the node; for an If, of the value that is its condition */
    bool is_condition;
} sp_plan_stop_info;

/* The `index`-th stop: nodes first, then conditions. */
SP_API sp_status sp_plan_get_stop(sp_plan plan, uint32_t index, sp_plan_stop_info *out);

SP_EXTERN_C_END

#endif
