/* SPDX-License-Identifier: Apache-2.0 */
/* A fake run-time compiler: compiles a source that begins with "FAKE\n", an image of the fake
 * driver, to itself; refuses other sources. */
#ifndef SP_TESTS_FAKE_NVRTC_H
#define SP_TESTS_FAKE_NVRTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

/* Named as in the library: UndefinedBehaviorSanitizer compares the types of functions. */
typedef struct nvrtc_program *nvrtc_program;
typedef int nvrtc_result;

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_COMPILATION = 6 };

/* NOLINTBEGIN(readability-identifier-naming): the compiler's names */
FAKE_EXPORT const char *nvrtcGetErrorString(nvrtc_result result);
FAKE_EXPORT nvrtc_result nvrtcVersion(int *major, int *minor);
FAKE_EXPORT nvrtc_result nvrtcCreateProgram(nvrtc_program *program, const char *source,
                                            const char *name, int header_count,
                                            const char *const *headers,
                                            const char *const *include_names);
FAKE_EXPORT nvrtc_result nvrtcDestroyProgram(nvrtc_program *program);
FAKE_EXPORT nvrtc_result nvrtcCompileProgram(nvrtc_program program, int option_count,
                                             const char *const *options);
FAKE_EXPORT nvrtc_result nvrtcGetCUBINSize(nvrtc_program program, size_t *bytes);
FAKE_EXPORT nvrtc_result nvrtcGetCUBIN(nvrtc_program program, char *image);
FAKE_EXPORT nvrtc_result nvrtcGetProgramLogSize(nvrtc_program program, size_t *bytes);
FAKE_EXPORT nvrtc_result nvrtcGetProgramLog(nvrtc_program program, char *log);
/* NOLINTEND(readability-identifier-naming) */

/* Called during each compilation; NULL: no hook. */
FAKE_EXPORT void fake_nvrtc_set_hook(void (*hook)(void));

/* Whether any source is compiled to itself. */
FAKE_EXPORT void fake_nvrtc_accept_all(bool is_on);

/* Compilations so far, and live programs. */
FAKE_EXPORT uint64_t fake_nvrtc_compilations(void);
FAKE_EXPORT uint64_t fake_nvrtc_live(void);

#endif
