/* SPDX-License-Identifier: Apache-2.0 */
/* One CUDA program as C++, and its entries. Compiled once for each program; SP_NAME is its name,
 * SP_KERNELS its list. */
#include <stdint.h>

#include "cuda/cuda_dialect.h"
#include "ops/cuda/cuda_list.h"

#include SP_CUDA_TEXT

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

template <class T> static void call(void (*kernel)(sp_gpu_bindings, T))
{
    sp_gpu_bindings bindings;
    T constants;
    static_assert(sizeof(bindings.at) == sizeof(current_launch.bindings), "as in the dialect");
    memcpy(bindings.at, current_launch.bindings, sizeof(bindings.at));
    memcpy(bindings.tile, current_launch.tile, sizeof(bindings.tile));
    memcpy(&constants, current_launch.constants, sizeof(constants));
    kernel(bindings, constants);
}

#define ENTRY(name) {"sp_" #name, 1, [] { call(sp_##name); }},
#define CLUSTER_ENTRY(name, blocks) {"sp_" #name, blocks, [] { call(sp_##name); }},
extern const emulated_entry PASTE(emulated_, SP_NAME)[];
const emulated_entry PASTE(emulated_, SP_NAME)[] = {
#define KERNEL_ENTRY(name, constants, launch)                                                      \
    {"sp_" #name, 1, [] { call<sp_##constants##_constants>(sp_##name); }},
    SP_KERNELS(KERNEL_ENTRY)
#if defined(SP_CLUSTERS)
        SP_CLUSTERS(CLUSTER_ENTRY)
#endif
#if defined(SP_VARIANTS)
            SP_VARIANTS(ENTRY)
#endif
                {nullptr, 0, nullptr}};
