/* SPDX-License-Identifier: Apache-2.0 */
/* The table of options. An option is an environment variable with a type, a default, bounds and a
 * meaning. All are read together at the first query and then never change, so a program sets them,
 * or their variables, before it first calls the library. A value that is not allowed (the default
 * is used) and an unknown variable are logged as warnings. */
#ifndef SP_BASE_OPTION_H
#define SP_BASE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/option.h>

typedef enum sp_option_type {
    SP_OPTION_TYPE_INT,
    SP_OPTION_TYPE_BOOL,  /* 0 1, no yes, off on, false true */
    SP_OPTION_TYPE_ENUM,  /* one of `choices`; the value is its index */
    SP_OPTION_TYPE_BYTES, /* a number, or one followed by K, M or G (powers of 1024) */
    SP_OPTION_TYPE_TEXT   /* shorter than SP_OPTION_TEXT_BYTES; the default is the empty text */
} sp_option_type;

#define SP_OPTION_TEXT_BYTES 512

/* name, type, default, min, max, choices, meaning. The variable is STREAMPOOL_<name>. */
#define SP_OPTION_LIST(X)                                                                          \
    X(CPU_WORKERS, INT, 0, 0, 64, "",                                                              \
      "worker threads of the cpu device; 0: one per core, at most 64")                             \
    X(STREAMS, INT, 32, 1, 64, "", "streams per device, the default stream included")              \
    X(STREAM_POLICY, ENUM, 0, 0, 2, "share|wait|fail",                                             \
      "what happens when a thread needs a stream of a device and all are leased")                  \
    X(STREAM_WAIT_MS, INT, -1, -1, INT32_MAX, "",                                                  \
      "time limit of the policy wait, in milliseconds; -1: no limit")                              \
    X(FORCE_SAFE_PATHS, BOOL, 0, 0, 1, "", "always take the safe path of every device quirk")      \
    X(CACHE, BYTES, 0, 0, INT64_MAX, "",                                                           \
      "free memory that a device's allocator keeps before it returns some; 0: no limit")           \
    X(PLANS, INT, 32, 1, 4096, "", "plans that a model caches, one for each set of input shapes")  \
    X(PARTIAL_MEMORY, BYTES, INT64_C(4) << 30, 1, INT64_MAX, "",                                   \
      "limit of what a run keeps between its partial plans, as for a Loop that grows a tensor")    \
    X(LOOP_TRIPS, INT, INT64_C(1) << 30, 1, INT64_MAX, "",                                         \
      "limit of the iterations of one run, over all Loop and Scan nodes together")                 \
    X(PARK_BYTES, BYTES, INT64_C(256) << 10, 1, INT64_MAX, "",                                     \
      "weights of so many bytes and more are in memory once: packed, if a kernel reads them so, "  \
      "else as the file has them")                                                                 \
    X(BATCHING, ENUM, 1, 0, 2, "off|combine|always",                                               \
      "whether runs that wait for each other are computed together: never, where that was "        \
      "measured to be faster, or wherever their rows are independent")                             \
    X(CHECK, BOOL, 0, 0, 1, "", "report unordered uses of one storage")                            \
    X(ISA, ENUM, 0, 0, 4, "auto|portable|avx2|avx512|neon", "instruction set of the CPU kernels")  \
    X(CPU_OPS, TEXT, 0, 0, 0, "",                                                                  \
      "ONNX ops, as in Conv,Tanh, that models of other devices run on cpu: to debug a kernel")     \
    X(CUDA_DRIVER, TEXT, 0, 0, 0, "", "file of the CUDA driver; default: the system's libcuda")    \
    X(NVRTC, TEXT, 0, 0, 0, "",                                                                    \
      "file of CUDA's run-time compiler; default: the system's libnvrtc")                          \
    X(CACHE_DIR, TEXT, 0, 0, 0, "",                                                                \
      "folder for compiled kernels; default: streampool in the user's cache folder")               \
    X(LOG, ENUM, 2, 0, 4, "off|error|warn|info|debug", "highest level that is logged")

typedef enum sp_option {
#define SP_OPTION_ENUMERATOR(name, ...) SP_OPTION_##name,
    SP_OPTION_LIST(SP_OPTION_ENUMERATOR)
#undef SP_OPTION_ENUMERATOR
        SP_OPTION_COUNT
} sp_option;

/* Values of the options whose type is ENUM; those of LOG are sp_log_level. */
typedef enum sp_option_policy {
    SP_OPTION_POLICY_SHARE,
    SP_OPTION_POLICY_WAIT,
    SP_OPTION_POLICY_FAIL
} sp_option_policy;

typedef enum sp_option_batching {
    SP_OPTION_BATCHING_OFF,
    SP_OPTION_BATCHING_COMBINE,
    SP_OPTION_BATCHING_ALWAYS
} sp_option_batching;

typedef enum sp_option_isa {
    SP_OPTION_ISA_AUTO,
    SP_OPTION_ISA_PORTABLE,
    SP_OPTION_ISA_AVX2,
    SP_OPTION_ISA_AVX512,
    SP_OPTION_ISA_NEON
} sp_option_isa;

typedef struct sp_option_row {
    const char *variable;
    sp_option_type type;
    int64_t fallback; /* the default */
    int64_t min, max; /* both allowed */
    const char *choices;
    const char *meaning;
} sp_option_row;

/* Reads all options now, and logs bad values: the user's callback may be called. */
void sp_option_load(void);

/* The value of an option, which must have the type in the function's name. */
int64_t sp_option_int(sp_option option);
bool sp_option_bool(sp_option option);
uint32_t sp_option_enum(sp_option option);
uint64_t sp_option_bytes(sp_option option);
const char *sp_option_text(sp_option option);

/* For listings: the option's row, its value as text, and the origin of the value. */
const sp_option_row *sp_option_describe(sp_option option);
void sp_option_format(sp_option option, char *out, size_t out_bytes);
sp_option_origin sp_option_origin_of(sp_option option);

/* Parses a value according to the row; if the row does not allow it, returns false with *out
 * unchanged. The value of a text is its length. */
bool sp_option_parse(const sp_option_row *info, const char *text, int64_t *out);
/* The values that the row allows as a phrase: "1 to 64", "share, wait or fail". */
void sp_option_format_allowed(const sp_option_row *row, char *out, size_t out_bytes);

/* Test hook: the environment is read again at the next query. No concurrent queries. */
void sp__option_reset(void);

#endif
