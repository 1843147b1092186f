/* SPDX-License-Identifier: Apache-2.0 */
#include "segment_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/option.h"
#include "fake_cuda.h"
#include "fake_kernels.h"

static bool is_kind(const char *wanted)
{
    const char *kind = getenv("STREAMPOOL_TEST_DEVICE");
    return kind != NULL && strcmp(kind, wanted) == 0;
}

bool segment_is_cuda(void)
{
    return is_kind("cuda");
}

bool segment_is_cpu(void)
{
    return is_kind("cpu");
}

void segment_set_ops(const char *ops)
{
    static char given[256];
    static bool is_known;
    const char *value = getenv("STREAMPOOL_CPU_OPS");
    if (!is_known && value != NULL) snprintf(given, sizeof given, "%s", value);
    is_known = true;
    setenv("STREAMPOOL_CPU_OPS", ops != NULL ? ops : given, 1);
    sp__option_reset();
}

sp_device segment_begin(void)
{
    return segment_begin_with(&(runtime_setting){0});
}

sp_device segment_begin_with(const runtime_setting *setting)
{
    runtime_begin_with(setting);
    segment_set_ops(NULL);
    if (segment_is_cuda()) fake_kernels_begin();
    sp_device device = {0};
    const char *other = segment_is_cpu() ? "cpu" : "null";
    CHECK_OK(sp_device_open(segment_is_cuda() ? "cuda:0" : other, &device));
    return device;
}

void segment_end(void)
{
    runtime_end();
    if (!segment_is_cuda()) return;
    fake_cuda_drain();
    CHECK_EQ_U64(fake_cuda_live_all(), 0);
    fake_cuda_reset();
}

bool segment_open(const char *name, sp_device device, model_case *out)
{
    model_case cpu;
    if (!case_open(name, NULL, &cpu)) return false;
    const sp_model_options options = {.device = device};
    CHECK(case_open(name, &options, out));
    CHECK(case_is_same(&cpu, out->outputs));
    if (!case_is_same(&cpu, out->outputs)) test_note("%s differs from the cpu", name);
    case_close(&cpu);
    return true;
}

sp_model_info segment_info(const model_case *c)
{
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(c->model, &info));
    return info;
}
