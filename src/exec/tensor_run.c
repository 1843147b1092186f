/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of a run. With one target they are one list, whose slots are the storages. With
 * several, the plan's inputs begin and its outputs end in host memory that all targets reach:
 *
 *     first submission   copies of the inputs to the staging buffers, list of the first segment
 *     between them       a list for each segment
 *     last submission    list of the last segment, copies of the outputs from the staging buffers
 *
 * Each takes over the fault of the one before it, so that a failure reaches the outputs. */
#include "exec/tensor_run.h"

#include "base/error.h"
#include "base/heap.h"
#include "exec/future_model.h"
#include "exec/reports.h"
#include "exec/tensor_context.h"
#include "runtime/fallback_queue.h"
#include "runtime/submit.h"

/* ---- the commands of one submission ---- */

#define INLINE_COMMANDS 16
#define INLINE_USES 32

typedef struct builder {
    const sp_tensor_run *request;
    sp_rt_future *run;
    sp_exec_context *context;
    sp_command *commands;
    sp_use *uses;
    uint32_t command_count, use_count;
    void *block; /* of the two arrays; NULL: they are the room */
    struct {
        sp_command commands[INLINE_COMMANDS];
        sp_use uses[INLINE_USES];
    } room;
} builder;

static const sp_graph_plan *plan_of(const builder *self)
{
    return self->context->executable->plan;
}

/* Room for a list, the check of its reports, and for each port a copy and two uses. */
static sp_status builder_init(builder *self)
{
    const sp_graph_plan *plan = plan_of(self);
    const size_t ports = (size_t)plan->input_count + plan->output_count;
    self->commands = self->room.commands;
    self->uses = self->room.uses;
    self->command_count = self->use_count = 0;
    self->block = NULL;
    if (ports + 2 <= INLINE_COMMANDS && 2 * ports <= INLINE_USES) return SP_OK;
    self->block = sp_malloc((ports + 2) * sizeof *self->commands + 2 * ports * sizeof *self->uses);
    if (self->block == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %zu inputs and outputs", ports);
    }
    self->commands = self->block;
    self->uses = (void *)(self->commands + ports + 2);
    return SP_OK;
}

static void builder_deinit(const builder *self)
{
    sp_free(self->block);
}

static void command_add(builder *self, sp_command command)
{
    self->commands[self->command_count++] = command;
}

static sp_use input_use(const builder *self, uint32_t i)
{
    const sp_tensor_place *place = &self->request->inputs[i];
    return (sp_use){.storage = place->storage,
                    .offset = place->offset,
                    .bytes = plan_of(self)->inputs[i].bytes,
                    .access = SP_READ};
}

/* A run writes all of its outputs. */
static sp_use output_use(const builder *self, uint32_t i)
{
    const sp_tensor_place *place = &self->request->outputs[i];
    return (sp_use){.storage = place->storage,
                    .offset = place->offset,
                    .bytes = plan_of(self)->outputs[i].bytes,
                    .access = SP_PLANTED(tensor_write_unseen) ? SP_READ : SP_WRITE,
                    .is_overwritten = true};
}

static sp_use staging_use(const builder *self, uint32_t port, sp_access access)
{
    const sp_binding place = sp__staging_bind(self->context->staging, SP_SEGMENT_FALLBACK, port);
    return (sp_use){
        .memory = place.memory, .offset = place.offset, .bytes = place.bytes, .access = access};
}

static void add_list(builder *self, uint32_t segment)
{
    const sp_graph_plan *plan = plan_of(self);
    command_add(self, (sp_command){.type = SP_COMMAND_LIST,
                                   .list = self->context->lists[segment],
                                   .cancel = &self->run->is_cancelled,
                                   .binding_count = sp__exec_context_slots(self->context)});
    if (self->context->staging != NULL) return;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        self->uses[self->use_count++] = input_use(self, i);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        self->uses[self->use_count++] = output_use(self, i);
    }
}

static void add_copies_in(builder *self)
{
    for (uint32_t i = 0; i < plan_of(self)->input_count; i++) {
        command_add(
            self,
            (sp_command){.type = SP_COMMAND_COPY, .label = "copy of an input", .binding_count = 2});
        self->uses[self->use_count++] = staging_use(self, i, SP_WRITE);
        self->uses[self->use_count++] = input_use(self, i);
    }
}

static void add_copies_out(builder *self)
{
    const sp_graph_plan *plan = plan_of(self);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        command_add(self, (sp_command){.type = SP_COMMAND_COPY,
                                       .label = "copy of an output",
                                       .binding_count = 2});
        self->uses[self->use_count++] = output_use(self, i);
        self->uses[self->use_count++] = staging_use(self, plan->input_count + i, SP_READ);
    }
}

/* Behind the list. A run that has failed otherwise leaves its reports. */
static sp_status reports_check(void *ctx, sp_fault fault)
{
    sp_exec_context *context = ctx;
    if (fault == SP_NO_FAULT) return sp__reports_take(context);
    sp__reports_clear(context);
    return SP_OK;
}

/* The outputs that a list has written are poisoned if its kernels have reported; what follows in
 * the submission is skipped. */
static void add_reports_check(builder *self)
{
    const sp_graph_plan *plan = plan_of(self);
    if (self->context->executable->reporting_count == 0 || SP_PLANTED(tensor_reports_unread))
        return;
    const uint32_t count = self->context->staging == NULL ? plan->output_count : 0;
    command_add(self, (sp_command){.type = SP_COMMAND_HOST,
                                   .host = reports_check,
                                   .ctx = self->context,
                                   .binding_count = count});
    for (uint32_t i = 0; i < count; i++) {
        self->uses[self->use_count] = output_use(self, i);
        self->uses[self->use_count++].is_overwritten = false;
    }
}

static sp_status builder_submit(builder *self, sp_point cause, sp_point after, sp_point *out)
{
    const sp_command_batch batch = {.commands = self->commands,
                                    .command_count = self->command_count,
                                    .uses = self->uses,
                                    .use_count = self->use_count,
                                    .cause = cause,
                                    .after = after,
                                    .call_site = self->request->call_site};
    self->command_count = self->use_count = 0;
    sp_room room = {.stream = self->request->stream};
    sp_status status;
    do {
        status = sp__submit_commands(self->request->stream, &batch, out);
    } while (sp__submit_again(&room, &status));
    return status;
}

/* ---- the submissions of a run ---- */

static const sp_point no_point;

static sp_status submit_one_target(builder *self, sp_point after, sp_point *last)
{
    add_list(self, 0);
    add_reports_check(self);
    return builder_submit(self, no_point, after, last);
}

/* *last is the point of what was accepted, also on an error. */
static sp_status submit_segments(builder *self, sp_point after, sp_point *last)
{
    const sp_exec_context *context = self->context;
    const sp_executable *executable = context->executable;
    const sp_stream_ref *stream = self->request->stream;
    const uint32_t end = executable->segments.count - 1;
    sp_queue *queues[SP_MAX_TARGETS] = {stream->queue};
    for (uint32_t t = 1; t < executable->target_count; t++) {
        queues[t] = sp__fallback_queue(executable->targets[t].device, stream->stream);
    }
    add_copies_in(self);
    add_list(self, 0);
    SP_TRY(builder_submit(self, no_point, after, &context->points[0]));
    *last = context->points[0];
    for (uint32_t g = 1; g < end; g++) {
        SP_TRY(sp__exec_context_submit_segment(context, stream, queues, g));
        *last = context->points[g];
    }
    add_list(self, end);
    add_reports_check(self);
    add_copies_out(self);
    const sp_point cause = SP_PLANTED(tensor_cause_lost) ? no_point : *last;
    return builder_submit(self, cause, no_point, last);
}

/* *last has no timeline if nothing was accepted. */
static sp_status lists_submit(const sp_tensor_run *request, sp_rt_future *run, sp_point *last)
{
    sp_executable *executable = request->plan_entry->executable;
    builder self = {.request = request, .run = run};
    sp_point after;
    *last = no_point;
    SP_TRY(sp__tensor_context_acquire(executable, request->stream->queue, &self.context, &after));
    self.context->cancel = &run->is_cancelled;
    sp_status status = builder_init(&self);
    if (status == SP_OK) {
        status = executable->target_count > 1 ? submit_segments(&self, after, last)
                                              : submit_one_target(&self, after, last);
        builder_deinit(&self);
    }
    sp__tensor_context_release(self.context, *last);
    return status;
}

/* ---- the life of a run ---- */

/* With the future's fault, and nothing on a queue any more. */
static void run_end(sp_rt_future *run)
{
    sp_rt_model *model = run->model;
    sp__run_counters_leave(&model->counters, run->request.terms.lane);
    sp__run_counters_end(&model->counters, sp__fault_status(run->fault));
    sp__plan_cache_release(&model->plans, run->plan_entry);
    sp__future_complete(run);
    sp__future_drop_with_model(run);
}

static void run_passed(sp_waiter *waiter)
{
    sp_rt_future *run = SP_CONTAINER_OF(waiter, sp_rt_future, waiter);
    if (run->fault == SP_NO_FAULT) run->fault = sp__point_fault(run->point);
    run_end(run);
}

/* The run is on a stream: it has no turn that a wait could bring forward, or a cancel end. */
static void run_is_never_queued(sp_rt_future *run)
{
    (void)run;
}

static sp_status run_create(const sp_tensor_run *request, sp_rt_future **out)
{
    SP_TRY(sp__future_create(out));
    sp_rt_future *run = *out;
    run->model = request->model;
    run->plan_entry = request->plan_entry;
    run->slots = NULL;
    run->request = (sp_run_request){.terms = {.lane = request->lane}};
    run->end_queued = run_is_never_queued;
    if (request->token != NULL) {
        sp__object_hold(&request->token->object);
        run->token = request->token;
    }
    return SP_OK;
}

static sp_status run_start(const sp_tensor_run *request, sp_rt_future *run, sp_point *last)
{
    *last = no_point;
    if (run->token != NULL && !sp__future_follow_token(run)) return sp__fail_cancelled();
    return lists_submit(request, run, last);
}

sp_status sp__tensor_run_submit(const sp_tensor_run *request, sp_tensor_run_submitted *out)
{
    sp_rt_model *model = request->model;
    out->run = NULL;
    SP_TRY(run_create(request, &out->run));
    sp__object_hold(&model->object);
    (void)sp__run_counters_start(&model->counters, request->lane);
    sp__run_counters_enter(&model->counters, request->lane, false);
    out->future = sp__future_publish(out->run);
    return run_start(request, out->run, &out->last);
}

void sp__tensor_run_await(const sp_tensor_run_submitted *submitted, sp_status status)
{
    sp_rt_future *run = submitted->run;
    const sp_point last = submitted->last;
    if (status != SP_OK) run->fault = sp__fault_create(status);
    if (last.timeline == NULL) {
        run_end(run);
        return;
    }
    run->waiter = (sp_waiter){.value = last.value, .fire = run_passed};
    sp__future_start(run, last);
    if (!sp__timeline_register(last.timeline, &run->waiter)) run_passed(&run->waiter);
}
