/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a lowering, whose bindings name operands, to commands over storages, or computes it on
 * the calling thread if the device lacks a kernel. Device and host kernels give the same bits, so
 * only the time differs. */

#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/option.h"
#include "device/gpu_kernel.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/device_kernels.h"
#include "ops/eager.h"
#include "ops/op_list.h"
#include "ops/tensor_copy.h"
#include "runtime/submit.h"

static const sp_kernel *cpu_kernels(void)
{
    return sp__cpu_kernels(sp__cpu_isa_selected());
}

/* The kernel in the table of the device. */
static const sp_kernel *kernel_for(const sp_eager *eager, sp_kernel_id kernel)
{
    const sp_kernel *own = sp__device_kernels(eager->device->dev);
    return &(own != NULL ? own : cpu_kernels())[kernel];
}

bool sp__eager_is_on_device(const sp_eager *eager)
{
    if (eager->device->dev->vtable->kind->is_fallback) return true;
    if (sp__op_list_has(sp_option_text(SP_OPTION_CPU_OPS), eager->call.op->name)) return false;
    for (uint32_t i = 0; i < eager->lowering.dispatch_count; i++) {
        const sp_kernel *kernel = kernel_for(eager, eager->lowering.dispatches[i].kernel);
        if (!sp__kernel_is_there(kernel)) return false;
        /* Storages have no place for a report: the host's kernel fails. */
        if (kernel->gpu != NULL && kernel->gpu->reports) return false;
    }
    return true;
}

/* ---- inputs ---- */

/* A new tensor of the call: with the values that the shape rule has read, since the input may have
 * changed, or with the elements in order. */
static sp_status copy_input(const sp_eager *eager, sp_eager_input *input)
{
    const sp_layout *layout = &input->tensor->layout;
    if (input->values == NULL) {
        return sp__tensor_copy_of(input->tensor, eager->request->call_site, &input->copy);
    }
    return sp_tensor_from_host(input->tensor->device, layout->dtype, layout->shape.rank,
                               layout->shape.dims, input->values, sp__layout_bytes(layout),
                               &input->copy);
}

static sp_status input_bind(const sp_eager *eager, sp_eager_input *input)
{
    if (input->storage.bits != 0) return SP_OK;
    const sp_rt_tensor *tensor = input->tensor;
    if (input->values == NULL && sp__layout_is_contiguous(&tensor->layout)) {
        input->storage = tensor->storage;
        input->offset = tensor->layout.offset;
        return SP_OK;
    }
    sp_tensor_info info;
    SP_TRY(copy_input(eager, input));
    SP_TRY(sp_tensor_get_info(input->copy, &info));
    input->storage = info.storage;
    return SP_OK;
}

/* Binds the inputs that a dispatch reads. */
static sp_status inputs_bind(sp_eager *eager)
{
    for (uint32_t i = 0; i < eager->lowering.dispatch_count; i++) {
        const sp_dispatch *dispatch = &eager->lowering.dispatches[i];
        for (uint32_t k = 0; k < dispatch->binding_count; k++) {
            const sp_operand *operand = &dispatch->bindings[k];
            if (operand->kind != SP_OPERAND_INPUT) continue;
            SP_TRY(input_bind(eager, &eager->inputs[operand->index]));
        }
    }
    return SP_OK;
}

/* ---- on the device ---- */

/* A second write counts as a read, too: it may leave bytes unchanged, so poison of a failed first
 * write must remain. */
static sp_access operand_access(const sp_operand *operand, bool *is_written)
{
    if (!operand->is_write) return SP_READ;
    const sp_access access = *is_written ? SP_READ_WRITE : SP_WRITE;
    *is_written = true;
    return access;
}

static sp_use operand_use(sp_eager *eager, const sp_operand *operand)
{
    sp_use use = {.bytes = operand->bytes, .access = SP_READ};
    if (operand->kind == SP_OPERAND_OUTPUT) {
        sp_eager_output *output = &eager->outputs[operand->index];
        use.storage = output->storage;
        use.offset = output->offset;
        use.access = operand_access(operand, &output->is_written);
    } else if (operand->kind == SP_OPERAND_SCRATCH) {
        use.storage = eager->scratch[operand->index];
        use.access = operand_access(operand, &eager->is_scratch_written[operand->index]);
    } else { /* inputs are not packed here */
        use.storage = eager->inputs[operand->index].storage;
        use.offset = eager->inputs[operand->index].offset;
    }
    /* One of several dispatches may write a part only. */
    use.is_overwritten = use.access == SP_WRITE && eager->lowering.dispatch_count == 1;
    return use;
}

static sp_status submit_dispatch(sp_eager *eager, const sp_stream_ref *stream,
                                 const sp_dispatch *dispatch)
{
    sp_use uses[SP_MAX_BINDINGS];
    for (uint32_t i = 0; i < dispatch->binding_count; i++) {
        uses[i] = operand_use(eager, &dispatch->bindings[i]);
    }
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .label = eager->call.op->name,
                          .kernel = kernel_for(eager, dispatch->kernel),
                          .constants = dispatch->constants,
                          .constant_bytes = dispatch->constant_bytes};
    sp_point point;
    sp_room room = {.stream = stream};
    sp_status status;
    do {
        status = sp__submit_command(stream, &command, uses, dispatch->binding_count,
                                    eager->request->call_site, &point);
    } while (sp__submit_again(&room, &status));
    return status;
}

sp_status sp__eager_submit(sp_eager *eager)
{
    const sp_lowering *lowering = &eager->lowering;
    const sp_device device = sp__rt_device_handle(eager->device);
    sp_stream_ref stream;
    SP_TRY(sp__current_stream(eager->device, &stream));
    SP_TRY(inputs_bind(eager));
    for (uint32_t i = 0; i < lowering->scratch_count; i++) {
        SP_TRY(sp_storage_create(device, lowering->scratch_bytes[i], NULL, &eager->scratch[i]));
    }
    for (uint32_t i = 0; i < lowering->dispatch_count; i++) {
        SP_TRY(submit_dispatch(eager, &stream, &lowering->dispatches[i]));
    }
    return SP_OK;
}

/* ---- on the calling thread ---- */

/* Operands in host memory. */
typedef struct host_places {
    sp_eager *eager;
    void *scratch[SP_LOWERING_MAX_SCRATCH];
} host_places;

static void *operand_address(const sp_operand *operand, void *context)
{
    const host_places *places = context;
    if (operand->kind == SP_OPERAND_SCRATCH) return places->scratch[operand->index];
    if (operand->kind == SP_OPERAND_OUTPUT) return places->eager->outputs[operand->index].values;
    return places->eager->inputs[operand->index].values;
}

/* Reads one input at a time, with no access held while it waits for the next: otherwise it could
 * deadlock with a thread that writes two of them from the host. */
static sp_status read_inputs(sp_eager *eager)
{
    for (uint32_t i = 0; i < eager->request->input_count; i++) {
        sp_eager_input *input = &eager->inputs[i];
        if (input->tensor == NULL || input->values != NULL) continue;
        const uint64_t bytes = eager->values[i].bytes;
        SP_TRY(sp__eager_allocate(eager, bytes, &input->values));
        SP_TRY(sp_tensor_read(eager->request->inputs[i], input->values, bytes));
    }
    return SP_OK;
}

static sp_status outputs_compute(sp_eager *eager, host_places *places)
{
    const sp_lowering *lowering = &eager->lowering;
    for (uint32_t i = 0; i < lowering->scratch_count; i++) {
        SP_TRY(sp__eager_allocate(eager, lowering->scratch_bytes[i], &places->scratch[i]));
    }
    for (uint32_t i = 0; i < eager->request->output_count; i++) {
        SP_TRY(sp__eager_allocate(eager, eager->call.outputs[i].bytes, &eager->outputs[i].values));
    }
    const sp_fpenv before = sp_fpenv_enter();
    const sp_status status = sp__lowering_run(lowering, cpu_kernels(), operand_address, places);
    sp_fpenv_leave(before);
    return status;
}

sp_status sp__eager_run_on_host(sp_eager *eager)
{
    host_places places = {.eager = eager};
    sp_status status = read_inputs(eager);
    if (status == SP_OK) status = outputs_compute(eager, &places);
    for (uint32_t i = 0; i < SP_LOWERING_MAX_SCRATCH; i++) sp_free(places.scratch[i]);
    for (uint32_t i = 0; i < eager->request->output_count && status == SP_OK; i++) {
        const sp_eager_output *output = &eager->outputs[i];
        status = sp_tensor_write(output->tensor, output->values, eager->call.outputs[i].bytes);
    }
    return status;
}
