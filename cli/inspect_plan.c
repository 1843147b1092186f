/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the plan of a model for given sizes: its steps, its memory, and whether its rows can be
 * batched. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/plan.h>

#include "failure.h"
#include "inspect.h"
#include "sizes.h"
#include "text.h"

static void print_steps(sp_plan plan, uint32_t count)
{
    sp_plan_step_info step;
    uint32_t missing = 0;
    for (uint32_t i = 0; sp_plan_get_step(plan, i, &step) == SP_OK; i++) {
        bool is_on_cuda = false;
        (void)sp_plan_step_has_kernel(plan, i, "cuda", &is_on_cuda); /* the step exists */
        missing += !is_on_cuda;
        printf("  %4" PRIu32 " %-20s %-20s reads %" PRIu64 ", writes %" PRIu64 "%s  %s\n", i,
               step.op, step.kernel, step.read_bytes, step.written_bytes,
               is_on_cuda ? "" : " (on cpu on a cuda device)", step.node);
    }
    printf("  on a cuda device %" PRIu32 " of %" PRIu32 " steps run on the cpu\n", missing, count);
}

/* The number of partial plans depends on the run; the plan knows where the first one ends. */
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
    printf("  %s %s: %s %s\n", noun, show_name(tensor->name).text, sp_dtype_name(tensor->dtype),
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

/* Prints the inputs whose generated values determine shapes. */
static void print_shape_determining(const model_inputs *inputs)
{
    for (uint32_t i = 0; i < inputs->count; i++) {
        const model_input *input = &inputs->list[i];
        const sp_host_tensor *tensor = &inputs->tensors[i];
        if (input->is_file || !input->port.determines_shapes || tensor->data == NULL) continue;
        const bool is_one = tensor->dtype == SP_F32 || tensor->dtype == SP_F64 ||
                            tensor->dtype == SP_F16 || tensor->dtype == SP_BF16;
        printf("  input %s determines shapes; its values are assumed to be %d\n",
               show_name(input->port.name).text, is_one ? 1 : 0);
    }
}

/* The refusals of a run that are known from the plan: more memory than --max-memory. Of a partial
 * plan they are not known yet. */
static sp_status check_limits(const model_inputs *inputs, sp_plan plan)
{
    sp_plan_info info;
    sp_model_info model;
    CALL(sp_plan_get_info(plan, &info));
    CALL(sp_model_get_info(inputs->model, &model));
    if (info.is_partial || inputs->arguments->device.options.max_run_bytes == 0) return SP_OK;
    sp_host_tensor *outputs = calloc((size_t)model.output_count + 1, sizeof *outputs);
    if (outputs == NULL)
        return fail(SP_OUT_OF_MEMORY, "no memory for %u outputs", model.output_count);
    const sp_status status = from_library(
        sp_model_infer(inputs->model, inputs->tensors, inputs->count, outputs, model.output_count));
    free(outputs);
    return status;
}

/* ---- batching ---- */

static void print_axis(const char *noun, const sp_port *port, const sp_batch_axis *axis)
{
    printf("  %s %s: ", noun, show_name(port->name).text);
    if (!axis->has_rows) printf("the same for all rows\n");
    else if (axis->axis >= 0) printf("rows along axis %" PRId32 "\n", axis->axis);
    else printf("rows inside of an axis, in pieces of %" PRIu64 " elements\n", axis->inner);
}

static void print_reason(const sp_model_batching *batching)
{
    printf("batching: the rows of a batch are not proved to be independent\n  ");
    if (batching->message[0] != '\0') {
        printf("%s: %s\n", batching->reason, batching->message);
        return;
    }
    if (batching->node[0] != '\0') printf("node %s (%s): ", batching->node, batching->op);
    printf("%s\n", batching->reason);
}

static void print_axes(sp_model model, const sp_batch_axis *inputs, const sp_batch_axis *outputs)
{
    sp_port port;
    printf("batching: a batch has the bits of its rows alone\n");
    for (uint32_t i = 0; sp_model_get_input(model, i, &port) == SP_OK; i++) {
        print_axis("input", &port, &inputs[i]);
    }
    for (uint32_t i = 0; sp_model_get_output(model, i, &port) == SP_OK; i++) {
        print_axis("output", &port, &outputs[i]);
    }
}

/* Proved for two rows of the inputs. */
static sp_status print_batching(const model_inputs *inputs)
{
    sp_model_info info;
    sp_model_batching batching;
    CALL(sp_model_get_info(inputs->model, &info));
    sp_batch_axis *axes = calloc((size_t)info.input_count + info.output_count + 1, sizeof *axes);
    if (axes == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the axes of the inputs");
    sp_batch_axis *outputs = axes + info.input_count;
    const sp_status status = from_library(sp_model_get_batching(
        inputs->model, inputs->tensors, inputs->count, 2, &batching, axes, outputs));
    if (status == SP_OK && batching.is_separable) print_axes(inputs->model, axes, outputs);
    if (status == SP_OK && !batching.is_separable) print_reason(&batching);
    free(axes);
    return status;
}

static sp_status inspect_inputs(const model_inputs *inputs)
{
    sp_plan plan;
    print_shape_determining(inputs);
    CALL(sp_plan_create(inputs->model, inputs->tensors, inputs->count, &plan));
    sp_status status = print_plan(plan);
    if (status == SP_OK) status = print_batching(inputs);
    if (status == SP_OK) status = check_limits(inputs, plan);
    CALL(sp_plan_release(plan));
    return status;
}

sp_status sp__inspect_plan(sp_model model, const model_arguments *arguments)
{
    model_inputs inputs;
    sp_status status = inputs_open(model, arguments, &inputs);
    if (status == SP_OK) {
        sizes_print(&inputs);
        status = inspect_inputs(&inputs);
    }
    inputs_close(&inputs);
    return status;
}
