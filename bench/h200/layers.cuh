// SPDX-License-Identifier: Apache-2.0
// The layers of a ResNet-50, then those of torch_resnet, that conv.cu and narrow_conv.cu measure.
#pragma once

#include "bench.cuh"

struct Layer {
    int64_t channels, filters, in, kernel, stride;
};

static sp_conv_constants constants_of(const Layer &layer, int64_t images)
{
    const int64_t pad = layer.kernel / 2, taps = layer.kernel * layer.kernel;
    sp_conv_constants k = {};
    k.groups = 1;
    k.channels = layer.channels;
    k.filters = layer.filters;
    k.in_h = k.in_w = layer.in;
    k.out_h = k.out_w = (layer.in + 2 * pad - layer.kernel) / layer.stride + 1;
    k.kernel_h = k.kernel_w = layer.kernel;
    k.stride_h = k.stride_w = layer.stride;
    k.dilation_h = k.dilation_w = 1;
    k.pad_top = k.pad_left = pad;
    k.segment = taps > 512 ? 512 : taps;
    for (int64_t channels = 2; channels <= 256 && taps * channels <= 512; channels *= 2) {
        k.segment = taps * channels;
    }
    k.planes = images * layer.filters;
    k.has_bias = true;
    k.activation = SP_ACTIVATION_RELU;
    return k;
}

static const Layer layers[] = {{3, 64, 224, 7, 2},     {64, 64, 56, 1, 1},    {64, 64, 56, 3, 1},
                               {64, 256, 56, 1, 1},    {256, 64, 56, 1, 1},   {256, 128, 56, 1, 1},
                               {128, 128, 56, 3, 2},   {128, 128, 28, 3, 1},  {128, 512, 28, 1, 1},
                               {512, 128, 28, 1, 1},   {256, 256, 28, 3, 2},  {256, 256, 14, 3, 1},
                               {256, 1024, 14, 1, 1},  {1024, 256, 14, 1, 1}, {512, 512, 14, 3, 2},
                               {512, 512, 7, 3, 1},    {512, 2048, 7, 1, 1},  {2048, 512, 7, 1, 1},
                               {3, 16, 32, 3, 1},      {16, 16, 32, 3, 1},    {16, 16, 32, 1, 1},
                               {16, 32, 32, 3, 2},     {32, 32, 16, 3, 1},    {32, 64, 16, 3, 2},
                               {64, 64, 8, 3, 1}};

// Its part of a JSON line.
static void print_layer(const Layer &layer, int64_t images)
{
    std::printf("\"channels\":%lld,\"filters\":%lld,\"in\":%lld,\"kernel\":%lld,\"stride\":%lld,"
                "\"images\":%lld",
                (long long)layer.channels, (long long)layer.filters, (long long)layer.in,
                (long long)layer.kernel, (long long)layer.stride, (long long)images);
}
