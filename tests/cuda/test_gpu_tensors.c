/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: models on tensors have the CPU's bits, and a run is one launch of a graph that has the
 * tensors' addresses. Skipped without a GPU. */
#include <string.h>

#include <streampool/model_tensors.h>

#include "base/clock.h"
#include "device/cuda/cuda_api.h"
#include "run_fixture.h"

static bool open_gpu(sp_device *out)
{
    return sp_device_open("cuda:0", out) == SP_OK;
}

typedef struct gpu_case {
    model_case cpu; /* with the expected outputs */
    sp_model model;
    sp_model_tensor inputs[FIXTURE_PORTS];
} gpu_case;

static bool gpu_case_open(const char *name, sp_device device, gpu_case *out)
{
    char path[DATA_PATH_BYTES];
    *out = (gpu_case){.model = {0}};
    if (!data_path(path, "models/%s/model.onnx", name) || !case_open(name, NULL, &out->cpu)) {
        return false;
    }
    CHECK_OK(sp_model_load(path, &(sp_model_options){.device = device}, &out->model));
    for (uint32_t i = 0; i < out->cpu.input_count; i++) {
        const sp_array *input = &out->cpu.inputs[i];
        CHECK_OK(sp_tensor_from_host(device, input->dtype, input->shape.rank, input->shape.dims,
                                     input->data, input->bytes, &out->inputs[i].tensor));
    }
    return true;
}

static void gpu_case_close(gpu_case *c)
{
    for (uint32_t i = 0; i < c->cpu.input_count; i++) {
        CHECK_OK(sp_tensor_release(c->inputs[i].tensor));
    }
    CHECK_OK(sp_model_release(c->model));
    case_close(&c->cpu);
}

static void run(const gpu_case *c, sp_model_tensor outputs[FIXTURE_PORTS])
{
    memset(outputs, 0, FIXTURE_PORTS * sizeof *outputs);
    CHECK_OK(sp_model_run_tensors(c->model, (sp_stream){0}, NULL, c->inputs, c->cpu.input_count,
                                  outputs, c->cpu.output_count));
}

static void release(const gpu_case *c, const sp_model_tensor outputs[FIXTURE_PORTS])
{
    for (uint32_t i = 0; i < c->cpu.output_count; i++) {
        CHECK_OK(sp_tensor_release(outputs[i].tensor));
    }
}

static bool is_same(const gpu_case *c, const sp_model_tensor outputs[FIXTURE_PORTS])
{
    sp_array got[FIXTURE_PORTS];
    outputs_make(&c->cpu, got);
    for (uint32_t i = 0; i < c->cpu.output_count; i++) {
        CHECK_OK(sp_tensor_read(outputs[i].tensor, got[i].data, got[i].bytes));
    }
    const bool is_right = case_is_same(&c->cpu, got);
    outputs_free(&c->cpu, got);
    return is_right;
}

TEST(models_on_tensors_have_the_bits_of_the_cpu)
{
    sp_device device;
    if (!open_gpu(&device)) SKIP("no GPU");
    for (uint32_t i = 0; i < FIXTURE_ALL_MODELS; i++) {
        gpu_case c;
        sp_model_tensor first[FIXTURE_PORTS], second[FIXTURE_PORTS];
        if (!gpu_case_open(fixture_all_models[i], device, &c)) SKIP("no shared data");
        run(&c, first); /* the outputs have other addresses each time */
        run(&c, second);
        const bool are_same = is_same(&c, first) && is_same(&c, second);
        CHECK(are_same);
        if (!are_same) test_note("%s differs from the cpu", fixture_all_models[i]);
        release(&c, first);
        release(&c, second);
        gpu_case_close(&c);
    }
}

/* Nanoseconds of a run, of many that are submitted without a wait, and of many that wait. */
static double time_of_runs(const gpu_case *c, uint32_t count, bool waits)
{
    sp_stream stream;
    sp_model_info info;
    CHECK_OK(sp_model_get_info(c->model, &info));
    CHECK_OK(sp_stream_current(info.device, &stream));
    const uint64_t start = sp_clock_now();
    for (uint32_t i = 0; i < count; i++) {
        sp_model_tensor outputs[FIXTURE_PORTS];
        run(c, outputs);
        if (waits) CHECK_OK(sp_stream_synchronize(stream));
        release(c, outputs);
    }
    CHECK_OK(sp_stream_synchronize(stream));
    return (double)(sp_clock_now() - start) / count;
}

static double time_of_host_runs(const gpu_case *c, uint32_t count)
{
    model_case on_gpu = c->cpu;
    sp_array outputs[FIXTURE_PORTS];
    on_gpu.model = c->model;
    outputs_make(&c->cpu, outputs);
    const uint64_t start = sp_clock_now();
    for (uint32_t i = 0; i < count; i++) CHECK_OK(case_run(&on_gpu, outputs));
    const double ns = (double)(sp_clock_now() - start) / count;
    outputs_free(&c->cpu, outputs);
    return ns;
}

TEST(a_run_on_tensors_is_one_launch)
{
    static const char *const names[] = {"torch_mlp", "mnist_8", "torch_encoder", "torch_resnet",
                                        "light_resnet50"};
    const uint32_t count = (uint32_t)test_count(2000, 300);
    sp_device device;
    if (!open_gpu(&device)) SKIP("no GPU");
    for (uint32_t i = 0; i < SP_COUNT_OF(names); i++) {
        gpu_case c;
        if (!gpu_case_open(names[i], device, &c)) SKIP("no shared data");
        const double host = (time_of_host_runs(&c, count), time_of_host_runs(&c, count));
        const double waiting = (time_of_runs(&c, count, true), time_of_runs(&c, count, true));
        const uint64_t launches = sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch);
        const uint64_t kernels = sp__cuda_call_count(SP_CUDA_CALL_cuLaunchKernel);
        const uint64_t copies = sp__cuda_call_count(SP_CUDA_CALL_cuMemcpyAsync);
        const uint64_t bound = sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams);
        const double queued = time_of_runs(&c, count, false);
        CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuGraphLaunch), launches + count);
        CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuLaunchKernel), kernels);
        CHECK_EQ_U64(sp__cuda_call_count(SP_CUDA_CALL_cuMemcpyAsync), copies);
        const uint64_t rebound =
            sp__cuda_call_count(SP_CUDA_CALL_cuGraphExecKernelNodeSetParams) - bound;
        test_note("%s: sp_model_run %.1f us, tensors with a wait %.1f us, without %.1f us; "
                  "%.2f nodes bound a run",
                  names[i], host / 1e3, waiting / 1e3, queued / 1e3, (double)rebound / count);
        gpu_case_close(&c);
    }
}

TEST_MAIN
