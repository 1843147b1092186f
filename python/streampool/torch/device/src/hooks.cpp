// SPDX-License-Identifier: Apache-2.0
// What PyTorch 2 asks of a device beside its guard.
#include "compat.hpp"
#include "devices.hpp"

#if SP_TORCH_HAS_HOOKS
#include "hooks_2.inc.hpp"
#else
namespace streampool_torch
{
// PyTorch 1.13 has generators of the host only.
at::Generator host_generator(const at::Generator &generator)
{
    return generator;
}
} // namespace streampool_torch
#endif
