/* SPDX-License-Identifier: Apache-2.0 */
/* The fake compiler. primitive: its counters are separate from the library. */
#include "fake_nvrtc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvrtc_program {
    char *source;
    char log[256];
};

static atomic_uint_fast64_t compilations, live;
static _Atomic(void (*)(void)) compile_hook;
static atomic_bool accepts_all;

void fake_nvrtc_accept_all(bool is_on)
{
    atomic_store(&accepts_all, is_on);
}

void fake_nvrtc_set_hook(void (*hook)(void))
{
    atomic_store(&compile_hook, hook);
}

uint64_t fake_nvrtc_compilations(void)
{
    return atomic_load(&compilations);
}

uint64_t fake_nvrtc_live(void)
{
    return atomic_load(&live);
}

const char *nvrtcGetErrorString(nvrtc_result result)
{
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    default:
        return "unknown";
    }
}

nvrtc_result nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 7;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcCreateProgram(nvrtc_program *program, const char *source, const char *name,
                                int header_count, const char *const *headers,
                                const char *const *include_names)
{
    (void)name, (void)header_count, (void)headers, (void)include_names;
    nvrtc_program made = calloc(1, sizeof *made);
    if (made != NULL) made->source = strdup(source);
    if (made == NULL || made->source == NULL) {
        free(made);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    atomic_fetch_add(&live, 1);
    *program = made;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcDestroyProgram(nvrtc_program *program)
{
    free((*program)->source);
    free(*program);
    *program = NULL;
    atomic_fetch_sub(&live, 1);
    return NVRTC_SUCCESS;
}

static int has_option(int count, const char *const *options, const char *wanted)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(options[i], wanted) == 0) return 1;
    }
    return 0;
}

/* Without these options the kernels would give other bits, or not load. */
static const char *find_missing_option(int count, const char *const *options)
{
    static const char *const wanted[] = {"--gpu-architecture=sm_90a", "--fmad=false",
                                         "--std=c++17"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!has_option(count, options, wanted[i])) return wanted[i];
    }
    return NULL;
}

nvrtc_result nvrtcCompileProgram(nvrtc_program program, int option_count,
                                 const char *const *options)
{
    atomic_fetch_add(&compilations, 1);
    void (*const hook)(void) = atomic_load(&compile_hook);
    if (hook != NULL) hook();
    const char *missing = find_missing_option(option_count, options);
    if (missing != NULL) {
        snprintf(program->log, sizeof program->log, "error: not called with %s", missing);
        return NVRTC_ERROR_COMPILATION;
    }
    if (!atomic_load(&accepts_all) && strncmp(program->source, "FAKE\n", 5) != 0) {
        snprintf(program->log, sizeof program->log, "line 1: error: not a fake source");
        return NVRTC_ERROR_COMPILATION;
    }
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->source) + 1;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetCUBIN(nvrtc_program program, char *image)
{
    memcpy(image, program->source, strlen(program->source) + 1);
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes)
{
    *bytes = strlen(program->log) + 1;
    return NVRTC_SUCCESS;
}

nvrtc_result nvrtcGetProgramLog(nvrtc_program program, char *log)
{
    memcpy(log, program->log, strlen(program->log) + 1);
    return NVRTC_SUCCESS;
}
