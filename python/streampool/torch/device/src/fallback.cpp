// SPDX-License-Identifier: Apache-2.0
#include "fallback.hpp"

#include <algorithm>
#include <atomic>

#include <ATen/ATen.h>
#include <torch/library.h>

#include "borrow.hpp"
#include "compat.hpp"
#include "devices.hpp"
#include "sparse.hpp"

namespace streampool_torch
{
namespace
{
using torch::jit::Stack;

std::atomic<int64_t> host_kernels{0}; // a figure for users

enum class Use { input, in_place, output };

Use use_of(const c10::Argument &argument)
{
    const c10::AliasInfo *alias = argument.alias_info();
    if (alias == nullptr || !alias->isWrite()) return Use::input;
    return argument.kwarg_only() ? Use::output : Use::in_place;
}

// Whether an operator reads tensors of the device, and uses tensors of the host that it must not:
// numbers, indices and lengths may be there. An output that is given by name (`out`) is not read:
// PyTorch's linalg_eigvals makes a result of the device from parts on the host.
struct Devices {
    bool has_ours = false;
    bool has_host = false;

    void note(const at::Tensor &tensor, Use use)
    {
        if (!tensor.defined()) return;
        const bool is_data = tensor.is_floating_point() || tensor.is_complex() || is_sparse(tensor);
        if (is_ours(tensor)) has_ours |= use != Use::output || is_sparse(tensor);
        else has_host |= use != Use::input || (tensor.dim() > 0 && is_data);
    }

    void require_one(const char *name) const
    {
        TORCH_CHECK(!has_ours || !has_host,
                    "Expected all tensors to be on the same device, but found at least two "
                    "devices, ",
                    this_device(), " and cpu! (in ", name, ")");
    }
};

at::Tensor borrow(Borrow &all, Devices &devices, const at::Tensor &tensor, Use use)
{
    devices.note(tensor, use);
    return use != Use::input ? all.write(tensor) : all.read(tensor);
}

c10::IValue borrow_list(Borrow &all, Devices &devices, const c10::IValue &value, Use use)
{
    if (value.isTensorList()) {
        c10::List<at::Tensor> hosts;
        for (const at::Tensor &tensor : value.toTensorVector()) {
            hosts.push_back(borrow(all, devices, tensor, use));
        }
        return hosts;
    }
    c10::List<optional<at::Tensor>> hosts;
    for (const c10::IValue &element : value.toListRef()) {
        optional<at::Tensor> host;
        if (element.isTensor()) host = borrow(all, devices, element.toTensor(), use);
        hosts.push_back(host);
    }
    return hosts;
}

bool is_list_of_tensors(const c10::IValue &value)
{
    if (value.isTensorList()) return true;
    if (!value.isList()) return false;
    const auto list = value.toListRef();
    return std::any_of(list.begin(), list.end(),
                       [](const c10::IValue &element) { return element.isTensor(); });
}

c10::IValue borrow_value(Borrow &all, Devices &devices, const c10::IValue &value, Use use)
{
    if (value.isTensor()) return borrow(all, devices, value.toTensor(), use);
    if (is_list_of_tensors(value)) return borrow_list(all, devices, value, use);
    if (value.isDevice() && value.toDevice().type() == c10::DeviceType::PrivateUse1) {
        return c10::Device(c10::DeviceType::CPU);
    }
    if (value.isGenerator()) return host_generator(value.toGenerator());
    return value;
}

c10::IValue give_value(Borrow &all, const c10::IValue &value)
{
    if (value.isTensor()) return all.give(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> tensors;
    for (const at::Tensor &host : value.toTensorVector()) tensors.push_back(all.give(host));
    return tensors;
}

void note_host_kernel()
{
    host_kernels.fetch_add(1, std::memory_order_relaxed);
}
} // namespace

void begin_host_kernel(const char *name, std::initializer_list<at::Tensor> inputs)
{
    note_host_kernel();
    Devices devices;
    for (const at::Tensor &tensor : inputs) devices.note(tensor, Use::input);
    devices.require_one(name);
}

void run_on_host(const c10::OperatorHandle &op, Stack *stack, c10::DispatchKey host)
{
    note_host_kernel();
    const c10::FunctionSchema &schema = op.schema();
    const auto &arguments = schema.arguments();
    const size_t begin = stack->size() - arguments.size();
    Borrow all;
    Devices devices;
    for (size_t i = 0; i < arguments.size(); i++) {
        c10::IValue &value = (*stack)[begin + i];
        value = borrow_value(all, devices, value, use_of(arguments[i]));
    }
    devices.require_one(schema.name().c_str());
    // Reductions of sparse products keep the places of maxima; no kernel for dense tensors asks.
    if (host != c10::DispatchKey::CPU) all.keep_requires_grad();
    all.begin();
    {
        at::AutoDispatchBelowADInplaceOrView guard;
        op.redispatchBoxed(c10::DispatchKeySet(host), stack);
    }
    const size_t first = stack->size() - schema.returns().size();
    for (size_t i = first; i < stack->size(); i++) (*stack)[i] = give_value(all, (*stack)[i]);
    all.finish();
}

TORCH_LIBRARY(streampool, m)
{
    m.def("host_kernel_count() -> int",
          []() -> int64_t { return host_kernels.load(std::memory_order_relaxed); });
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m)
{
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback_to<c10::DispatchKey::CPU>>());
}
} // namespace streampool_torch
