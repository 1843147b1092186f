/* SPDX-License-Identifier: Apache-2.0 */
/* use_threads MODEL [race]: a user's program that orders its threads by the library alone. Built
 * with ThreadSanitizer against an uninstrumented library, it must get no report; with `race` it has
 * its own race, which must be reported. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/streampool.h>

enum { ROUNDS = 200, BYTES = 4096, THREADS = 2, MAX_ELEMENTS = 256 };

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != SP_OK) {                                                                     \
            fprintf(stderr, "%s: %s\n", #call, sp_last_error());                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "not true: %s\n", #condition);                                         \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static const sp_device cpu = {0};

/* Runs `fn(arg)` on THREADS threads. */
static void on_threads(void *(*fn)(void *arg), void *arg)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, fn, arg) == 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void add_one(void *ctx, sp_status status)
{
    CHECK(status == SP_OK);
    ++*(int *)ctx;
}

/* ---- one stream orders host functions and the thread that waits ---- */

static void use_host_functions(void)
{
    sp_stream stream;
    int count = 0;
    MUST(sp_stream_from_pool(cpu, &stream));
    for (int i = 0; i < ROUNDS; i++) {
        count++;
        MUST(sp_stream_host_function(stream, add_one, &count));
        MUST(sp_stream_host_function(stream, add_one, &count));
        if (i % 2 == 0) MUST(sp_stream_flush(stream));
        while (i % 2 == 0 && sp_stream_query(stream) == SP_NOT_READY) {
        }
        MUST(sp_stream_synchronize(stream));
        CHECK(count == 3 * (i + 1));
    }
    MUST(sp_stream_release(stream));
}

/* ---- an event passes a value from one stream to threads and to another stream ---- */

typedef struct hand_over {
    sp_stream first;
    sp_stream second;
    sp_event event;
    int count;
} hand_over;

static void *wait_for_event(void *arg)
{
    hand_over *shared = arg;
    MUST(sp_event_synchronize(shared->event));
    CHECK(shared->count == 2);
    return NULL;
}

/* Owns its argument. */
static void read_and_free(void *ctx, sp_status status)
{
    CHECK(status == SP_OK && *(int *)ctx == 7);
    free(ctx);
}

static int *new_seven(void)
{
    int *seven = malloc(sizeof *seven);
    CHECK(seven != NULL);
    *seven = 7;
    return seven;
}

static void use_events(void)
{
    hand_over shared = {.count = 0};
    MUST(sp_stream_from_pool(cpu, &shared.first));
    MUST(sp_stream_from_pool(cpu, &shared.second));
    MUST(sp_event_create(NULL, &shared.event));
    for (int i = 0; i < ROUNDS; i++) {
        shared.count = 0;
        MUST(sp_stream_host_function(shared.first, add_one, &shared.count));
        MUST(sp_event_record(shared.event, shared.first));
        MUST(sp_stream_wait_event(shared.second, shared.event));
        MUST(sp_stream_host_function(shared.second, add_one, &shared.count));
        MUST(sp_event_record(shared.event, shared.second));
        MUST(sp_event_on_complete(shared.event, read_and_free, new_seven()));
        if (i % 20 == 0) on_threads(wait_for_event, &shared);
        MUST(sp_event_synchronize(shared.event));
        CHECK(shared.count == 2);
    }
    MUST(sp_event_release(shared.event));
    MUST(sp_stream_release(shared.first));
    MUST(sp_stream_release(shared.second));
}

/* ---- host accesses exclude each other; commands of two threads use one storage ---- */

typedef struct shared_storage {
    sp_storage storage;
    int count; /* guarded by write access to the storage */
} shared_storage;

static void *use_shared_storage(void *arg)
{
    shared_storage *shared = arg;
    for (int i = 0; i < ROUNDS; i++) {
        const uint32_t pattern = 7;
        const sp_storage_range half = {shared->storage, BYTES / 2, BYTES / 2};
        uint32_t *data;
        sp_stream stream;
        MUST(sp_storage_host_begin(shared->storage, SP_READ_WRITE, (void **)&data));
        data[0]++;
        shared->count++;
        MUST(sp_storage_host_end(shared->storage, SP_READ_WRITE));
        MUST(sp_stream_current(cpu, &stream));
        MUST(sp_storage_fill_async(stream, half, &pattern, sizeof pattern));
        MUST(sp_storage_host_begin(shared->storage, SP_READ, (void **)&data));
        CHECK(data[BYTES / 8] == 7 && data[0] > 0);
        MUST(sp_storage_host_end(shared->storage, SP_READ));
    }
    return NULL;
}

static void use_storages(void)
{
    shared_storage shared = {.count = 0};
    void *data;
    MUST(sp_storage_create(cpu, BYTES, NULL, &shared.storage));
    MUST(sp_storage_host_begin(shared.storage, SP_WRITE, &data));
    memset(data, 0, BYTES);
    MUST(sp_storage_host_end(shared.storage, SP_WRITE));
    on_threads(use_shared_storage, &shared);
    CHECK(shared.count == THREADS * ROUNDS);
    MUST(sp_storage_release(shared.storage));
}

/* ---- memory returned to other threads; adopted memory to its owner ---- */

static void free_adopted(void *ctx, void *data)
{
    CHECK(*(unsigned char *)data == 3 && *(int *)ctx == 0);
    free(data);
    free(ctx);
}

static void *use_memory(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        sp_storage own;
        sp_storage adopted;
        sp_stream stream;
        unsigned char *bytes = malloc(BYTES);
        int *count = calloc(1, sizeof *count);
        CHECK(bytes != NULL && count != NULL);
        memset(bytes, 3, BYTES);
        const sp_adopt_options options = {.release = free_adopted, .ctx = count};
        MUST(sp_storage_adopt(cpu, bytes, BYTES, &options, &adopted));
        MUST(sp_storage_create(cpu, BYTES, NULL, &own));
        MUST(sp_stream_current(cpu, &stream));
        MUST(sp_storage_copy_async(stream, (sp_storage_range){own, 0, BYTES},
                                   (sp_storage_range){adopted, 0, BYTES}));
        MUST(sp_storage_release(adopted));
        void *data;
        MUST(sp_storage_host_begin(own, SP_READ, &data));
        CHECK(((unsigned char *)data)[BYTES - 1] == 3);
        MUST(sp_storage_host_end(own, SP_READ));
        MUST(sp_storage_release(own));
    }
    return NULL;
}

/* ---- models: threads run one, and wait for runs of others ---- */

typedef struct model_run {
    sp_model model;
    sp_future future;
    float x[MAX_ELEMENTS];
    float y[MAX_ELEMENTS];
    float expected;
} model_run;

static const char *model_path;

/* The input x has `rows` rows of 4, the output 3 columns. */
static sp_host_tensor tensor_of(float *data, int64_t rows, int64_t columns)
{
    const uint64_t bytes = (uint64_t)(rows * columns) * sizeof *data;
    return (sp_host_tensor){.data = data,
                            .bytes = bytes,
                            .capacity = bytes,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {rows, columns}};
}

static void *run_model(void *arg)
{
    const model_run *shared = arg;
    for (int i = 0; i < ROUNDS; i++) {
        float x[MAX_ELEMENTS];
        float y[MAX_ELEMENTS];
        const int64_t rows = 1 + i % 40; /* more shapes than plans: some are evicted */
        for (int64_t k = 0; k < rows * 4; k++) x[k] = 1;
        const sp_host_tensor input = tensor_of(x, rows, 4);
        sp_host_tensor output = tensor_of(y, rows, 3);
        MUST(sp_model_run(shared->model, &input, 1, &output, 1));
        CHECK(y[0] == shared->expected);
    }
    return NULL;
}

static void *wait_for_run(void *arg)
{
    const model_run *shared = arg;
    MUST(sp_future_wait(shared->future));
    CHECK(shared->y[0] == shared->expected);
    return NULL;
}

static void *wait_for_any_run(void *arg)
{
    const model_run *shared = arg;
    uint32_t which;
    MUST(sp_future_wait_any(&shared->future, 1, -1, &which));
    CHECK(which == 0 && shared->y[0] == shared->expected);
    return NULL;
}

static void submit_model(model_run *run)
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int k = 0; k < 4; k++) run->x[k] = 1;
        const sp_host_tensor input = tensor_of(run->x, 1, 4);
        sp_host_tensor output = tensor_of(run->y, 1, 3);
        MUST(sp_model_submit(run->model, &input, 1, &output, 1, &run->future));
        MUST(sp_future_on_complete(run->future, read_and_free, new_seven()));
        if (i % 20 == 0) on_threads(i % 40 == 0 ? wait_for_run : wait_for_any_run, run);
        wait_for_any_run(run);
        MUST(sp_future_release(run->future));
    }
}

static void use_models(void)
{
    model_run run = {.x = {1, 1, 1, 1}};
    MUST(sp_model_load(model_path, NULL, &run.model));
    const sp_host_tensor input = tensor_of(run.x, 1, 4);
    sp_host_tensor output = tensor_of(run.y, 1, 3);
    MUST(sp_model_run(run.model, &input, 1, &output, 1));
    run.expected = run.y[0];
    on_threads(run_model, &run);
    submit_model(&run);
    MUST(sp_model_release(run.model));
}

/* ---- a race in the user's program ---- */

static int raced;
static int is_written; /* set after the host function has run; orders nothing */

static void write_raced(void *ctx, sp_status status)
{
    (void)ctx, (void)status;
    raced++;
    __atomic_store_n(&is_written, 1, __ATOMIC_RELAXED);
}

/* Writes a variable that a submitted host function also writes. */
static void race(void)
{
    sp_stream stream;
    MUST(sp_stream_from_pool(cpu, &stream));
    MUST(sp_stream_host_function(stream, write_raced, NULL));
    MUST(sp_stream_flush(stream));
    raced++;
    while (__atomic_load_n(&is_written, __ATOMIC_RELAXED) == 0) {
    }
    MUST(sp_stream_release(stream));
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    model_path = argv[1];
    if (argc > 2 && strcmp(argv[2], "race") == 0) {
        race();
        return 0;
    }
    use_host_functions();
    use_events();
    use_storages();
    on_threads(use_memory, NULL);
    use_models();
    printf("threads ordered by the library alone\n");
    return 0;
}
