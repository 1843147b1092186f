/* SPDX-License-Identifier: Apache-2.0 */
/* Each allocation of each op fails once: the call reports it, has no result, and works the next
 * time. */
#include <streampool/null_device.h>

#include <stdlib.h>

#include "base/heap.h"
#include "base/option.h"
#include "runtime_fixture.h"
#include "support/eager_rows.h"

enum { MOST = 200 };

/* True if the armed failure happened. */
static bool fail_one(const eager_case *c, sp_device device, const sp_tensor *tensors, uint64_t skip)
{
    sp_tensor results[CASE_OPERANDS] = {0};
    sp_heap_fail_after(skip);
    const sp_status status = eager_case_call(c, device, tensors, results);
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    if (status != SP_OK) {
        CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK(sp_last_error()[0] != '\0');
        CHECK(has_failed);
    }
    for (uint32_t i = 0; i < c->result_count; i++) {
        CHECK((results[i].bits != 0) == (status == SP_OK));
    }
    tensors_release(results, CASE_OPERANDS);
    return has_failed;
}

static uint64_t fail_each(const eager_row *row, sp_device device)
{
    eager_case c;
    sp_array before[CASE_OPERANDS] = {0}, after[CASE_OPERANDS] = {0};
    sp_tensor tensors[CASE_OPERANDS] = {0};
    eager_case_make(row, &c);
    CHECK_OK(eager_case_upload(&c, device, true, tensors));
    CHECK_OK(eager_case_run(&c, device, true, before));
    uint64_t skip = 0;
    while (skip < MOST && fail_one(&c, device, tensors, skip)) skip++;
    if (skip < 3 || skip == MOST) test_note("%s: %u allocations", row->op, (unsigned)skip);
    CHECK(skip >= 3 && skip < MOST);
    CHECK_OK(eager_case_run(&c, device, true, after));
    CHECK(arrays_are_same(before, after, c.output_count));
    data_free(before, CASE_OPERANDS);
    data_free(after, CASE_OPERANDS);
    tensors_release(tensors, CASE_OPERANDS);
    eager_case_close(&c);
    return skip;
}

TEST(each_allocation_of_each_op_fails_once)
{
    runtime_begin();
    uint64_t failed = 0;
    for (uint32_t i = 0; i < eager_row_count; i++) failed += fail_each(&eager_rows[i], CPU);
    test_note("%llu allocations of %u calls failed", (unsigned long long)failed, eager_row_count);
    runtime_end();
}

TEST(each_allocation_of_what_the_calling_thread_computes_fails_once)
{
    runtime_begin();
    const sp_device device = open_null();
    uint64_t failed = 0;
    for (uint32_t i = 0; i < eager_row_count; i++) {
        setenv("STREAMPOOL_CPU_OPS", eager_rows[i].op, 1);
        sp__option_reset();
        failed += fail_each(&eager_rows[i], device);
    }
    unsetenv("STREAMPOOL_CPU_OPS");
    sp__option_reset();
    test_note("%llu allocations of %u calls failed", (unsigned long long)failed, eager_row_count);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

/* Too large for the caches, so the device is asked for each: the inputs exist, then the copies of
 * views, the scratch and the result are allocated. */
TEST(each_allocation_of_device_memory_fails_once)
{
    static const eager_row product = {"Gemm", 13, "f32[600,600] f32[600,600]", "transB=1", 1};
    uint64_t failures = 0;
    for (uint64_t skip = 0; skip < 8; skip++) {
        runtime_begin();
        const sp_device device = open_null();
        eager_case c;
        sp_tensor tensors[CASE_OPERANDS] = {0}, results[CASE_OPERANDS] = {0};
        eager_case_make(&product, &c);
        CHECK_OK(eager_case_upload(&c, device, true, tensors));
        CHECK_OK(sp_null_fail_allocation(device, skip));
        const sp_status status = eager_case_call(&c, device, tensors, results);
        if (status != SP_OK) failures++;
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK((results[0].bits != 0) == (status == SP_OK));
        tensors_release(results, CASE_OPERANDS);
        CHECK_OK(sp_null_fail_allocation(device, UINT64_MAX));
        CHECK_OK(eager_case_call(&c, device, tensors, results));
        tensors_release(results, CASE_OPERANDS);
        tensors_release(tensors, CASE_OPERANDS);
        eager_case_close(&c);
        CHECK_OK(sp_device_synchronize(device));
        CHECK_OK(sp_device_close(device));
        runtime_end();
    }
    test_note("%llu allocations failed", (unsigned long long)failures);
    CHECK(failures >= 2);
}

TEST_MAIN
