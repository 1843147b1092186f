/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: the list of a plan's steps, recorded over an arena, replayed on the caller's stream. */
#include "model/session.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"
#include "ops/device_kernels.h"
#include "runtime/current_stream.h"
#include "runtime/submit.h"

/* ---- compiled plans ---- */

static sp_status make_labels(sp_compiled *compiled)
{
    const sp_plan *plan = compiled->plan;
    compiled->labels = sp_calloc(plan->step_count, sizeof *compiled->labels);
    if (compiled->labels == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        char label[128];
        snprintf(label, sizeof label, "node '%.80s' (%.24s)", step->node_name, step->op_name);
        compiled->labels[i] = sp_strdup(label);
        if (compiled->labels[i] == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    return SP_OK;
}

/* The device's form of a kernel of the plan. */
static const sp_kernel *kernel_for(const sp_compiled *compiled, const sp_kernel *kernel)
{
    const sp_kernel *own = sp__device_kernels(compiled->device->dev);
    return own != NULL ? &own[kernel - compiled->plan->kernels] : kernel;
}

/* A device's table names every kernel, but it may have no code for some. */
static sp_status check_kernels(const sp_compiled *compiled)
{
    for (uint32_t i = 0; i < compiled->plan->step_count; i++) {
        const sp_kernel *kernel = kernel_for(compiled, compiled->plan->steps[i].kernel);
        if (kernel->run != NULL || kernel->gpu != NULL) continue;
        return sp__fail(SP_UNSUPPORTED,
                        "%s: kernel %s does not run on a device of kind %s; load the model for cpu",
                        compiled->labels[i], kernel->name, compiled->device->dev->vtable->kind);
    }
    return SP_OK;
}

sp_status sp__compiled_create(const sp_plan *plan, sp_rt_device *device, const sp_memory *weights,
                              sp_compiled **out)
{
    sp_compiled *compiled = sp_calloc(1, sizeof *compiled);
    if (compiled == NULL) {
        sp__plan_free(plan);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    }
    compiled->plan = plan;
    compiled->device = device;
    compiled->weights = weights;
    sp_mutex_init(&compiled->lock, SP_LOCK_COMPILED);
    sp_cond_init(&compiled->given);
    sp_status status = make_labels(compiled);
    if (status == SP_OK) status = check_kernels(compiled);
    if (status == SP_OK) {
        status = sp__upload(device, plan->constants, plan->constant_count, &compiled->constants);
    }
    if (status != SP_OK) {
        sp__compiled_destroy(compiled);
        return status;
    }
    *out = compiled;
    return SP_OK;
}

static void session_destroy(sp_session *session)
{
    sp_rt_device *device = session->compiled->device;
    if (session->list != NULL) device->dev->vtable->list_release(session->list);
    if (session->arena != NULL) sp__allocator_give(&device->allocator, session->arena);
    if (session->unwanted != NULL) sp__allocator_give(&device->allocator, session->unwanted);
    sp__staging_destroy(session->staging);
    sp_free(session->ports);
    sp_free(session->slots);
    sp_free(session);
}

static sp_session *take_idle(sp_compiled *compiled)
{
    sp_mutex_lock(&compiled->lock);
    sp_session *session = compiled->idle;
    if (session != NULL) compiled->idle = session->next;
    sp_mutex_unlock(&compiled->lock);
    return session;
}

static void put_idle(sp_session *session)
{
    sp_compiled *compiled = session->compiled;
    sp_mutex_lock(&compiled->lock);
    session->next = compiled->idle;
    compiled->idle = session;
    /* Under the lock: afterwards the model may be released, and this pool with it. */
    if (SP_UNLIKELY(compiled->waiting > 0)) sp_cond_signal(&compiled->given);
    sp_mutex_unlock(&compiled->lock);
}

void sp__compiled_destroy(sp_compiled *compiled)
{
    for (sp_session *session; (session = take_idle(compiled)) != NULL;) session_destroy(session);
    for (uint32_t i = 0; compiled->labels != NULL && i < compiled->plan->step_count; i++) {
        sp_free(compiled->labels[i]);
    }
    sp_free(compiled->labels);
    sp__upload_free(compiled->device, &compiled->constants);
    sp__plan_free(compiled->plan);
    sp_cond_deinit(&compiled->given);
    sp_mutex_deinit(&compiled->lock);
    sp_free(compiled);
}

/* ---- recording ---- */

/* A port of the run: one fixed place, or whatever the submission says. */
static void bind_port(const sp_session *session, uint32_t port, sp_binding *bound)
{
    if (session->staging == NULL) {
        bound->slot = (uint16_t)port;
        return;
    }
    const sp_binding place = sp__staging_bind(session->staging, port);
    bound->memory = place.memory;
    bound->offset += place.offset;
}

static sp_binding bind(const sp_session *session, const sp_plan_binding *binding)
{
    const sp_compiled *compiled = session->compiled;
    sp_binding bound = {.offset = binding->offset,
                        .bytes = binding->bytes,
                        .access = binding->is_write ? SP_READ_WRITE : SP_READ};
    switch (binding->where) {
    case SP_PLACE_INPUT:
        bind_port(session, binding->index, &bound);
        break;
    case SP_PLACE_OUTPUT:
        bind_port(session, compiled->plan->input_count + binding->index, &bound);
        break;
    case SP_PLACE_WEIGHT:
        bound.memory = &compiled->weights[binding->index];
        break;
    case SP_PLACE_CONSTANT:
        bound.memory = &compiled->constants.memories[binding->index];
        break;
    case SP_PLACE_ARENA:
        bound.memory = &session->arena->slab->memory;
        bound.offset += session->arena->offset;
        break;
    }
    return bound;
}

/* The plan's steps; their bindings go to `next` and on. */
static void record_steps(const sp_session *session, sp_command *commands, sp_binding *next)
{
    const sp_compiled *compiled = session->compiled;
    const sp_plan *plan = compiled->plan;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        commands[i] = (sp_command){.type = SP_COMMAND_DISPATCH,
                                   .label = compiled->labels[i],
                                   .kernel = kernel_for(compiled, step->kernel),
                                   .grid = {step->grid[0], step->grid[1], step->grid[2]},
                                   .bindings = next,
                                   .binding_count = step->binding_count,
                                   .constants = step->constants,
                                   .constant_bytes = step->constant_bytes};
        for (uint32_t k = 0; k < step->binding_count; k++)
            *next++ = bind(session, &step->bindings[k]);
    }
}

/* Copies in, steps, copies out. Commands point into `bindings` until the list has copied. */
static sp_status record_into(sp_session *session, sp_command *commands, sp_binding *bindings)
{
    const sp_plan *plan = session->compiled->plan;
    const sp_command *copies;
    uint32_t count = 0;
    if (session->staging != NULL) {
        const uint32_t in = sp__staging_copies_in(session->staging, &copies);
        for (; count < in; count++) commands[count] = copies[count];
    }
    record_steps(session, commands + count, bindings);
    count += plan->step_count;
    if (session->staging != NULL) {
        const uint32_t out = sp__staging_copies_out(session->staging, &copies);
        for (uint32_t i = 0; i < out; i++) commands[count++] = copies[i];
    }
    sp_dev *dev = session->compiled->device->dev;
    const uint32_t slots = session->staging == NULL ? plan->input_count + plan->output_count : 0;
    return dev->vtable->list_create(dev, commands, count, slots, &session->list);
}

static sp_status record(sp_session *session)
{
    const sp_plan *plan = session->compiled->plan;
    size_t binding_count = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) binding_count += plan->steps[i].binding_count;
    /* At most a copy for each port. */
    const size_t command_count = (size_t)plan->step_count + plan->input_count + plan->output_count;
    sp_command *commands = sp_calloc(command_count, sizeof *commands);
    sp_binding *bindings = sp_calloc(binding_count, sizeof *bindings);
    sp_status status = SP_OK;
    if (commands == NULL || bindings == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory to record %u steps", plan->step_count);
    } else {
        status = record_into(session, commands, bindings);
    }
    sp_free(commands);
    sp_free(bindings);
    return status;
}

static uint64_t room_of(const sp_plan_tensor *output)
{
    return (output->bytes + 63) & ~(uint64_t)63;
}

static sp_status take_unwanted(sp_session *session)
{
    const sp_compiled *compiled = session->compiled;
    const sp_plan *plan = compiled->plan;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += room_of(&plan->outputs[i]);
    return sp__allocator_take(&compiled->device->allocator, bytes, NULL, &session->unwanted);
}

/* True also for an arena of 0 bytes: values without bytes have their place in it too. */
static bool has_arena(const sp_plan *plan)
{
    for (uint32_t s = 0; s < plan->step_count; s++) {
        const sp_plan_step *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->binding_count; i++) {
            if (step->bindings[i].where == SP_PLACE_ARENA) return true;
        }
    }
    return false;
}

/* How the caller's tensors will get to the list. */
static sp_status make_ports(sp_session *session)
{
    sp_rt_device *device = session->compiled->device;
    const sp_plan *plan = session->compiled->plan;
    if (device->dev->vtable->staging_create != NULL) {
        return sp__staging_create(device, plan, &session->staging);
    }
    const uint32_t port_count = plan->input_count + plan->output_count;
    session->ports = sp_calloc(port_count, sizeof *session->ports);
    session->slots = sp_calloc(port_count, sizeof *session->slots);
    if (session->ports == NULL || session->slots == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a session");
    }
    /* Who leaves the only output out is rare: that run may allocate. */
    return plan->output_count > 1 ? take_unwanted(session) : SP_OK;
}

static sp_status session_fill(sp_session *session)
{
    const sp_compiled *compiled = session->compiled;
    const sp_plan *plan = compiled->plan;
    if (has_arena(plan)) {
        /* No stream's: the session goes from stream to stream, and its maker may have none. */
        SP_TRY(sp__allocator_take(&compiled->device->allocator, plan->arena_bytes, NULL,
                                  &session->arena));
    }
    SP_TRY(make_ports(session));
    return record(session);
}

static sp_status session_new(sp_compiled *compiled, sp_session **out)
{
    sp_session *session = sp_calloc(1, sizeof *session);
    if (session == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a session");
    session->compiled = compiled;
    const sp_status status = session_fill(session);
    if (status != SP_OK) {
        session_destroy(session);
        return status;
    }
    sp_fetch_add_relaxed(&compiled->session_count, 1);
    *out = session;
    return SP_OK;
}

static sp_status make_sessions(sp_compiled *compiled)
{
    for (uint32_t i = 0; i < compiled->device->dev->limits.run_slots; i++) {
        sp_session *session;
        const sp_status status = session_new(compiled, &session);
        if (status == SP_OUT_OF_MEMORY && i > 0) break;
        SP_TRY(status);
        put_idle(session);
    }
    return SP_OK;
}

sp_status sp__compiled_prepare(sp_compiled *compiled)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    return sp__error_settle(&scope, make_sessions(compiled));
}

static sp_session *wait_for_idle(sp_compiled *compiled)
{
    sp_mutex_lock(&compiled->lock);
    compiled->waiting++;
    while (compiled->idle == NULL) sp_cond_wait(&compiled->given, &compiled->lock);
    compiled->waiting--;
    sp_session *session = compiled->idle;
    compiled->idle = session->next;
    sp_mutex_unlock(&compiled->lock);
    return session;
}

static SP_NOINLINE sp_status take_slow(sp_compiled *compiled, bool may_wait, sp_session **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = session_new(compiled, out);
    if (status == SP_OUT_OF_MEMORY && may_wait) {
        /* There is one at least, in a run that waits for nobody here. */
        *out = wait_for_idle(compiled);
        status = SP_OK;
    }
    return sp__error_settle(&scope, status);
}

sp_status sp__session_take(sp_compiled *compiled, bool may_wait, sp_session **out)
{
    *out = take_idle(compiled);
    if (SP_UNLIKELY(*out == NULL)) return take_slow(compiled, may_wait, out);
    if (SP_PLANTED(shared_session)) put_idle(*out); /* free to be taken by others too */
    return SP_OK;
}

void sp__session_give(sp_session *session)
{
    if (!SP_PLANTED(shared_session)) put_idle(session);
}

/* ---- running ---- */

sp_status sp__session_cover_unwanted(sp_session *session, void **outputs)
{
    const sp_plan *plan = session->compiled->plan;
    bool is_any = false;
    for (uint32_t i = 0; i < plan->output_count; i++) is_any = is_any || outputs[i] == NULL;
    if (SP_LIKELY(!is_any)) return SP_OK;
    if (session->unwanted == NULL) SP_TRY(take_unwanted(session));
    char *next = (char *)session->unwanted->slab->memory.host + session->unwanted->offset;
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (outputs[i] == NULL) outputs[i] = next;
        next += room_of(&plan->outputs[i]);
    }
    return SP_OK;
}

static void name_port(sp_session *session, uint32_t port, const void *data, uint64_t bytes,
                      sp_access access)
{
    session->ports[port] = (sp_memory){
        .device = session->compiled->device->dev, .bytes = bytes, .host = (void *)(uintptr_t)data};
    session->slots[port] =
        (sp_binding){.memory = &session->ports[port], .bytes = bytes, .access = (uint8_t)access};
}

static void name_ports(sp_session *session, const void *const *inputs, void *const *outputs)
{
    const sp_plan *plan = session->compiled->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        name_port(session, i, inputs[i], plan->inputs[i].bytes, SP_READ);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        name_port(session, plan->input_count + i, outputs[i], plan->outputs[i].bytes, SP_WRITE);
    }
}

/* Submits the list and waits. */
static sp_status run_list(const sp_session *session, const sp_stream_ref *stream)
{
    const sp_plan *plan = session->compiled->plan;
    const uint32_t slots = session->staging == NULL ? plan->input_count + plan->output_count : 0;
    const sp_command command = {.type = SP_COMMAND_LIST,
                                .list = session->list,
                                .bindings = session->slots,
                                .binding_count = slots};
    const sp_submission submission = {.commands = &command, .command_count = 1};
    sp_point point;
    SP_TRY(sp__submit_plain(stream, &submission, &point));
    return sp__point_wait(point, SP_NO_DEADLINE);
}

sp_status sp__session_run(sp_session *session, const sp_stream_ref *stream,
                          const void *const *inputs, void *const *outputs)
{
    if (session->staging == NULL) {
        name_ports(session, inputs, outputs);
        return run_list(session, stream);
    }
    sp__staging_take(session->staging, inputs);
    SP_TRY(run_list(session, stream));
    sp__staging_give(session->staging, outputs);
    return SP_OK;
}

sp_status sp__session_run_inline(sp_session *session, const void *const *inputs,
                                 void *const *outputs)
{
    const sp_block *arena = session->arena;
    void *memory = arena != NULL ? (char *)arena->slab->memory.host + arena->offset : NULL;
    return sp__plan_run_reference(session->compiled->plan, inputs, outputs, memory);
}
