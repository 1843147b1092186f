/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of a load and of the following runs fails once. */
#include <stdlib.h>

#include "base/heap.h"
#include "run_fixture.h"

typedef struct loaded_file {
    void *bytes;
    size_t len;
} loaded_file;

/* Loads and runs `like` with the allocation after `skip` others failing; false if there are fewer
 * allocations. */
static bool try_with_failure(const model_case *like, loaded_file file, uint64_t skip,
                             const sp_array *outputs)
{
    model_case c = *like;
    c.model = (sp_model){0};
    outputs_wipe(&c, outputs);
    sp_heap_fail_after(skip);
    sp_status status = sp_model_load_from_memory(file.bytes, file.len, NULL, &c.model);
    if (status == SP_OK) status = case_run(&c, outputs);
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    if (status == SP_OK) {
        CHECK(case_is_same(&c, outputs)); /* some only serve speed */
    } else {
        CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK(has_failed);
    }
    if (c.model.bits != 0) { /* the next run is right */
        outputs_wipe(&c, outputs);
        CHECK_OK(case_run(&c, outputs));
        CHECK(case_is_same(&c, outputs));
        CHECK_OK(sp_model_release(c.model));
    }
    return has_failed;
}

TEST(every_allocation_of_load_and_run_of_five_models_may_fail)
{
    static const char *const names[] = {"policy_go1", "torch_mlp", "mnist_8", "silero_vad_v5",
                                        "torch_lstm"};
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        model_case c;
        loaded_file file;
        char path[DATA_PATH_BYTES];
        if (!case_open(names[i], NULL, &c)) SKIP("no shared data");
        CHECK(data_path(path, "models/%s/model.onnx", names[i]));
        file.bytes = data_read(path, &file.len);
        sp_array outputs[FIXTURE_PORTS] = {0};
        outputs_make(&c, outputs);
        /* Every fifth if tests are slow. */
        const uint64_t step = test_scale() < 1 ? 5 : 1;
        uint64_t skip = 0;
        while (try_with_failure(&c, file, skip, outputs)) skip += step;
        test_note("%s: %llu allocations failed one by one", names[i],
                  (unsigned long long)(skip / step));
        CHECK(skip > 0);
        outputs_free(&c, outputs);
        free(file.bytes);
        case_close(&c);
    }
}

TEST_MAIN
