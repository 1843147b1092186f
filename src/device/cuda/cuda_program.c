/* SPDX-License-Identifier: Apache-2.0 */
/* An append-only list of programs, each with its functions found so far. Loads run outside the
 * lock, since the driver and the compiler can be slow. */
#include "device/cuda/cuda_program.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/inflate.h"
#include "base/macros.h"
#include "device/cuda/cuda_disk_cache.h"
#include "device/cuda/cuda_nvrtc.h"

typedef enum load_state { NOT_LOADED, LOADING, LOADED } load_state;

typedef struct loaded_program {
    const sp_gpu_program *program; /* constant, as is the link */
    struct loaded_program *next;
    load_state state; /* this and the rest: under the lock of sp_cuda_programs */
    uint64_t failures;
    sp_status failure; /* the newest failure, and its message */
    char message[SP_ERROR_BYTES];
    CUmodule module; /* constant once LOADED */
    /* CUfunctions by the index of their kernels; NULL: not looked up yet. Stored (release) by any
     * thread that looked it up (the driver returns the same function each time), read (acquire) by
     * every launch, for which the module is then loaded. */
    SP_ATOMIC(CUfunction) functions[];
} loaded_program;

sp_status sp__cuda_programs_open(sp_cuda_programs *programs, sp_gpu_gate *gate, CUdevice device)
{
    int major;
    int minor;
    int shared;
    *programs = (sp_cuda_programs){.gate = gate};
    SP_CUDA_TRY(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    SP_CUDA_TRY(cuDeviceGetAttribute, &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    SP_CUDA_TRY(cuDeviceGetAttribute, &shared,
                CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
    programs->shared_bytes = (uint32_t)shared;
    snprintf(programs->architecture, sizeof programs->architecture, "sm_%d%d", major, minor);
    sp_mutex_init(&programs->lock, SP_LOCK_CUDA_PROGRAMS);
    sp_cond_init(&programs->load_ended);
    return SP_OK;
}

void sp__cuda_programs_close(sp_cuda_programs *programs)
{
    if (programs->architecture[0] == '\0') return;
    loaded_program *program = sp_load_relaxed(&programs->first); /* no concurrent calls */
    while (program != NULL) {
        loaded_program *next = program->next;
        /* The result is ignored: the modules of a lost context are lost too. */
        if (program->state == LOADED) (void)SP_CUDA(cuModuleUnload)(program->module);
        sp_free(program);
        program = next;
    }
    sp_cond_deinit(&programs->load_ended);
    sp_mutex_deinit(&programs->lock);
    *programs = (sp_cuda_programs){0};
}

/* ---- loading, outside the lock ---- */

/* The parts of a program's text, joined; `text` has their bytes and one more. */
static sp_status parts_inflate(const sp_gpu_program *program, char *text)
{
    for (size_t i = 0; i < SP_COUNT_OF(program->parts); i++) {
        const sp_gpu_text *part = program->parts[i];
        SP_TRY(sp__inflate(part->deflated, part->deflated_bytes, text, part->bytes));
        text += part->bytes;
    }
    *text = '\0';
    return SP_OK;
}

sp_status sp__cuda_program_text(const sp_gpu_program *program, char **out)
{
    const char *source = program->source;
    const size_t bytes =
        source != NULL ? strlen(source) : program->parts[0]->bytes + program->parts[1]->bytes;
    char *text = sp_malloc(bytes + 1);
    if (text == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile the kernels '%s'", program->name);
    }
    sp_status status = SP_OK;
    if (source != NULL) memcpy(text, source, bytes + 1);
    else status = parts_inflate(program, text);
    if (status != SP_OK) {
        sp_free(text);
        return sp__fail_prefix(status, "the text of the kernels '%s': ", program->name);
    }
    *out = text;
    return SP_OK;
}

/* The compiler's target: with what only 9.0 has, which compilers know from CUDA 12.0 on. */
static const char *target_of(const sp_cuda_programs *programs, sp_nvrtc_version compiler)
{
    const bool is_own = strcmp(programs->architecture, "sm_90") == 0 && compiler.major >= 12;
    return is_own ? "sm_90a" : programs->architecture;
}

/* An image compiled for this GPU, to be freed by the caller: from the disk cache, or a new one. */
static sp_status text_compile(const sp_cuda_programs *programs, const sp_gpu_program *program,
                              const char *text, sp_nvrtc_version compiler, void **image)
{
    const char *architecture = target_of(programs, compiler);
    const sp_cuda_image_key key = {
        .name = program->name, .source = text, .architecture = architecture, .compiler = compiler};
    size_t bytes;
    if (sp__cuda_disk_cache_read(&key, image, &bytes)) return SP_OK;
    SP_TRY(sp__nvrtc_compile(program->name, text, architecture, image, &bytes));
    sp__cuda_disk_cache_write(&key, *image, bytes);
    return SP_OK;
}

static sp_status program_compile(const sp_cuda_programs *programs, const sp_gpu_program *program,
                                 void **image)
{
    sp_nvrtc_version compiler;
    if (sp__nvrtc_open(&compiler) != SP_OK) {
        return sp__fail_prefix(SP_UNSUPPORTED,
                               "the kernels '%s' have no code for this GPU (%s): ", program->name,
                               programs->architecture);
    }
    char *text;
    SP_TRY(sp__cuda_program_text(program, &text));
    const sp_status status = text_compile(programs, program, text, compiler, image);
    sp_free(text);
    return status;
}

static CUresult module_load(const sp_cuda_programs *programs, const void *image, CUmodule *module)
{
    sp__gpu_gate_close(programs->gate);
    const CUresult result = SP_CUDA(cuModuleLoadData)(module, image);
    sp__gpu_gate_open(programs->gate);
    return result;
}

static sp_status program_compile_and_load(const sp_cuda_programs *programs,
                                          const sp_gpu_program *program, CUmodule *module)
{
    void *image;
    SP_TRY(program_compile(programs, program, &image));
    const sp_status status =
        sp__cuda_check(module_load(programs, image, module), "cuModuleLoadData", program->name);
    sp_free(image);
    return status;
}

static sp_status program_load(const sp_cuda_programs *programs, const sp_gpu_program *program,
                              CUmodule *module)
{
    if (program->binary != NULL) {
        const CUresult result = module_load(programs, program->binary, module);
        if (result != CUDA_ERROR_NO_BINARY_FOR_GPU &&
            result != CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
            return sp__cuda_check(result, "cuModuleLoadData", program->name);
        }
    }
    return program_compile_and_load(programs, program, module);
}

/* ---- one load for concurrent callers ---- */

static loaded_program *program_look_up(sp_cuda_programs *programs, const sp_gpu_program *program)
{
    /* Pairs with the release in program_find_or_add_locked: the entry's link and program. */
    loaded_program *it = sp_load_acquire(&programs->first);
    while (it != NULL && it->program != program) it = it->next;
    return it;
}

/* NULL without memory. */
static loaded_program *program_find_or_add_locked(sp_cuda_programs *programs,
                                                  const sp_gpu_program *program)
    SP_REQUIRES(&programs->lock)
{
    loaded_program *found = program_look_up(programs, program);
    if (found != NULL) return found;
    const size_t functions = program->kernel_count * sizeof(SP_ATOMIC(CUfunction));
    loaded_program *made = sp_calloc(1, sizeof *made + functions);
    if (made == NULL) return NULL;
    made->program = program;
    made->next = sp_load_relaxed(&programs->first);
    sp_store_release(&programs->first, made); /* to program_look_up */
    return made;
}

/* Ends this thread's load, and the waits of other threads for it. */
static void load_note(sp_cuda_programs *programs, loaded_program *program, sp_status status,
                      CUmodule module)
{
    sp_mutex_lock(&programs->lock);
    program->state = status == SP_OK ? LOADED : NOT_LOADED;
    program->module = module;
    if (status != SP_OK) {
        program->failures++;
        program->failure = status;
        snprintf(program->message, sizeof program->message, "%s", sp_last_error());
    }
    sp_cond_broadcast(&programs->load_ended);
    sp_mutex_unlock(&programs->lock);
}

/* Waits while another thread loads. Returns LOADED, NOT_LOADED after a failure of that thread, or
 * LOADING if this thread must load. */
static load_state load_join_locked(sp_cuda_programs *programs, loaded_program *program)
    SP_REQUIRES(&programs->lock)
{
    if (program->state == NOT_LOADED || SP_PLANTED(load_twice)) {
        program->state = LOADING;
        return LOADING;
    }
    const uint64_t failures = program->failures;
    while (program->state == LOADING && program->failures == failures) {
        sp_cond_wait(&programs->load_ended, &programs->lock);
    }
    return program->failures == failures ? LOADED : NOT_LOADED;
}

static sp_status program_load_once(sp_cuda_programs *programs, const sp_gpu_program *wanted,
                                   loaded_program **out)
{
    char message[SP_ERROR_BYTES] = "";
    sp_status status = SP_OK;
    load_state state = NOT_LOADED;
    sp_mutex_lock(&programs->lock);
    loaded_program *program = program_find_or_add_locked(programs, wanted);
    if (program != NULL) {
        state = load_join_locked(programs, program);
        status = state == NOT_LOADED ? program->failure : SP_OK;
        if (status != SP_OK) memcpy(message, program->message, sizeof message);
    }
    sp_mutex_unlock(&programs->lock);
    *out = program;
    if (program == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the kernels '%s'", wanted->name);
    }
    if (status != SP_OK) return sp__fail(status, "%s", message);
    if (state == LOADED) return SP_OK;
    CUmodule module = NULL;
    status = program_load(programs, wanted, &module);
    load_note(programs, program, status, module);
    return status;
}

static sp_status program_find_function(sp_cuda_programs *programs, const sp_gpu_kernel *kernel,
                                       CUfunction *out)
{
    loaded_program *program;
    SP_TRY(program_load_once(programs, kernel->program, &program));
    char what[96];
    snprintf(what, sizeof what, "%s: %s", kernel->program->name, kernel->entry);
    SP_TRY(sp__cuda_check(SP_CUDA(cuModuleGetFunction)(out, program->module, kernel->entry),
                          "cuModuleGetFunction", what));
    if (kernel->has_shared_memory) {
        SP_TRY(sp__cuda_check(
            SP_CUDA(cuFuncSetAttribute)(*out, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        (int)programs->shared_bytes),
            "cuFuncSetAttribute", what));
    }
    sp_store_release(&program->functions[kernel->index], *out); /* to the load below */
    return SP_OK;
}

sp_status sp__cuda_program_function(sp_cuda_programs *programs, const sp_gpu_kernel *kernel,
                                    CUfunction *out)
{
    SP_ASSERT(kernel->index < kernel->program->kernel_count);
    const loaded_program *program = program_look_up(programs, kernel->program);
    if (SP_LIKELY(program != NULL)) {
        /* Pairs with the release in program_find_function. */
        const CUfunction found = sp_load_acquire(&program->functions[kernel->index]);
        if (SP_LIKELY(found != NULL)) {
            *out = found;
            return SP_OK;
        }
    }
    return program_find_function(programs, kernel, out);
}
