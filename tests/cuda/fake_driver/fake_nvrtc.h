/* SPDX-License-Identifier: Apache-2.0 */
/* A run-time compiler that compiles a source beginning with "FAKE\n", which is an image of the fake
 * driver, to itself, and no other. */
#ifndef SP_TESTS_FAKE_NVRTC_H
#define SP_TESTS_FAKE_NVRTC_H

#include <stddef.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

typedef struct fake_nvrtc_program *nvrtcProgram;
typedef enum nvrtcResult {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_COMPILATION = 6
} nvrtcResult;

FAKE_EXPORT const char *nvrtcGetErrorString(nvrtcResult result);
FAKE_EXPORT nvrtcResult nvrtcVersion(int *major, int *minor);
FAKE_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source,
                                           const char *name, int header_count,
                                           const char *const *headers,
                                           const char *const *include_names);
FAKE_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program);
FAKE_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int option_count,
                                            const char *const *options);
FAKE_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes);
FAKE_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *image);
FAKE_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes);
FAKE_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log);

/* Called inside of each compilation; NULL: nothing is. */
FAKE_EXPORT void fake_nvrtc_set_hook(void (*hook)(void));

/* Compilations so far, and programs that were not destroyed. */
FAKE_EXPORT uint64_t fake_nvrtc_compilations(void);
FAKE_EXPORT uint64_t fake_nvrtc_live(void);

#endif
