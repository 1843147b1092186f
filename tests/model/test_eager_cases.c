/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's own single-node cases, in the folder STREAMPOOL_CASES: an eager call gives the bits of the
 * model, from contiguous tensors and from scattered views. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime_fixture.h"
#include "support/eager_case.h"

typedef struct totals {
    uint32_t same;       /* the bits of the model */
    uint32_t eager_only; /* the model needs data-dependent values */
    uint32_t refused;    /* by both */
    uint32_t other;      /* several nodes, or with subgraphs */
} totals;

static unsigned char *read_below(const char *folder, const char *name, size_t *len)
{
    char path[DATA_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return data_read(path, len);
}

static uint32_t read_inputs(const char *folder, sp_array *inputs)
{
    uint32_t count = 0;
    for (; count < CASE_OPERANDS; count++) {
        char name[64];
        size_t len;
        snprintf(name, sizeof name, "test_data_set_0/input_%u.pb", count);
        unsigned char *bytes = read_below(folder, name, &len);
        if (bytes == NULL) break;
        const sp_status status = sp__onnx_tensor_load(bytes, len, &inputs[count]);
        free(bytes);
        if (status != SP_OK) break;
    }
    return count;
}

/* The call refuses what the model refuses, except data-dependent values, which are unknown when a
 * plan is compiled. */
static void count_refusal(const char *folder, const eager_case *c, totals *all)
{
    char reason[512];
    sp_array got[CASE_OPERANDS] = {0};
    snprintf(reason, sizeof reason, "%s", sp_last_error());
    const sp_status status = eager_case_run(c, CPU, false, got);
    data_free(got, CASE_OPERANDS);
    const bool is_unknown = strstr(reason, "must be known") != NULL;
    if ((status == SP_OK) != is_unknown) {
        test_note("%s: the model: %s; the call: %s", folder, reason, sp_status_name(status));
    }
    CHECK((status == SP_OK) == is_unknown);
    if (is_unknown) all->eager_only++;
    else all->refused++;
}

static void compare(const char *folder, const eager_case *c, totals *all)
{
    sp_array wanted[CASE_OPERANDS] = {0}, got[CASE_OPERANDS] = {0};
    if (eager_case_run_model(c, CPU, wanted) != SP_OK) {
        count_refusal(folder, c, all);
        return;
    }
    for (int is_scattered = 0; is_scattered < 2; is_scattered++) {
        const sp_status status = eager_case_run(c, CPU, is_scattered != 0, got);
        const bool is_same = status == SP_OK && arrays_are_same(got, wanted, c->output_count);
        if (!is_same) test_note("%s", folder);
        CHECK_OK(status);
        CHECK(is_same);
        data_free(got, CASE_OPERANDS);
    }
    data_free(wanted, CASE_OPERANDS);
    all->same++;
}

static void visit_case(const char *folder, unsigned char *bytes, size_t len, totals *all)
{
    sp_array inputs[CASE_OPERANDS] = {0};
    eager_case c;
    const uint32_t count = read_inputs(folder, inputs);
    if (!eager_case_open(bytes, len, inputs, count, &c)) {
        all->other++;
        return;
    }
    compare(folder, &c, all);
    eager_case_close(&c);
}

static void visit(const char *folder, totals *all)
{
    size_t len;
    unsigned char *bytes = read_below(folder, "model.onnx", &len);
    if (bytes != NULL) {
        visit_case(folder, bytes, len, all);
        return;
    }
    struct dirent **entries;
    const int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[DATA_PATH_BYTES];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') visit(path, all);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
}

TEST(each_case_of_one_node_gives_the_bits_of_its_model)
{
    const char *folder = getenv("STREAMPOOL_CASES");
    if (folder == NULL) SKIP("STREAMPOOL_CASES names no folder of ONNX cases");
    totals all = {0};
    runtime_begin();
    visit(folder, &all);
    test_note("%u cases the same as their models, %u only as calls, %u refused by both, "
              "%u of several nodes or of graphs",
              all.same, all.eager_only, all.refused, all.other);
    CHECK(all.same > 0);
    runtime_end();
}

TEST_MAIN
