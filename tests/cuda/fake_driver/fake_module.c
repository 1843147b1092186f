/* SPDX-License-Identifier: Apache-2.0 */
/* Modules: texts that name entries and the bytes of their parameters. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

struct CUmod_st {
    uint32_t count;
    struct CUfunc_st functions[];
};

static const char magic[] = "FAKE\n";

static _Atomic(const char *) other_image;

void fake_cuda_set_image(const char *text)
{
    atomic_store(&other_image, text);
}

static uint32_t count_lines(const char *text)
{
    uint32_t count = 0;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}

/* "name bytes bytes ..." up to the end of the line. */
static bool parse_line(const char *line, size_t length, CUfunction out)
{
    const size_t name_length = strcspn(line, " \n");
    if (name_length == 0 || name_length >= sizeof out->name || name_length > length) return false;
    memcpy(out->name, line, name_length);
    out->function = fake_find_kernel(out->name);
    atomic_init(&out->shared_bytes, 48 * 1024);
    const char *at = line + name_length;
    while (at < line + length) {
        char *end;
        const unsigned long bytes = strtoul(at, &end, 10);
        if (end == at || out->param_count == FAKE_MAX_PARAMS) return false;
        out->param_bytes[out->param_count++] = bytes;
        at = end;
    }
    return true;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    FAKE_CONTEXT(cuModuleLoadData, context);
    const char *text = image;
    const char *other = atomic_load(&other_image);
    if (text != NULL && other != NULL && strncmp(text, magic, sizeof magic - 1) != 0) text = other;
    if (text == NULL || strncmp(text, magic, sizeof magic - 1) != 0) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    text += sizeof magic - 1;
    CUmodule made = calloc(1, sizeof *made + count_lines(text) * sizeof made->functions[0]);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    for (const char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        if (!parse_line(text, (size_t)(end - text), &made->functions[made->count++])) {
            free(made);
            return CUDA_ERROR_INVALID_IMAGE;
        }
    }
    fake_count(FAKE_MODULE, 1);
    *module = made;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    FAKE_CONTEXT_TO_DESTROY(cuModuleUnload, context);
    if (module == NULL) return FAKE_ERROR_INVALID_HANDLE;
    free(module);
    return fake_destroyed(FAKE_MODULE, context);
}

static atomic_int ptx_architecture = FAKE_ARCHITECTURE;

void fake_cuda_set_ptx(int architecture)
{
    atomic_store(&ptx_architecture, architecture);
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    FAKE_CONTEXT(cuFuncGetAttribute, context);
    if (function == NULL) return FAKE_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_PTX_VERSION) return CUDA_ERROR_INVALID_VALUE;
    *value = atomic_load(&ptx_architecture);
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    FAKE_CONTEXT(cuFuncSetAttribute, context);
    if (function == NULL) return FAKE_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int most;
    const CUresult result =
        cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
    if (result != CUDA_SUCCESS) return result;
    if (value > most) return CUDA_ERROR_INVALID_VALUE;
    atomic_store(&function->shared_bytes, (unsigned)value);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    FAKE_CONTEXT(cuModuleGetFunction, context);
    if (module == NULL) return FAKE_ERROR_INVALID_HANDLE;
    for (uint32_t i = 0; i < module->count; i++) {
        if (strcmp(module->functions[i].name, name) != 0) continue;
        if (module->functions[i].function == NULL) return FAKE_ERROR_NOT_FOUND;
        *function = &module->functions[i];
        return CUDA_SUCCESS;
    }
    return FAKE_ERROR_NOT_FOUND;
}
