/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime_calls.h"

#include "eager_calls.h"
#include "tensor_calls.h"

static const int64_t sides[2] = {4, 4}; /* of the tensors */

void call_context_init_on(call_context *self, sp_device device)
{
    *self = (call_context){.device = device,
                           .stream = new_stream_on(device),
                           .a = new_storage_on(device, 64, false),
                           .b = new_storage_on(device, 64, false)};
    CHECK_OK(sp_event_create(NULL, &self->event));
    CHECK_OK(sp_event_record(self->event, self->stream));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sp_event_create(&(sp_event_options){.enable_timing = true}, &self->timed[i]));
        CHECK_OK(sp_event_record(self->timed[i], self->stream));
    }
    const uint8_t one = 1;
    CHECK_OK(sp_command_list_create(device, &self->list));
    CHECK_OK(sp_command_list_fill(self->list, whole(self->a), &one, 1));
    CHECK_OK(sp_command_list_copy(self->list, whole(self->a), whole(self->b)));
    CHECK_OK(sp_tensor_from_storage(self->a, 0, SP_F32, 2, sides, NULL, &self->tensor));
    CHECK_OK(sp_tensor_transpose(self->tensor, 0, 1, &self->view));
    CHECK_OK(sp_tensor_create(device, SP_F32, 2, sides, &self->other));
    fill(self->stream, self->a, 1);
    fill(self->stream, self->b, 1);
}

void call_context_init(call_context *self)
{
    call_context_init_on(self, CPU);
}

void call_context_deinit(call_context *self)
{
    CHECK_OK(sp_stream_release(self->stream));
    CHECK_OK(sp_event_release(self->event));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_event_release(self->timed[i]));
    CHECK_OK(sp_storage_release(self->a));
    CHECK_OK(sp_storage_release(self->b));
    CHECK_OK(sp_command_list_release(self->list));
    CHECK_OK(sp_tensor_release(self->tensor));
    CHECK_OK(sp_tensor_release(self->view));
    CHECK_OK(sp_tensor_release(self->other));
}

static sp_storage_range all_of(sp_storage storage)
{
    return (sp_storage_range){storage, 0, 64};
}

static sp_status call_init(call_context *self)
{
    (void)self;
    return sp_init();
}

static sp_status call_device_at(call_context *self)
{
    sp_device device;
    (void)self;
    return sp_device_at(0, &device);
}

static sp_status call_device_open(call_context *self)
{
    sp_device device;
    (void)self;
    SP_TRY(sp_device_open("null", &device));
    return sp_device_close(device);
}

static sp_status call_device_get_info(call_context *self)
{
    sp_device_info info;
    return sp_device_get_info(self->device, &info);
}

static sp_status call_device_synchronize(call_context *self)
{
    return sp_device_synchronize(self->device);
}

static sp_status call_memory_stats(call_context *self)
{
    sp_memory_stats stats;
    return sp_device_get_memory_stats(self->device, &stats);
}

static sp_status call_empty_cache(call_context *self)
{
    return sp_device_empty_cache(self->device);
}

static sp_status call_set_memory_limit(call_context *self)
{
    return sp_device_set_memory_limit(self->device, 0);
}

static sp_status call_set_watermarks(call_context *self)
{
    return sp_device_set_cache_watermarks(self->device, 0, 0);
}

static sp_status call_stream_current(call_context *self)
{
    sp_stream stream;
    return sp_stream_current(self->device, &stream);
}

static sp_status call_stream_default(call_context *self)
{
    sp_stream stream;
    return sp_stream_default(self->device, &stream);
}

static sp_status call_stream_from_pool(call_context *self)
{
    sp_stream stream;
    SP_TRY(sp_stream_from_pool(self->device, &stream));
    return sp_stream_release(stream);
}

static sp_status call_stream_from_pool_with(call_context *self)
{
    sp_stream stream;
    const sp_stream_options options = {.is_unbatched = true};
    (void)self;
    SP_TRY(sp_stream_from_pool_with(CPU, &options, &stream));
    return sp_stream_release(stream);
}

static sp_status call_set_current(call_context *self)
{
    SP_TRY(sp_stream_set_current(self->stream));
    return sp_stream_set_current((sp_stream){0});
}

static sp_status call_guard(call_context *self)
{
    sp_stream_guard guard;
    SP_TRY(sp_stream_guard_begin(self->stream, &guard));
    return sp_stream_guard_end(&guard);
}

static sp_status call_stream_synchronize(call_context *self)
{
    return sp_stream_synchronize(self->stream);
}

static sp_status call_stream_synchronize_for(call_context *self)
{
    return sp_stream_synchronize_for(self->stream, 30 * SECOND);
}

static sp_status call_stream_query(call_context *self)
{
    const sp_status status = sp_stream_query(self->stream);
    return status == SP_NOT_READY ? SP_OK : status;
}

static sp_status call_stream_flush(call_context *self)
{
    return sp_stream_flush(self->stream);
}

static sp_status call_set_batching(call_context *self)
{
    return sp_stream_set_batching(self->stream, true);
}

static sp_status call_stream_get_info(call_context *self)
{
    sp_stream_info info;
    return sp_stream_get_info(self->stream, &info);
}

static void note_host(void *ctx, sp_status status)
{
    call_context *self = ctx;
    if (status != SP_OK) raise_by_one(&self->told);
    raise_by_one(&self->called);
}

static sp_status call_host_function(call_context *self)
{
    return sp_stream_host_function(self->stream, note_host, self);
}

static sp_status call_event_create(call_context *self)
{
    sp_event event;
    (void)self;
    SP_TRY(sp_event_create(NULL, &event));
    return sp_event_release(event);
}

static sp_status call_event_retain(call_context *self)
{
    SP_TRY(sp_event_retain(self->event));
    return sp_event_release(self->event);
}

static sp_status call_event_record(call_context *self)
{
    return sp_event_record(self->event, self->stream);
}

static sp_status call_event_record_timed(call_context *self)
{
    return sp_event_record(self->timed[1], self->stream);
}

static sp_status call_event_query(call_context *self)
{
    const sp_status status = sp_event_query(self->event);
    return status == SP_NOT_READY ? SP_OK : status;
}

static sp_status call_event_synchronize(call_context *self)
{
    return sp_event_synchronize(self->event);
}

static sp_status call_event_synchronize_for(call_context *self)
{
    return sp_event_synchronize_for(self->event, 30 * SECOND);
}

static sp_status call_event_wait_all(call_context *self)
{
    return sp_event_wait_all(self->timed, 2, SP_FOREVER);
}

static sp_status call_event_wait_any(call_context *self)
{
    uint32_t which;
    return sp_event_wait_any(self->timed, 2, SP_FOREVER, &which);
}

static sp_status call_stream_wait_event(call_context *self)
{
    sp_stream stream;
    SP_TRY(sp_stream_default(self->device, &stream));
    return sp_stream_wait_event(stream, self->event);
}

static sp_status call_event_elapsed(call_context *self)
{
    int64_t ns;
    return sp_event_elapsed(self->timed[0], self->timed[1], &ns);
}

static sp_status call_event_on_complete(call_context *self)
{
    return sp_event_on_complete(self->event, note_host, self);
}

static sp_status call_storage_create(call_context *self)
{
    sp_storage storage;
    SP_TRY(sp_storage_create(self->device, 5000, NULL, &storage));
    return sp_storage_release(storage);
}

static sp_status call_storage_retain(call_context *self)
{
    SP_TRY(sp_storage_retain(self->a));
    return sp_storage_release(self->a);
}

static sp_status call_storage_adopt(call_context *self)
{
    sp_storage storage;
    SP_TRY(sp_storage_adopt(self->device, self->memory, sizeof self->memory, NULL, &storage));
    return sp_storage_release(storage);
}

static sp_status call_storage_adopt_after(call_context *self)
{
    sp_storage storage;
    const sp_adopt_options options = {.ready_after = self->stream};
    SP_TRY(sp_storage_adopt(CPU, self->memory, sizeof self->memory, &options, &storage));
    return sp_storage_release(storage);
}

static sp_status call_host_alloc(call_context *self)
{
    void *data;
    (void)self;
    SP_TRY(sp_host_alloc(CPU, 100, &data));
    return sp_host_free(data);
}

static sp_status call_storage_get_info(call_context *self)
{
    sp_storage_info info;
    return sp_storage_get_info(self->a, &info);
}

static sp_status call_storage_freeze(call_context *self)
{
    return sp_storage_freeze(self->b);
}

static sp_status call_host_access(call_context *self)
{
    void *data;
    SP_TRY(sp_storage_host_begin(self->a, SP_READ_WRITE, &data));
    return sp_storage_host_end(self->a, SP_READ_WRITE);
}

static sp_status call_record_stream(call_context *self)
{
    return sp_storage_record_stream(self->a, self->stream);
}

static sp_status call_record_all_streams(call_context *self)
{
    return sp_storage_record_all_streams(self->a);
}

static sp_status call_copy(call_context *self)
{
    return sp_storage_copy_async(self->stream, all_of(self->a), all_of(self->b));
}

static sp_status call_fill(call_context *self)
{
    const uint8_t two = 2;
    return sp_storage_fill_async(self->stream, all_of(self->a), &two, 1);
}

static sp_status call_command_list(call_context *self)
{
    sp_command_list list;
    const uint8_t three = 3;
    SP_TRY(sp_command_list_create(self->device, &list));
    sp_status status = sp_command_list_fill(list, all_of(self->a), &three, 1);
    if (status == SP_OK) status = sp_command_list_copy(list, all_of(self->a), all_of(self->b));
    const sp_status end = sp_command_list_release(list);
    return status != SP_OK ? status : end;
}

static sp_status call_list_copy(call_context *self)
{
    sp_command_list list;
    SP_TRY(sp_command_list_create(self->device, &list));
    const sp_status status = sp_command_list_copy(list, all_of(self->a), all_of(self->b));
    const sp_status end = sp_command_list_release(list);
    return status != SP_OK ? status : end;
}

static sp_status call_list_retain(call_context *self)
{
    SP_TRY(sp_command_list_retain(self->list));
    return sp_command_list_release(self->list);
}

static sp_status call_submit_list(call_context *self)
{
    return sp_stream_submit_list(self->stream, self->list);
}

const public_call public_calls[] = {
    {"sp_init", call_init},
    {"sp_device_at", call_device_at},
    {"sp_device_open", call_device_open},
    {"sp_device_get_info", call_device_get_info},
    {"sp_device_synchronize", call_device_synchronize},
    {"sp_device_get_memory_stats", call_memory_stats},
    {"sp_device_empty_cache", call_empty_cache},
    {"sp_device_set_memory_limit", call_set_memory_limit},
    {"sp_device_set_cache_watermarks", call_set_watermarks},
    {"sp_stream_current", call_stream_current},
    {"sp_stream_default", call_stream_default},
    {"sp_stream_from_pool", call_stream_from_pool},
    {"sp_stream_from_pool_with", call_stream_from_pool_with},
    {"sp_stream_set_current", call_set_current},
    {"sp_stream_guard_begin", call_guard},
    {"sp_stream_synchronize", call_stream_synchronize},
    {"sp_stream_synchronize_for", call_stream_synchronize_for},
    {"sp_stream_query", call_stream_query},
    {"sp_stream_flush", call_stream_flush},
    {"sp_stream_set_batching", call_set_batching},
    {"sp_stream_get_info", call_stream_get_info},
    {"sp_stream_host_function", call_host_function},
    {"sp_event_create", call_event_create},
    {"sp_event_retain", call_event_retain},
    {"sp_event_record", call_event_record},
    {"sp_event_record (timed)", call_event_record_timed},
    {"sp_event_query", call_event_query},
    {"sp_event_synchronize", call_event_synchronize},
    {"sp_event_synchronize_for", call_event_synchronize_for},
    {"sp_event_wait_all", call_event_wait_all},
    {"sp_event_wait_any", call_event_wait_any},
    {"sp_stream_wait_event", call_stream_wait_event},
    {"sp_event_elapsed", call_event_elapsed},
    {"sp_event_on_complete", call_event_on_complete},
    {"sp_storage_create", call_storage_create},
    {"sp_storage_retain", call_storage_retain},
    {"sp_storage_adopt", call_storage_adopt},
    {"sp_storage_adopt (after a stream)", call_storage_adopt_after},
    {"sp_host_alloc", call_host_alloc},
    {"sp_storage_get_info", call_storage_get_info},
    {"sp_storage_freeze", call_storage_freeze},
    {"sp_storage_host_begin", call_host_access},
    {"sp_storage_record_stream", call_record_stream},
    {"sp_storage_record_all_streams", call_record_all_streams},
    {"sp_storage_copy_async", call_copy},
    {"sp_storage_fill_async", call_fill},
    {"sp_command_list_create", call_command_list},
    {"sp_command_list_copy", call_list_copy},
    {"sp_command_list_retain", call_list_retain},
    {"sp_stream_submit_list", call_submit_list},
    {"sp_tensor_create", call_tensor_create},
    {"sp_tensor_from_host", call_tensor_from_host},
    {"sp_tensor_from_storage", call_tensor_from_storage},
    {"sp_tensor_retain", call_tensor_retain},
    {"sp_tensor_get_info", call_tensor_get_info},
    {"sp_tensor_slice", call_tensor_slice},
    {"sp_tensor_contiguous", call_tensor_contiguous},
    {"sp_tensor_copy", call_tensor_copy},
    {"sp_tensor_copy (within a storage)", call_tensor_copy_within},
    {"sp_tensor_read", call_tensor_read},
    {"sp_tensor_write", call_tensor_write},
    {"sp_tensor_to_dlpack", call_tensor_to_dlpack},
    {"sp_tensor_to_dlpack (on a stream)", call_tensor_to_dlpack_on_stream},
    {"sp_tensor_from_dlpack", call_tensor_from_dlpack},
    {"sp_op_run", call_op_run},
    {"sp_op_run (a known result)", call_op_run_known},
    {"sp_op_run (a shape in the data)", call_op_run_deciding},
    {"sp_op_run (no kernel)", call_op_run_alias},
    {"sp_op_run (into a tensor)", call_op_run_into},
    {"sp_op_run (into a view)", call_op_run_into_view},
    {"sp_op_run (attributes)", call_op_attributes},
    {"sp_linear", call_linear},
    {"sp_silu", call_silu},
    {"sp_concat", call_concat},
};

const uint32_t public_call_count = SP_COUNT_OF(public_calls);
