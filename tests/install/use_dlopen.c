/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle of a plug-in: a thread opens the library at the given path, uses it, closes it,
 * and ends. Only then the library releases its per-thread state. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <streampool/streampool.h>

/* Looks up a function of the library; ISO C has no cast from dlsym's pointer. */
#define LOOK_UP(library, fn, name)                                                                 \
    do {                                                                                           \
        void *found = dlsym(library, name);                                                        \
        if (found == NULL) return "no " name;                                                      \
        memcpy(&(fn), &found, sizeof found);                                                       \
    } while (0)

static const char *use(void *library)
{
    sp_status (*current)(sp_device device, sp_stream *out);
    sp_status (*create)(sp_device device, uint64_t bytes, const sp_storage_options *options,
                        sp_storage *out);
    sp_status (*release)(sp_storage storage);
    sp_status (*fill)(sp_stream stream, sp_storage_range to, const void *pattern, uint32_t bytes);
    sp_status (*begin)(sp_storage storage, sp_access access, void **data);
    sp_status (*end)(sp_storage storage, sp_access access);
    const char *(*last_error)(void);
    LOOK_UP(library, current, "sp_stream_current");
    LOOK_UP(library, create, "sp_storage_create");
    LOOK_UP(library, release, "sp_storage_release");
    LOOK_UP(library, fill, "sp_storage_fill_async");
    LOOK_UP(library, begin, "sp_storage_host_begin");
    LOOK_UP(library, end, "sp_storage_host_end");
    LOOK_UP(library, last_error, "sp_last_error");

    const sp_device cpu = {0};
    const unsigned char seven = 7;
    sp_stream stream;
    sp_storage storage;
    void *data;
    if (current(cpu, &stream) != SP_OK) return "no stream";
    if (create(cpu, 64, NULL, &storage) != SP_OK) return "no storage";
    const sp_storage_range all = {storage, 0, 64};
    if (fill(stream, all, &seven, 1) != SP_OK) return "no fill";
    if (begin(storage, SP_READ, &data) != SP_OK) return "no access";
    if (((const unsigned char *)data)[63] != 7) return "wrong bytes";
    if (end(storage, SP_READ) != SP_OK || release(storage) != SP_OK) return "no release";
    if (release(storage) != SP_INVALID || last_error()[0] == '\0') return "no error of the thread";
    return NULL;
}

static void *live_and_end(void *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return dlerror();
    const char *wrong = use(library);
    if (wrong == NULL && dlclose(library) != 0) wrong = "no dlclose";
    return (void *)wrong;
}

/* Twice: the second thread finds the state left by the first. */
int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        void *wrong = "no thread";
        if (argc != 2 || pthread_create(&thread, NULL, live_and_end, argv[1]) != 0) return 2;
        if (pthread_join(thread, &wrong) != 0) return 2;
        if (wrong == NULL) continue;
        fprintf(stderr, "thread %d: %s\n", i, (const char *)wrong);
        return 1;
    }
    printf("opened, used and closed on threads that ended\n");
    return 0;
}
