/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of command lists: one per segment of the plan, over the memory of one context. */
#include "base/error.h"
#include "base/heap.h"
#include "exec/context.h"
#include "exec/reports.h"
#include "ops/device_kernels.h"
#include "ops/kernel_constants.h"

/* Ports of up to so many bytes are copied by a kernel, where the device has kernels: it reads or
 * writes the pinned memory over the bus. A copy of the driver takes longer to begin and to end than
 * such a copy takes. */
#define KERNEL_COPY_BYTES 262144u

/* Of a copy by a kernel. */
typedef union copy_constants {
    sp_flat_constants flat;
    sp_rows_constants rows;
} copy_constants;

/* Buffers for the commands of any segment, which point into the others until a list has copied
 * them. */
typedef struct record_room {
    sp_command *commands;
    sp_binding *bindings;
    copy_constants *copies;
} record_room;

/* The list that is being recorded. */
typedef struct recorder {
    const sp_exec_context *context;
    uint32_t target;
    record_room room;
    uint32_t command_count, binding_count, copy_count;
} recorder;

/* ---- bindings ---- */

/* A port of the run: a fixed staging buffer, or a slot that each submission binds. */
static void bind_port(const recorder *r, uint32_t port, sp_binding *bound)
{
    const sp_staging *staging = r->context->staging;
    if (staging == NULL) {
        bound->slot = (uint16_t)port;
        return;
    }
    const sp_binding place = sp__staging_bind(staging, r->target, port);
    bound->memory = place.memory;
    bound->offset += place.offset;
}

static void bind_arena(const recorder *r, sp_binding *bound)
{
    const sp_block *block = r->context->arenas[r->target];
    if (r->context->workspace != NULL) return; /* slot 0 */
    bound->memory = &block->slab->memory;
    bound->offset += block->offset;
}

static sp_binding binding_resolve(const recorder *r, const sp_plan_binding *binding)
{
    const sp_executable *executable = r->context->executable;
    const sp_target *target = &executable->targets[r->target];
    sp_binding bound = {.offset = binding->offset,
                        .bytes = binding->bytes,
                        .access = binding->is_write ? SP_READ_WRITE : SP_READ};
    switch (binding->where) {
    case SP_PLACE_INPUT:
        bind_port(r, binding->index, &bound);
        break;
    case SP_PLACE_OUTPUT:
        bind_port(r, executable->plan->input_count + binding->index, &bound);
        break;
    case SP_PLACE_WEIGHT:
        bound.memory = &target->weights[binding->index];
        break;
    case SP_PLACE_PACKED:
        bound.memory = &target->packed[binding->index];
        break;
    case SP_PLACE_CONSTANT:
        bound.memory = &target->constants.memories[binding->index];
        break;
    case SP_PLACE_ARENA:
        bind_arena(r, &bound);
        break;
    }
    return bound;
}

/* ---- commands ---- */

static void command_add(recorder *r, const sp_command *command, const sp_binding *bindings)
{
    sp_command *added = &r->room.commands[r->command_count++];
    *added = *command;
    added->bindings = &r->room.bindings[r->binding_count];
    for (uint32_t i = 0; i < command->binding_count; i++) {
        r->room.bindings[r->binding_count++] = bindings[i];
    }
}

/* The kernel in the table of the target's device. */
static const sp_kernel *kernel_for(const recorder *r, sp_kernel_id kernel)
{
    const sp_executable *executable = r->context->executable;
    const sp_kernel *own = sp__device_kernels(executable->targets[r->target].device->dev);
    return &(own != NULL ? own : executable->plan->kernels)[kernel];
}

static bool is_copied_by_kernel(const recorder *r, const sp_segment_copy *copy)
{
    const bool is_port = copy->where == SP_PLACE_INPUT || copy->where == SP_PLACE_OUTPUT;
    const sp_dev *dev = r->context->executable->targets[r->target].device->dev;
    return is_port && copy->bytes <= KERNEL_COPY_BYTES && sp__device_kernels(dev) != NULL;
}

/* `pair`: the target, then the source. */
static void add_kernel_copy(recorder *r, const sp_binding *pair, const char *label)
{
    sp_flat_constants *k = &r->room.copies[r->copy_count++].flat;
    *k = (sp_flat_constants){.count = (int64_t)pair[0].bytes};
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .label = label,
                                .kernel = kernel_for(r, SP_KERNEL_ID_copy_bytes),
                                .binding_count = 2,
                                .constants = k,
                                .constant_bytes = sizeof *k};
    command_add(r, &command, (const sp_binding[]){pair[1], pair[0]});
}

/* False: the port's rows have no places of their own. `device` and `host` are the port's memory. */
static bool add_rows_copy(recorder *r, const sp_segment_copy *copy, const sp_binding *device,
                          const sp_binding *host, bool is_in)
{
    const sp_executable *executable = r->context->executable;
    const sp_staging *staging = r->context->staging;
    const bool is_port = copy->where == SP_PLACE_INPUT || copy->where == SP_PLACE_OUTPUT;
    if (executable->rows.count == 0 || !is_port) return false;
    const uint32_t first = copy->where == SP_PLACE_OUTPUT ? executable->plan->input_count : 0;
    if (sp__staging_places(staging, first + copy->index) == NULL) return false;
    const sp_row_pieces *row = &executable->rows.pieces[first + copy->index];
    sp_rows_constants *k = &r->room.copies[r->copy_count++].rows;
    *k = (sp_rows_constants){.rows = executable->rows.count,
                             .outer = (int64_t)row->outer,
                             .chunk = (int64_t)row->chunk,
                             .is_out = !is_in};
    sp_binding bindings[3] = {sp__staging_bind_places(staging, first + copy->index), *host,
                              *device};
    bindings[0].access = SP_READ;
    bindings[1].access = is_in ? SP_READ : SP_WRITE;
    bindings[2].access = is_in ? SP_WRITE : SP_READ;
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .label =
                                    is_in ? "copy rows from the host" : "copy rows to the host",
                                .kernel = kernel_for(r, SP_KERNEL_ID_move_rows),
                                .binding_count = 3,
                                .constants = k,
                                .constant_bytes = sizeof *k};
    command_add(r, &command, bindings);
    return true;
}

/* Adds no command if the fallback and the device share the memory. */
static void add_copy(recorder *r, const sp_segment_copy *copy, bool is_in)
{
    const sp_plan_binding what = {
        .where = copy->where, .index = copy->index, .offset = copy->offset, .bytes = copy->bytes};
    recorder host = *r;
    host.target = SP_SEGMENT_FALLBACK;
    sp_binding pair[2] = {binding_resolve(r, &what), binding_resolve(&host, &what)};
    if (pair[0].memory == pair[1].memory) return;
    if (add_rows_copy(r, copy, &pair[0], &pair[1], is_in)) return;
    if (!is_in) {
        const sp_binding target = pair[1];
        pair[1] = pair[0];
        pair[0] = target;
    }
    pair[0].access = SP_WRITE;
    const char *label = is_in ? "copy from the host" : "copy to the host";
    if (is_copied_by_kernel(r, copy)) {
        add_kernel_copy(r, pair, label);
        return;
    }
    const sp_command command = {.type = SP_COMMAND_COPY, .label = label, .binding_count = 2};
    command_add(r, &command, pair);
}

static void add_step(recorder *r, uint32_t s)
{
    const sp_executable *executable = r->context->executable;
    const sp_plan_step *step = &executable->plan->steps[s];
    sp_command command = {.type = SP_COMMAND_DISPATCH,
                          .label = executable->labels[s],
                          .kernel = kernel_for(r, step->kernel),
                          .binding_count = step->binding_count,
                          .constants = step->constants,
                          .constant_bytes = step->constant_bytes};
    sp_binding bindings[SP_MAX_BINDINGS]; /* no kernel that reports has as many */
    for (uint32_t i = 0; i < step->binding_count; i++) {
        bindings[i] = binding_resolve(r, &step->bindings[i]);
    }
    if (sp__reports_bind(r->context, s, &bindings[step->binding_count])) command.binding_count++;
    command_add(r, &command, bindings);
}

/* The last kernel of a GPU's list tells the host that the list is done. */
static void add_signal(recorder *r, const sp_kernel *kernels)
{
    static const sp_flat_constants one = {.count = 1};
    if (kernels == NULL || r->command_count == 0) return;
    const sp_command command = {.type = SP_COMMAND_DISPATCH,
                                .label = "signal",
                                .kernel = &kernels[SP_KERNEL_ID_signal_done],
                                .constants = &one,
                                .constant_bytes = sizeof one};
    command_add(r, &command, NULL);
}

/* Copies in, steps, copies out. */
static sp_status record_segment(const sp_exec_context *context, const record_room *room, uint32_t g,
                                sp_list **out)
{
    const sp_executable *executable = context->executable;
    const sp_segment *segment = &executable->segments.list[g];
    recorder r = {.context = context, .target = segment->device, .room = *room};
    for (uint32_t i = 0; i < segment->copies_in; i++) add_copy(&r, &segment->copies[i], true);
    for (uint32_t i = 0; i < segment->step_count; i++) add_step(&r, segment->first_step + i);
    for (uint32_t i = 0; i < segment->copies_out; i++) {
        add_copy(&r, &segment->copies[segment->copies_in + i], false);
    }
    sp_dev *dev = executable->targets[segment->device].device->dev;
    add_signal(&r, sp__device_kernels(dev));
    return dev->vtable->list_create(dev, room->commands, r.command_count,
                                    sp__exec_context_slots(context), out);
}

/* ---- lists ---- */

static sp_status record_segments(sp_exec_context *context, const record_room *room)
{
    const uint32_t count = context->executable->segments.count;
    for (uint32_t g = 0; g < count; g++) {
        SP_TRY(record_segment(context, room, g, &context->lists[g]));
    }
    return SP_OK;
}

sp_status sp__exec_context_create_lists(sp_exec_context *context)
{
    const sp_graph_plan *plan = context->executable->plan;
    const sp_segments *segments = &context->executable->segments;
    context->lists = sp_calloc(segments->count, sizeof(sp_list *));
    context->points = sp_calloc(segments->count, sizeof *context->points);
    size_t binding_count = 3 * (size_t)segments->copy_count + context->executable->reporting_count;
    for (uint32_t i = 0; i < plan->step_count; i++) binding_count += plan->steps[i].binding_count;
    /* A signal for each segment. */
    const size_t command_count = (size_t)plan->step_count + segments->copy_count + segments->count;
    const record_room room = {.commands = sp_calloc(command_count, sizeof *room.commands),
                              .bindings = sp_calloc(binding_count, sizeof *room.bindings),
                              .copies = sp_calloc(segments->copy_count, sizeof *room.copies)};
    sp_status status = SP_OK;
    if (context->lists == NULL || context->points == NULL || room.commands == NULL ||
        room.bindings == NULL || room.copies == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory to record %u steps", plan->step_count);
    } else {
        status = record_segments(context, &room);
    }
    sp_free(room.commands);
    sp_free(room.bindings);
    sp_free(room.copies);
    return status;
}

void sp__exec_context_destroy_lists(sp_exec_context *context)
{
    const sp_executable *executable = context->executable;
    for (uint32_t g = 0; context->lists != NULL && g < executable->segments.count; g++) {
        const sp_dev *dev = executable->targets[executable->segments.list[g].device].device->dev;
        if (context->lists[g] != NULL) dev->vtable->list_release(context->lists[g]);
    }
    sp_free(context->lists);
    sp_free(context->points);
}
