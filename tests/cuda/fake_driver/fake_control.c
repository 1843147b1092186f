/* SPDX-License-Identifier: Apache-2.0 */
/* The controls of tests. primitive: see fake.h. What driver calls read is a relaxed atomic, which
 * orders nothing between their callers; the gate orders who opens it before what it lets go. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct call_fault {
    atomic_int result; /* CUDA_SUCCESS: none */
    atomic_int_fast64_t skip, times;
} call_fault;

static call_fault call_faults[SP_CUDA_CALL_COUNT];
static call_fault kernel_fault;
static _Atomic(fake_cuda_observer) call_observer;
static atomic_uint_fast64_t live[FAKE_OBJECT_COUNT];
static atomic_uint_fast64_t delay_ns;
static atomic_uint_fast64_t queue_limit = FAKE_QUEUE_LIMIT;

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_opened = PTHREAD_COND_INITIALIZER;
static atomic_bool gate_is_closed; /* changed under the lock */
static bool is_retain_held;
static uint64_t retaining_count;

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static struct registered {
    char entry[64];
    fake_cuda_kernel kernel;
} kernels[1024];

static CUresult take_fault(call_fault *fault)
{
    const int result = atomic_load_explicit(&fault->result, memory_order_relaxed);
    if (result == CUDA_SUCCESS) return CUDA_SUCCESS;
    if (atomic_fetch_sub_explicit(&fault->skip, 1, memory_order_relaxed) > 0) return CUDA_SUCCESS;
    if (atomic_fetch_sub_explicit(&fault->times, 1, memory_order_relaxed) > 0) {
        return (CUresult)result;
    }
    return CUDA_SUCCESS;
}

static void set_fault(call_fault *fault, uint64_t nth, uint64_t times, CUresult result)
{
    atomic_store(&fault->result, CUDA_SUCCESS);
    atomic_store(&fault->skip, (int64_t)nth - 1);
    atomic_store(&fault->times, (int64_t)times);
    atomic_store(&fault->result, (int)result);
}

void fake_cuda_observe(fake_cuda_observer observer)
{
    atomic_store_explicit(&call_observer, observer, memory_order_relaxed);
}

CUresult fake_enter(sp_cuda_call call)
{
    const fake_cuda_observer observer = atomic_load_explicit(&call_observer, memory_order_relaxed);
    if (observer != NULL) observer(call);
    return take_fault(&call_faults[call]);
}

CUresult fake_kernel_fault(void)
{
    return take_fault(&kernel_fault);
}

void fake_cuda_fail_call(const char *name, uint64_t nth, uint64_t times, CUresult result)
{
    static const char *const names[] = {
#define NAME(name, symbol, params) #name,
        SP_CUDA_LIST(NAME)
#undef NAME
    };
    for (size_t i = 0; i < SP_CUDA_CALL_COUNT; i++) {
        if (strcmp(names[i], name) == 0) {
            set_fault(&call_faults[i], nth, times, result);
            return;
        }
    }
    abort(); /* an unknown name would test nothing */
}

void fake_cuda_fail_kernel(uint64_t nth, CUresult result)
{
    set_fault(&kernel_fault, nth, 1, result);
}

void fake_count(fake_cuda_object object, int64_t change)
{
    atomic_fetch_add_explicit(&live[object], (uint64_t)change, memory_order_relaxed);
}

CUresult fake_destroyed(fake_cuda_object object, CUcontext context)
{
    fake_count(object, -1);
    return fake_failure(context);
}

uint64_t fake_cuda_live(fake_cuda_object object)
{
    return atomic_load_explicit(&live[object], memory_order_relaxed);
}

uint64_t fake_cuda_live_all(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < FAKE_OBJECT_COUNT; i++) sum += fake_cuda_live((fake_cuda_object)i);
    return sum;
}

void fake_cuda_set_delay(uint64_t ns)
{
    atomic_store_explicit(&delay_ns, ns, memory_order_relaxed);
}

uint64_t fake_delay(void)
{
    return atomic_load_explicit(&delay_ns, memory_order_relaxed);
}

void fake_cuda_set_queue_limit(uint64_t commands)
{
    atomic_store_explicit(&queue_limit, commands, memory_order_relaxed);
}

uint64_t fake_queue_limit(void)
{
    return atomic_load_explicit(&queue_limit, memory_order_relaxed);
}

void fake_cuda_hold(bool is_held)
{
    pthread_mutex_lock(&gate_lock);
    atomic_store_explicit(&gate_is_closed, is_held, memory_order_release);
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate_lock);
}

void fake_wait_until_let_go(void)
{
    /* The lock would order streams with each other, so it is taken only while a test holds them.
     * Acquire: pairs with the release of who opened the gate, and may have looked at memory before.
     */
    if (!atomic_load_explicit(&gate_is_closed, memory_order_acquire)) return;
    pthread_mutex_lock(&gate_lock);
    while (atomic_load_explicit(&gate_is_closed, memory_order_relaxed)) {
        pthread_cond_wait(&gate_opened, &gate_lock);
    }
    pthread_mutex_unlock(&gate_lock);
}

void fake_cuda_hold_retain(bool is_held)
{
    pthread_mutex_lock(&gate_lock);
    is_retain_held = is_held;
    pthread_cond_broadcast(&gate_opened);
    pthread_mutex_unlock(&gate_lock);
}

uint64_t fake_cuda_retaining(void)
{
    pthread_mutex_lock(&gate_lock);
    const uint64_t count = retaining_count;
    pthread_mutex_unlock(&gate_lock);
    return count;
}

void fake_wait_to_retain(void)
{
    pthread_mutex_lock(&gate_lock);
    retaining_count++;
    while (is_retain_held) pthread_cond_wait(&gate_opened, &gate_lock);
    retaining_count--;
    pthread_mutex_unlock(&gate_lock);
}

void fake_cuda_register(const char *entry, fake_cuda_kernel kernel)
{
    pthread_mutex_lock(&kernels_lock);
    struct registered *place = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].entry, entry) == 0) {
            place = &kernels[i];
            break;
        }
        if (place == NULL && kernels[i].entry[0] == '\0') place = &kernels[i];
    }
    if (place == NULL || strlen(entry) >= sizeof place->entry) abort();
    memcpy(place->entry, entry, strlen(entry) + 1);
    place->kernel = kernel;
    pthread_mutex_unlock(&kernels_lock);
}

fake_cuda_kernel fake_find_kernel(const char *entry)
{
    fake_cuda_kernel found = NULL;
    pthread_mutex_lock(&kernels_lock);
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        if (strcmp(kernels[i].entry, entry) == 0) found = kernels[i].kernel;
    }
    pthread_mutex_unlock(&kernels_lock);
    return found;
}

uint64_t fake_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void fake_cuda_reset(void)
{
    for (size_t i = 0; i < SP_CUDA_CALL_COUNT; i++) set_fault(&call_faults[i], 1, 0, CUDA_SUCCESS);
    set_fault(&kernel_fault, 1, 0, CUDA_SUCCESS);
    fake_cuda_observe(NULL);
    fake_cuda_set_delay(0);
    fake_cuda_set_queue_limit(FAKE_QUEUE_LIMIT);
    fake_cuda_hold(false);
    fake_cuda_hold_retain(false);
    fake_cuda_set_device_count(FAKE_DEVICES);
    fake_cuda_set_peers(true);
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4);
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9);
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1);
    fake_cuda_set_ptx(FAKE_ARCHITECTURE);
    fake_cuda_set_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448);
    for (int i = 0; i < FAKE_DEVICES; i++) atomic_store(&fake_contexts[i].failure, CUDA_SUCCESS);
}
