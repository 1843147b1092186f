/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the fake driver. primitive: it is separate from the library, and must not use the
 * locks under test. */
#ifndef SP_TESTS_FAKE_H
#define SP_TESTS_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fake_cuda.h"

/* Each driver function begins with one of these. FAKE_ENTER: injected faults, and cuInit was
 * called. FAKE_CONTEXT: additionally requires a current context that has not failed. */
#define FAKE_TRY(expr)                                                                             \
    do {                                                                                           \
        const CUresult fake_result_ = (expr);                                                      \
        if (fake_result_ != CUDA_SUCCESS) return fake_result_;                                     \
    } while (0)
#define FAKE_ENTER(name) FAKE_TRY(fake_enter(SP_CUDA_CALL_##name))
#define FAKE_CONTEXT(name, context)                                                                \
    CUcontext context = NULL;                                                                      \
    FAKE_ENTER(name);                                                                              \
    FAKE_TRY(fake_current(&(context)));                                                            \
    FAKE_TRY(fake_failure(context))
/* For functions that destroy: they do so in a failed context too, and return fake_failure(). */
#define FAKE_CONTEXT_TO_DESTROY(name, context)                                                     \
    CUcontext context = NULL;                                                                      \
    FAKE_ENTER(name);                                                                              \
    FAKE_TRY(fake_current(&(context)))

struct CUctx_st {
    atomic_int failure; /* a CUresult: every call returns it */
    atomic_uint_fast64_t bytes;
};

extern struct CUctx_st fake_contexts[FAKE_DEVICES];

CUresult fake_enter(sp_cuda_call call);
CUresult fake_current(CUcontext *out);
CUresult fake_failure(CUcontext context);
bool fake_is_device(CUdevice device);

/* The primary context of the device is destroyed. */
void fake_forget_peers(CUdevice device);
bool fake_is_alive(CUcontext context);

void fake_count(fake_cuda_object object, int64_t change);
/* Counts a destroyed object; returns the result of the function that destroyed it. */
CUresult fake_destroyed(fake_cuda_object object, CUcontext context);
/* The injected fault of this kernel, or CUDA_SUCCESS. */
CUresult fake_kernel_fault(void);
uint64_t fake_delay(void);
uint64_t fake_queue_limit(void);
void fake_wait_until_let_go(void);
void fake_wait_to_retain(void);
uint64_t fake_now(void);

/* One record of an event, or the end of a graph's launch. Shared by the stream that reaches it, the
 * event, and the waiting streams. */
typedef struct fake_mark {
    atomic_uint references;
    pthread_mutex_t lock;
    pthread_cond_t reached; /* is_done */
    bool is_done;
    uint64_t time_ns;
} fake_mark;

fake_mark *fake_mark_create(void);
fake_mark *fake_mark_retain(fake_mark *mark);
void fake_mark_release(fake_mark *mark); /* NULL is allowed */
void fake_mark_reach(fake_mark *mark);
void fake_mark_wait(fake_mark *mark);
bool fake_mark_is_done(fake_mark *mark, uint64_t *time_ns);

/* The first member of every kind of stream command. `run` is not called in a failed context; `end`
 * is always called, and frees the command. */
typedef struct fake_command {
    struct fake_command *next;
    void (*run)(struct fake_command *command);
    void (*end)(struct fake_command *command);
} fake_command;

/* Checks the handle, and that it belongs to the context. */
CUresult fake_stream_check(CUstream stream, CUcontext context);
/* Takes ownership of the command; NULL is CUDA_ERROR_OUT_OF_MEMORY. */
CUresult fake_stream_push(CUstream stream, fake_command *command);
/* Called on a stream's thread: sets the failure of the context it runs in. */
void fake_context_fail(CUcontext context, CUresult result);

/* The work of a command or of a graph node. The parameters of a kernel are copied after it. */
typedef enum fake_work_kind { FAKE_KERNEL, FAKE_COPY, FAKE_FILL } fake_work_kind;

typedef struct fake_work {
    fake_work_kind kind;
    union {
        struct {
            fake_cuda_kernel function;
            uint32_t grid[3], block[3];
            uint32_t param_count;
            size_t param_at[FAKE_MAX_PARAMS]; /* offset in `params`, in bytes */
        } kernel;
        CUDA_MEMCPY3D copy;
        CUDA_MEMSET_NODE_PARAMS fill;
    } as;
    size_t param_bytes;
    _Alignas(16) unsigned char params[];
} fake_work;

struct CUfunc_st {
    char name[64];
    fake_cuda_kernel function; /* NULL: not registered */
    atomic_uint shared_bytes;  /* that a launch may ask for */
    uint32_t param_count;
    size_t param_bytes[FAKE_MAX_PARAMS];
};

/* New work, freed by the caller; NULL with *result if it is refused. */
fake_work *fake_work_kernel(const CUDA_KERNEL_NODE_PARAMS *params, CUresult *result);
fake_work *fake_work_copy(const CUDA_MEMCPY3D *params, CUresult *result);
fake_work *fake_work_fill(const CUDA_MEMSET_NODE_PARAMS *params, CUresult *result);
fake_work *fake_work_clone(const fake_work *work);
void fake_work_run(fake_work *work, CUcontext context);
/* Takes ownership of the work; returns `result` if it is NULL. */
CUresult fake_work_push(CUstream stream, CUcontext context, fake_work *work, CUresult result);
/* A copy of so many bytes, as the work of a stream. */
CUresult fake_work_push_copy(CUstream stream, CUcontext context, CUdeviceptr target,
                             CUdeviceptr source, size_t bytes);

fake_cuda_kernel fake_find_kernel(const char *entry);

#endif
