/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, storages, events and host functions from two threads. README.md shows the middle part.
 * primitive: an application creates its own threads. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <streampool/event.h>
#include <streampool/runtime.h>
#include <streampool/storage.h>

/* Ends the program with the library's message if the call failed. */
#define MUST(call) must((call), #call)

static void must(sp_status status, const char *call)
{
    if (status == SP_OK) return;
    fprintf(stderr, "%s: %s: %s\n", call, sp_status_name(status), sp_last_error());
    exit(EXIT_FAILURE); /* NOLINT(concurrency-mt-unsafe): nothing is left to race with */
}

#define BYTES (1u << 20)

static const sp_device cpu = {0}; /* the zero handle: the default device */

/* README: begin */
static sp_storage_range whole(sp_storage storage)
{
    return (sp_storage_range){.storage = storage, .bytes = BYTES};
}

static void *fill_on_another_thread(void *arg)
{
    const uint32_t pattern = 0x2a2a2a2a;
    sp_stream mine; /* a stream of this thread's own, from the device's pool */
    MUST(sp_stream_current(cpu, &mine));
    MUST(sp_storage_fill_async(mine, whole(*(sp_storage *)arg), &pattern, sizeof pattern));
    return NULL; /* the stream goes back to the pool; the fill may still be queued */
}

static void say_that_it_is_done(void *ctx, sp_status status)
{
    printf("host function: the %s is done (%s)\n", (const char *)ctx, sp_status_text(status));
}

static void copy_between_threads(void)
{
    sp_storage a;
    sp_storage b;
    MUST(sp_storage_create(cpu, BYTES, NULL, &a));
    MUST(sp_storage_create(cpu, BYTES, NULL, &b));
    pthread_t thread;
    if (pthread_create(&thread, NULL, fill_on_another_thread, &a) != 0) abort();
    pthread_join(thread, NULL); /* the fill is submitted now, which is all that counts */

    sp_stream stream;
    sp_event start;
    sp_event end;
    MUST(sp_stream_current(cpu, &stream));
    MUST(sp_event_create(&(sp_event_options){.enable_timing = true}, &start));
    MUST(sp_event_create(&(sp_event_options){.enable_timing = true}, &end));
    MUST(sp_event_record(start, stream));
    MUST(sp_storage_copy_async(stream, whole(b), whole(a))); /* follows the fill: a is tracked */
    MUST(sp_event_record(end, stream));
    MUST(sp_stream_host_function(stream, say_that_it_is_done, "copy"));
    MUST(sp_stream_synchronize(stream));

    int64_t ns;
    MUST(sp_event_elapsed(start, end, &ns));
    printf("the copy took %lld us\n", (long long)(ns / 1000));

    void *data;
    MUST(sp_storage_host_begin(b, SP_READ, &data)); /* waits for what wrote b, and only that */
    printf("the first word of b is %#x\n", *(const uint32_t *)data);
    MUST(sp_storage_host_end(b, SP_READ));

    MUST(sp_event_release(start));
    MUST(sp_event_release(end));
    MUST(sp_storage_release(a));
    MUST(sp_storage_release(b));
    if (sp_storage_retain(b) == SP_INVALID) printf("misuse: %s\n", sp_last_error());
}
/* README: end */

int main(void)
{
    copy_between_threads();
    MUST(sp_shutdown());
    return EXIT_SUCCESS;
}
