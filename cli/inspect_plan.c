/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a model for given sizes: its steps and its memory. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/plan.h>

#include "failure.h"
#include "inspect.h"
#include "tensors.h"
#include "text.h"

/* Values of inputs up to this size may decide what the plan is. */
#define DECIDING_BYTES 512

static int64_t size_of(const sp_inspect_dims *dims, const char *name)
{
    for (uint32_t i = 0; i < dims->count; i++) {
        if (strcmp(dims->names[i], name) == 0) return dims->sizes[i];
    }
    return 1;
}

/* The input as the plan needs it. What decides shapes is made up of zeroes, in `data`, which the
 * caller frees. */
static sp_status set_input(const sp_port *port, const sp_inspect_dims *dims, sp_host_tensor *out)
{
    *out = (sp_host_tensor){.dtype = port->dtype, .rank = port->rank};
    for (uint32_t i = 0; i < port->rank; i++) {
        const bool is_free = port->shape[i] < 0;
        out->shape[i] = is_free ? size_of(dims, port->dim_names[i]) : port->shape[i];
    }
    if (port->dtype == SP_DTYPE_NONE || !port->has_shape) {
        return fail(SP_UNSUPPORTED, "the file does not say what input '%s' is", port->name);
    }
    TRY(tensor_bytes(out->dtype, out->rank, out->shape, &out->bytes));
    if (!port->decides_shapes || out->bytes > DECIDING_BYTES) return SP_OK;
    out->data = calloc(1, out->bytes > 0 ? out->bytes : 1);
    if (out->data == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for input '%s'", port->name);
    printf("  input %s decides shapes; its values are taken to be 0\n", port->name);
    return SP_OK;
}

static sp_status make_plan(sp_model model, uint32_t count, const sp_inspect_dims *dims,
                           sp_host_tensor *inputs, sp_plan *out)
{
    for (uint32_t i = 0; i < count; i++) {
        sp_port port;
        CALL(sp_model_get_input(model, i, &port));
        TRY(set_input(&port, dims, &inputs[i]));
    }
    return from_library(sp_plan_create(model, inputs, count, out));
}

static void print_steps(sp_plan plan, uint32_t count)
{
    sp_plan_step_info step;
    uint32_t missing = 0;
    for (uint32_t i = 0; sp_plan_get_step(plan, i, &step) == SP_OK; i++) {
        bool is_on_cuda = false;
        (void)sp_plan_step_has_kernel(plan, i, "cuda", &is_on_cuda); /* the step is there */
        missing += !is_on_cuda;
        printf("  %4" PRIu32 " %-20s %-20s reads %" PRIu64 ", writes %" PRIu64 "%s  %s\n", i,
               step.op, step.kernel, step.read_bytes, step.written_bytes,
               is_on_cuda ? "" : " (on cpu on a cuda device)", step.node);
    }
    printf("  on a cuda device %" PRIu32 " of %" PRIu32 " steps run on the cpu\n", missing, count);
}

/* How many parts there are, the run decides; where the first one ends, the plan knows. */
static void print_parts(sp_plan plan, const sp_plan_info *info)
{
    sp_plan_stop_info stop;
    if (!info->is_partial) return;
    printf("the plan is the first part of a run (%" PRIu32 " nodes with a body) and ends before\n",
           info->loop_count);
    for (uint32_t i = 0; sp_plan_get_stop(plan, i, &stop) == SP_OK; i++) {
        if (stop.is_condition) printf("  an If whose condition is %s\n", stop.name);
        else printf("  node %s (%s)\n", stop.name, stop.op);
    }
}

static void print_tensor(const char *noun, const sp_host_tensor *tensor)
{
    printf("  %s %s: %s %s\n", noun, tensor->name, sp_dtype_name(tensor->dtype),
           show_shape(tensor->rank, tensor->shape).text);
}

static sp_status print_plan(sp_plan plan)
{
    sp_plan_info info;
    sp_host_tensor tensor;
    CALL(sp_plan_get_info(plan, &info));
    printf("plan: %" PRIu32 " steps, %" PRIu64 " bytes of memory for each run beside %" PRIu64
           " of weights and %" PRIu64 " of constants\n",
           info.step_count, info.arena_bytes, info.weight_bytes, info.constant_bytes);
    for (uint32_t i = 0; sp_plan_get_input(plan, i, &tensor) == SP_OK; i++) {
        print_tensor("input", &tensor);
    }
    for (uint32_t i = 0; sp_plan_get_output(plan, i, &tensor) == SP_OK; i++) {
        print_tensor("output", &tensor);
    }
    print_steps(plan, info.step_count);
    print_parts(plan, &info);
    return SP_OK;
}

sp_status sp__inspect_plan(sp_model model, const sp_inspect_dims *dims)
{
    sp_model_info info;
    sp_plan plan = {0};
    CALL(sp_model_get_info(model, &info));
    const uint32_t count = info.input_count;
    sp_host_tensor *inputs = calloc((size_t)count + 1, sizeof *inputs);
    if (inputs == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for %u inputs", count);
    sp_status status = make_plan(model, count, dims, inputs, &plan);
    if (status == SP_OK) status = print_plan(plan);
    for (uint32_t i = 0; i < count; i++) free(inputs[i].data);
    free(inputs);
    CALL(sp_plan_release(plan));
    return status;
}
