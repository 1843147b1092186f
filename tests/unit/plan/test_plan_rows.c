/* SPDX-License-Identifier: Apache-2.0 */
/* Row-separability of real models: which ones are, why the others are not, and that a batch has the
 * bits of its rows. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "io/onnx_tensor.h"
#include "support/rows_model.h"
#include "support/test.h"

typedef struct verdict {
    const char *model;
    const char *reason; /* NULL: separable */
    const char *node, *message;
} verdict;

static const verdict verdicts[] = {
    {.model = "basic_pitch"},
    {.model = "blazeface_front_128"},
    {.model = "dtln_1"},
    {.model = "dtln_2"},
    {.model = "fastestdet"},
    {.model = "light_densenet121"},
    {.model = "light_resnet50"},
    {.model = "light_shufflenet"},
    {.model = "magika_v3_3"},
    {.model = "mnist_8"},
    {.model = "policy_g1"},
    {.model = "policy_go1"},
    {.model = "ppocr_cls"},
    {.model = "ppocr_v4_det"},
    {.model = "silero_vad_v4"},
    {.model = "silero_vad_v5"},
    {.model = "super_resolution_10"},
    {.model = "torch_bert"},
    {.model = "torch_conv1d"},
    {.model = "torch_encoder"},
    {.model = "torch_linear"},
    {.model = "torch_lstm"},
    {.model = "torch_mha"},
    {.model = "torch_mlp"},
    {.model = "torch_resnet"},
    {.model = "ultraface_rfb_320"},
    /* The indices of the ScatterND are constants that begin with the number of the image, 0: they
     * write into the first row only. */
    {"gtcrn_simple", "a larger batch is refused", "ScatterND_227",
     "updates of shape [2,16,2,33] do not match indices of shape [1,16,2,33,4]"},
};

/* A model with the inputs of its first test data set. */
static bool model_open(const char *name, rows_model *out)
{
    char path[DATA_PATH_BYTES];
    const sp_graph *graph = NULL;
    sp_array inputs[ROWS_PORTS] = {0};
    size_t len;
    if (!data_path(path, "models/%s/model.onnx", name)) return false;
    unsigned char *bytes = data_read(path, &len);
    CHECK_OK(sp__graph_load(bytes, len, &graph));
    free(bytes);
    if (graph == NULL) return false;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        CHECK(data_path(path, "models/%s/test_data_set_0/input_%u.pb", name, i));
        bytes = data_read(path, &len);
        CHECK_OK(sp__onnx_tensor_load(bytes, len, &inputs[i]));
        free(bytes);
    }
    rows_model_init(graph, inputs, out);
    return true;
}

static void verdict_check(const verdict *wanted, rows_model *model, uint64_t rows)
{
    const sp_rows_proof *proof = &model->proof;
    rows_model_prove(model, rows);
    CHECK(proof->is_separable == (wanted->reason == NULL));
    if (proof->is_separable) return;
    test_note("%s: %s: %s", wanted->model, proof->reason, proof->message);
    if (wanted->reason == NULL) return;
    CHECK_EQ_STR(proof->reason, wanted->reason);
    REQUIRE(proof->node < model->graph->node_count);
    CHECK_EQ_STR(model->graph->nodes[proof->node].name, wanted->node);
    if (rows == 2) CHECK(strstr(proof->message, wanted->message) != NULL);
}

TEST(verdicts_are_known)
{
    uint32_t checked = 0;
    for (size_t i = 0; i < SP_COUNT_OF(verdicts); i++) {
        rows_model model;
        if (!model_open(verdicts[i].model, &model)) continue;
        const uint64_t start = sp_clock_now();
        for (uint64_t rows = 2; rows <= 5; rows += 3) verdict_check(&verdicts[i], &model, rows);
        test_note("%s: %llu us", verdicts[i].model,
                  (unsigned long long)(sp_clock_now() - start) / 2000);
        checked++;
        rows_model_deinit(&model);
    }
    if (checked == 0) SKIP("no shared data");
}

TEST(a_batch_has_the_bits_of_its_rows)
{
    uint32_t checked = 0;
    for (size_t i = 0; i < SP_COUNT_OF(verdicts); i++) {
        rows_model model;
        if (verdicts[i].reason != NULL || !model_open(verdicts[i].model, &model)) continue;
        for (uint64_t rows = 2; rows <= test_count(7, 2); rows++) {
            rows_model_prove(&model, rows);
            if (model.proof.is_separable) CHECK(rows_model_check(&model, rows));
        }
        checked++;
        rows_model_deinit(&model);
    }
    if (checked == 0) SKIP("no shared data");
}

TEST_MAIN
