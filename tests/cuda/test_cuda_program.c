/* SPDX-License-Identifier: Apache-2.0 */
/* Loading of programs: once for any number of callers, from the binary, the cache or the compiler,
 * and the message of each failure. */
#include "device/cuda/cuda_program.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/option.h"
#include "base/thread.h"
#include "cache_folder.h"
#include "fake_cuda.h"
#include "fake_nvrtc.h"
#include "support/test.h"

#define THREADS 31

static const char image[] = "FAKE\nfirst 8\nsecond 8\n";

static const sp_gpu_program with_binary = {.name = "planted",
                                           .source = image,
                                           .binary = (const unsigned char *)image,
                                           .binary_bytes = sizeof image,
                                           .kernel_count = 3};
static const sp_gpu_program from_source = {.name = "planted", .source = image, .kernel_count = 3};

static sp_gpu_kernel kernel_of(const sp_gpu_program *program, uint32_t index)
{
    return (sp_gpu_kernel){
        .program = program, .entry = index == 0 ? "first" : "second", .index = index};
}

static void run_nothing(const uint32_t grid[3], const uint32_t block[3], void **params)
{
    (void)grid, (void)block, (void)params;
}

/* A device with its context current, and an empty cache folder. */
typedef struct fixture {
    CUcontext context;
    sp_gpu_gate gate;
    sp_cuda_programs programs;
    uint64_t loads, compilations; /* before */
    cache_folder folder;
} fixture;

static void use_compiler(const char *file)
{
    setenv("STREAMPOOL_NVRTC", file, 1);
    sp__option_reset();
}

static void begin(fixture *f)
{
    *f = (fixture){.folder = cache_folder_open()};
    fake_cuda_register("first", run_nothing);
    fake_cuda_register("second", run_nothing);
    use_compiler(SP_FAKE_NVRTC);
    sp__cuda_programs_close(&f->programs); /* a no-op on zeroed memory */
    sp__gpu_gate_init(&f->gate);
    REQUIRE_OK(sp__cuda_api_open());
    REQUIRE_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRetain)(&f->context, 0), CUDA_SUCCESS);
    REQUIRE_EQ_INT(SP_CUDA(cuCtxPushCurrent)(f->context), CUDA_SUCCESS);
    REQUIRE_OK(sp__cuda_programs_open(&f->programs, &f->gate, 0));
    f->loads = sp__cuda_call_count(SP_CUDA_CALL_cuModuleLoadData);
    f->compilations = fake_nvrtc_compilations();
}

static uint64_t loads_of(const fixture *f)
{
    return sp__cuda_call_count(SP_CUDA_CALL_cuModuleLoadData) - f->loads;
}

static uint64_t compilations_of(const fixture *f)
{
    return fake_nvrtc_compilations() - f->compilations;
}

/* The state of a new process: nothing is loaded. */
static void reopen(fixture *f)
{
    sp__cuda_programs_close(&f->programs);
    CHECK_EQ_U64(fake_cuda_live(FAKE_MODULE), 0);
    REQUIRE_OK(sp__cuda_programs_open(&f->programs, &f->gate, 0));
    f->loads = sp__cuda_call_count(SP_CUDA_CALL_cuModuleLoadData);
    f->compilations = fake_nvrtc_compilations();
}

static void end(fixture *f)
{
    sp__cuda_programs_close(&f->programs);
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(NULL), CUDA_SUCCESS);
    CHECK_EQ_INT(SP_CUDA(cuDevicePrimaryCtxRelease)(0), CUDA_SUCCESS);
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    CHECK_EQ_U64(fake_nvrtc_live(), 0);
    sp__gpu_gate_deinit(&f->gate);
    cache_folder_close(&f->folder);
    fake_cuda_reset();
}

static sp_status ask(fixture *f, const sp_gpu_program *program, uint32_t index, CUfunction *out)
{
    const sp_gpu_kernel kernel = kernel_of(program, index);
    return sp__cuda_program_function(&f->programs, &kernel, out);
}

/* First, since a found compiler is kept for the process. */
TEST(without_code_and_without_a_compiler_the_message_says_what_to_do)
{
    fixture f;
    begin(&f);
    use_compiler("/no/such/libnvrtc.so");
    CUfunction function = NULL;
    CHECK_STATUS(ask(&f, &from_source, 0, &function), SP_UNSUPPORTED);
    CHECK_MESSAGE("the kernels 'planted' have no code for this GPU (sm_90)");
    CHECK_MESSAGE("STREAMPOOL_NVRTC");
    CHECK_MESSAGE("/no/such/libnvrtc.so: cannot open");
    use_compiler(SP_FAKE_CUDA);
    CHECK_STATUS(ask(&f, &from_source, 0, &function), SP_UNSUPPORTED);
    CHECK_MESSAGE("too old: it has no nvrtc");
    CHECK(function == NULL);
    CHECK_OK(ask(&f, &with_binary, 0, &function)); /* needs none */
    use_compiler(SP_FAKE_NVRTC);
    CHECK_OK(ask(&f, &from_source, 0, &function));
    end(&f);
}

TEST(a_kernel_is_found_once_and_then_without_the_driver)
{
    fixture f;
    begin(&f);
    CUfunction first = NULL;
    CUfunction second = NULL;
    CUfunction again = NULL;
    CHECK_OK(ask(&f, &with_binary, 0, &first));
    CHECK_OK(ask(&f, &with_binary, 1, &second));
    CHECK(first != NULL && second != NULL && first != second);
    const uint64_t before = sp__cuda_call_count(SP_CUDA_CALL_cuModuleGetFunction);
    CHECK_OK(ask(&f, &with_binary, 0, &again));
    CHECK(again == first);
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuModuleGetFunction), before);
    CHECK_EQ_U64(loads_of(&f), 1);
    CHECK_EQ_U64(compilations_of(&f), 0);
    CHECK_OK(ask(&f, &from_source, 0, &again)); /* another program of the same device */
    CHECK(again != first);
    CHECK_EQ_U64(loads_of(&f), 2);
    end(&f);
}

TEST(a_binary_without_code_for_the_gpu_is_compiled)
{
    static const CUresult results[] = {CUDA_ERROR_NO_BINARY_FOR_GPU,
                                       CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
    for (size_t i = 0; i < SP_COUNT_OF(results); i++) {
        fixture f;
        begin(&f);
        CUfunction function = NULL;
        fake_cuda_fail_call("cuModuleLoadData", 1, 1, results[i]);
        CHECK_OK(ask(&f, &with_binary, 0, &function));
        CHECK_EQ_U64(loads_of(&f), 2);
        CHECK_EQ_U64(compilations_of(&f), 1);
        end(&f);
    }
}

TEST(a_failed_load_is_an_error_and_the_next_who_asks_tries_again)
{
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    fake_cuda_fail_call("cuModuleLoadData", 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(ask(&f, &with_binary, 0, &function), SP_OUT_OF_MEMORY);
    CHECK_MESSAGE("planted: cuModuleLoadData");
    CHECK_EQ_U64(compilations_of(&f), 0);
    CHECK_OK(ask(&f, &with_binary, 0, &function));
    end(&f);
}

TEST(an_entry_that_is_not_there_is_an_error_that_names_it)
{
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    const sp_gpu_kernel kernel = {.program = &with_binary, .entry = "third", .index = 2};
    CHECK_STATUS(sp__cuda_program_function(&f.programs, &kernel, &function), SP_FAILED);
    CHECK_MESSAGE("planted: third");
    CHECK_MESSAGE("CUDA_ERROR_NOT_FOUND");
    end(&f);
}

TEST(a_kernel_may_have_all_shared_memory_of_the_device_or_is_an_error)
{
    fixture f;
    begin(&f);
    CHECK_EQ_U64(f.programs.shared_bytes, 232448);
    CUfunction function = NULL;
    sp_gpu_kernel kernel = kernel_of(&with_binary, 0);
    kernel.has_shared_memory = true;
    fake_cuda_fail_call("cuFuncSetAttribute", 1, 1, CUDA_ERROR_INVALID_VALUE);
    CHECK_STATUS(sp__cuda_program_function(&f.programs, &kernel, &function), SP_FAILED);
    CHECK_MESSAGE("cuFuncSetAttribute");
    CHECK_MESSAGE("planted: first");
    CHECK_OK(sp__cuda_program_function(&f.programs, &kernel, &function)); /* tries again */
    CHECK(function != NULL);
    const uint64_t before = sp__cuda_call_count(SP_CUDA_CALL_cuFuncSetAttribute);
    CHECK_OK(ask(&f, &with_binary, 1, &function)); /* one without */
    CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuFuncSetAttribute), before);
    end(&f);
}

/* Two stored blocks, 'FAKE\nfirst 8\n' and 'second 8\n'. */
static const unsigned char first_part[] = {1,    13,  0,   242, 255, 'F', 'A', 'K', 'E',
                                           '\n', 'f', 'i', 'r', 's', 't', ' ', '8', '\n'};
static const unsigned char second_part[] = {1,   9,   0,   246, 255, 's', 'e',
                                            'c', 'o', 'n', 'd', ' ', '8', '\n'};

TEST(a_source_in_compressed_parts_is_their_text_in_order)
{
    static const sp_gpu_text parts[] = {{first_part, sizeof first_part, 13},
                                        {second_part, sizeof second_part, 9}};
    static const sp_gpu_program in_parts = {
        .name = "parts", .parts = {&parts[0], &parts[1]}, .kernel_count = 3};
    fixture f;
    begin(&f);
    char *text;
    REQUIRE_OK(sp__cuda_program_text(&in_parts, &text));
    CHECK_EQ_STR(text, image);
    sp_free(text);
    CUfunction function = NULL;
    CHECK_OK(ask(&f, &in_parts, 1, &function));
    CHECK(function != NULL);
    CHECK_EQ_U64(compilations_of(&f), 1);
    end(&f);
}

TEST(a_part_that_is_no_stream_of_its_text_is_corrupt)
{
    static const sp_gpu_text parts[] = {{first_part, sizeof first_part, 13},
                                        {second_part, sizeof second_part, 10}};
    static const sp_gpu_program wrong = {
        .name = "wrong", .parts = {&parts[0], &parts[1]}, .kernel_count = 3};
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    CHECK_STATUS(ask(&f, &wrong, 0, &function), SP_CORRUPT);
    CHECK_MESSAGE("the text of the kernels 'wrong': malformed compressed data");
    CHECK_EQ_U64(compilations_of(&f), 0);
    end(&f);
}

TEST(a_source_that_does_not_compile_is_an_error_with_the_compiler_s_log)
{
    static const sp_gpu_program wrong = {.name = "wrong", .source = "no fake", .kernel_count = 3};
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    CHECK_STATUS(ask(&f, &wrong, 0, &function), SP_FAILED);
    CHECK_MESSAGE("the kernels 'wrong' do not compile: NVRTC_ERROR_COMPILATION");
    CHECK_MESSAGE("line 1: error: not a fake source");
    CHECK_EQ_U64(cache_folder_find(&f.folder, f.folder.path), 0);
    end(&f);
}

TEST(a_compiled_program_is_kept_for_the_next_process)
{
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    CHECK_OK(ask(&f, &from_source, 0, &function));
    CHECK_EQ_U64(compilations_of(&f), 1);
    REQUIRE_EQ_U64(cache_folder_find(&f.folder, f.folder.path), 1);
    CHECK(strstr(f.folder.file, "planted-sm_90a-nvrtc13.7-") != NULL);
    reopen(&f);
    CHECK_OK(ask(&f, &from_source, 0, &function));
    CHECK_EQ_U64(compilations_of(&f), 0);

    CHECK_OK(sp_file_write(f.folder.file, "truncated", 9));
    reopen(&f);
    CHECK_OK(ask(&f, &from_source, 0, &function));
    CHECK_EQ_U64(compilations_of(&f), 1);
    reopen(&f);
    CHECK_OK(ask(&f, &from_source, 0, &function));
    CHECK_EQ_U64(compilations_of(&f), 0);
    end(&f);
}

TEST(a_folder_that_cannot_be_written_costs_only_compilations)
{
    fixture f;
    begin(&f);
    setenv("STREAMPOOL_CACHE_DIR", "/proc/no/folder", 1);
    sp__option_reset();
    CUfunction function = NULL;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(ask(&f, &from_source, 0, &function));
        CHECK_EQ_U64(compilations_of(&f), 1);
        reopen(&f);
    }
    end(&f);
}

TEST(every_allocation_may_fail)
{
    fixture f;
    begin(&f);
    CUfunction function = NULL;
    for (uint64_t skip = 0;; skip++) {
        cache_folder_clear(&f.folder);
        reopen(&f);
        sp_heap_fail_after(skip);
        const sp_status status = ask(&f, &from_source, 0, &function);
        const bool has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        if (!has_failed) break;
        CHECK_OK(ask(&f, &from_source, 0, &function));
    }
    end(&f);
}

typedef struct crowd {
    fixture f;
    const sp_gpu_program *program;
    sp_atomic_ptr functions[2]; /* the results of the first caller */
    sp_atomic_u32 failures;
} crowd;

static sp_atomic_u32 asking; /* threads that have arrived */

static void ask_on_thread(void *arg, uint32_t index)
{
    crowd *c = arg;
    CHECK_EQ_INT(SP_CUDA(cuCtxPushCurrent)(c->f.context), CUDA_SUCCESS);
    CUfunction function = NULL;
    sp_fetch_add_relaxed(&asking, 1);
    const sp_status status = ask(&c->f, c->program, index % 2, &function);
    if (status == SP_OK) {
        void *before = NULL;
        if (!sp_cas_acq_rel(&c->functions[index % 2], &before, (void *)function)) {
            CHECK(before == function);
        }
    } else {
        CHECK_STATUS(status, SP_FAILED);
        CHECK_MESSAGE("line 1: error: not a fake source");
        sp_fetch_add_relaxed(&c->failures, 1);
    }
    CHECK_EQ_INT(SP_CUDA(cuCtxPopCurrent)(NULL), CUDA_SUCCESS);
}

static void check_crowd(const sp_gpu_program *program, uint64_t compilations)
{
    crowd c = {.program = program};
    begin(&c.f);
    test_threads(THREADS, ask_on_thread, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.failures), 0);
    CHECK_EQ_U64(loads_of(&c.f), 1);
    CHECK_EQ_U64(compilations_of(&c.f), compilations);
    CHECK(sp_load_relaxed(&c.functions[0]) != sp_load_relaxed(&c.functions[1]));
    end(&c.f);
}

TEST(threads_that_ask_together_load_once)
{
    const uint64_t rounds = test_count(500, 20);
    for (uint64_t i = 0; i < rounds; i++) {
        check_crowd(&with_binary, 0);
        check_crowd(&from_source, 1);
    }
}

/* A compilation that lasts until all threads have called, and a little longer. */
static void wait_for_all(void)
{
    while (sp_load_relaxed(&asking) < THREADS) sp_thread_yield();
    sp_clock_sleep(10000000);
}

TEST(threads_that_wait_for_a_load_share_its_end)
{
    crowd c = {.program = &from_source};
    begin(&c.f);
    sp_store_relaxed(&asking, 0);
    fake_nvrtc_set_hook(wait_for_all);
    test_threads(THREADS, ask_on_thread, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.failures), 0);
    CHECK_EQ_U64(compilations_of(&c.f), 1);
    fake_nvrtc_set_hook(NULL);
    end(&c.f);
}

TEST(threads_that_wait_for_a_load_share_its_failure)
{
    static const sp_gpu_program wrong = {.name = "wrong", .source = "no fake", .kernel_count = 3};
    crowd c = {.program = &wrong};
    begin(&c.f);
    sp_store_relaxed(&asking, 0);
    fake_nvrtc_set_hook(wait_for_all);
    test_threads(THREADS, ask_on_thread, &c);
    CHECK_EQ_U64(sp_load_relaxed(&c.failures), THREADS);
    /* One, unless a thread slept between its arrival and its call. */
    CHECK(compilations_of(&c.f) < THREADS / 2);
    fake_nvrtc_set_hook(NULL);
    CUfunction function = NULL;
    const uint64_t before = compilations_of(&c.f);
    CHECK_STATUS(ask(&c.f, &wrong, 0, &function), SP_FAILED); /* tries again */
    CHECK_EQ_U64(compilations_of(&c.f), before + 1);
    end(&c.f);
}

TEST_MAIN
