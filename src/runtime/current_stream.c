/* SPDX-License-Identifier: Apache-2.0 */
/* Current streams. The common case is answered from the thread's own record: one load of the slot,
 * one of the handle, one of the runtime's phase, one of the mask of closed devices. */
#include "runtime/current_stream.h"

#include "base/error.h"
#include "base/heap.h"
#include "runtime/run_queue.h"

typedef struct thread_streams {
    sp_stream current[SP_MAX_DEVICES]; /* zero: not leased yet */
    sp_stream own[SP_MAX_DEVICES];     /* leases that the thread owns; zero on the main thread */
    uint64_t guard;                    /* number of the innermost open guard; 0: none */
    uint64_t last_guard;               /* number of the newest one; never reused */
} thread_streams;

/* Each thread_streams numbers its guards from here, 2^32 apart: a guard left open on an earlier one
 * does not match a guard of the next. */
static sp_atomic_u64 last_range; /* process-wide: threads are */

static void own_streams_release(thread_streams *streams)
{
    /* A stream that the program has released already is not an error. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    for (uint32_t i = 0; i < SP_MAX_DEVICES; i++) {
        /* If a guard or set_current has made another stream current, that one stays. */
        if (streams->current[i].bits == streams->own[i].bits) streams->current[i].bits = 0;
        sp__stream_lease_release(streams->own[i]);
        streams->own[i].bits = 0;
    }
    sp__error_put_back(&scope);
}

/* Runs when the thread ends, and between the functions that an executor thread runs. */
static void thread_streams_destroy(void *value)
{
    if (!sp__runtime_is_forked()) own_streams_release(value);
    sp_free(value);
}

static thread_streams *thread_streams_get(void)
{
    thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    if (streams != NULL) return streams;
    streams = sp_calloc(1, sizeof *streams);
    if (streams != NULL) {
        streams->last_guard = (sp_fetch_add_relaxed(&last_range, (uint64_t)1) + 1) << 32;
    }
    if (streams != NULL && sp_tls_set(SP_TLS_STREAM, streams, thread_streams_destroy))
        return streams;
    sp_free(streams);
    sp__fail(SP_OUT_OF_MEMORY, "no memory for this thread's streams");
    return NULL;
}

/* The program may have released the stream. */
static bool is_stream_live(sp_stream stream)
{
    sp_stream_ref ref;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const bool is_found = stream.bits != 0 && sp__stream_find(stream, &ref) == SP_OK;
    sp__error_put_back(&scope);
    return is_found;
}

/* If others have the stream too, runs on it need other queues: created here, so that no run does.
 */
static sp_status pool_acquire(sp_rt_device *device, sp_stream *out)
{
    sp_stream_ref ref;
    SP_TRY(sp__stream_pool_acquire(&device->pool, out));
    if (sp__stream_find(*out, &ref) == SP_OK && sp__stream_is_shared(ref.stream)) {
        sp__run_queues_open(device);
    }
    return SP_OK;
}

/* The thread has no current stream of the device yet. */
static SP_NOINLINE sp_status own_stream_acquire(sp_rt_device *device, sp_stream *out)
{
    thread_streams *streams = thread_streams_get();
    if (streams == NULL) return SP_OUT_OF_MEMORY;
    const uint32_t index = device->index;
    if (is_stream_live(streams->own[index])) {
        *out = streams->own[index];
    } else if (sp_thread_is_main()) {
        *out = device->pool.default_stream;
    } else {
        SP_TRY(pool_acquire(device, out));
        sp__stream_lease_set_own(*out, true);
        streams->own[index] = *out;
    }
    streams->current[index] = *out;
    return SP_OK;
}

static sp_status current_handle(sp_rt_device *device, sp_stream *out)
{
    const thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    if (SP_LIKELY(streams != NULL && streams->current[device->index].bits != 0)) {
        *out = streams->current[device->index];
        return SP_OK;
    }
    return own_stream_acquire(device, out);
}

sp_status sp__current_stream(sp_rt_device *device, sp_stream_ref *out)
{
    sp_stream stream;
    SP_TRY(current_handle(device, &stream));
    return sp__stream_find(stream, out);
}

bool sp__current_stream_peek(const sp_rt_device *device, sp_stream_ref *out)
{
    const thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    if (streams == NULL || streams->current[device->index].bits == 0) return false;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const bool is_found = sp__stream_find(streams->current[device->index], out) == SP_OK;
    sp__error_put_back(&scope);
    return is_found;
}

void sp__current_stream_forget(void)
{
    sp_free(sp_tls_get(SP_TLS_STREAM));
    sp_tls_set(SP_TLS_STREAM, NULL, NULL);
}

/* ---- public ---- */

static SP_NOINLINE sp_status current_stream_slow(sp_device handle, sp_stream *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_stream_current: out is NULL");
    *out = (sp_stream){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    return current_handle(device, out);
}

sp_status sp_stream_current(sp_device device, sp_stream *out)
{
    const thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    const uint64_t index = sp__rt_device_index(device);
    /* Relaxed: an earlier call of this thread stored the stream. */
    if (SP_LIKELY(streams != NULL && out != NULL && index < SP_MAX_DEVICES &&
                  streams->current[index].bits != 0 &&
                  sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_UP &&
                  !sp__rt_device_is_closed(index))) {
        *out = streams->current[index];
        return SP_OK;
    }
    return current_stream_slow(device, out);
}

sp_status sp_stream_default(sp_device handle, sp_stream *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_stream_default: out is NULL");
    *out = (sp_stream){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find(handle, &device));
    *out = device->pool.default_stream;
    return SP_OK;
}

static sp_status check_options(const sp_stream_options *options)
{
    for (uint32_t i = 0; i < SP_COUNT_OF(options->reserved); i++) {
        if (options->reserved[i] == 0) continue;
        return sp__fail(SP_UNSUPPORTED,
                        "sp_stream_options.reserved[%u] is not zero: this version "
                        "has no such option",
                        i);
    }
    return SP_OK;
}

sp_status sp_stream_from_pool_with(sp_device handle, const sp_stream_options *options,
                                   sp_stream *out)
{
    if (out == NULL) return sp__fail(SP_INVALID, "sp_stream_from_pool: out is NULL");
    *out = (sp_stream){0};
    sp_rt_device *device;
    SP_TRY(sp__rt_device_find_working(handle, &device));
    if (options != NULL) SP_TRY(check_options(options));
    SP_TRY(pool_acquire(device, out));
    if (options == NULL || !options->is_unbatched) return SP_OK;
    const sp_status status = sp_stream_set_batching(*out, false);
    if (status == SP_OK) return SP_OK;
    (void)sp__stream_lease_release(*out); /* a concurrent shutdown */
    *out = (sp_stream){0};
    return status;
}

sp_status sp_stream_from_pool(sp_device handle, sp_stream *out)
{
    return sp_stream_from_pool_with(handle, NULL, out);
}

sp_status sp_stream_release(sp_stream stream)
{
    if (sp__runtime_is_forked()) return SP_OK;
    return sp__stream_lease_release(stream);
}

/* Runs of several threads that have made one stream current stay in its order. */
static void current_set(thread_streams *streams, uint32_t index, sp_stream stream)
{
    if (stream.bits != streams->own[index].bits) sp__stream_lease_set_own(stream, false);
    streams->current[index] = stream;
}

sp_status sp_stream_set_current(sp_stream stream)
{
    SP_TRY(sp__runtime_enter());
    thread_streams *streams = thread_streams_get();
    if (streams == NULL) return SP_OUT_OF_MEMORY;
    if (stream.bits == 0) { /* leased or looked up again at the next query */
        for (uint32_t i = 0; i < SP_MAX_DEVICES; i++) streams->current[i].bits = 0;
        return SP_OK;
    }
    sp_stream_ref ref;
    SP_TRY(sp__stream_find(stream, &ref));
    current_set(streams, ref.stream->device->index, stream);
    return SP_OK;
}

sp_status sp_stream_guard_begin(sp_stream stream, sp_stream_guard *guard)
{
    if (guard == NULL) return sp__fail(SP_INVALID, "sp_stream_guard_begin: guard is NULL");
    sp_stream_ref ref;
    SP_TRY(sp__rt_stream_find(stream, &ref));
    thread_streams *streams = thread_streams_get();
    if (streams == NULL) return SP_OUT_OF_MEMORY;
    const uint32_t index = ref.stream->device->index;
    /* The thread's own stream is saved as zero: it may be released inside the scope, and then the
     * thread gets another afterwards. */
    const bool is_own = streams->current[index].bits == streams->own[index].bits;
    *guard = (sp_stream_guard){
        .previous = is_own ? (sp_stream){0} : streams->current[index],
        .thread = sp_thread_number(),
        .number = ++streams->last_guard,
        .outer = streams->guard,
        .device = index,
    };
    streams->guard = guard->number;
    current_set(streams, index, stream);
    return SP_OK;
}

sp_status sp_stream_guard_end(const sp_stream_guard *guard)
{
    SP_TRY(sp__runtime_enter());
    thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    if (guard == NULL || streams == NULL || guard->thread != sp_thread_number() ||
        guard->number == 0 || guard->number != streams->guard || guard->device >= SP_MAX_DEVICES) {
        return sp__fail(SP_INVALID, "this is not the innermost open guard of this thread: guards "
                                    "end in reverse order, on the thread that began them");
    }
    streams->guard = guard->outer;
    streams->current[guard->device] = guard->previous;
    return SP_OK;
}

sp_status sp_thread_release_stream(void)
{
    if (sp__runtime_is_forked()) return SP_OK;
    thread_streams *streams = sp_tls_get(SP_TLS_STREAM);
    if (streams != NULL) own_streams_release(streams);
    return SP_OK;
}
