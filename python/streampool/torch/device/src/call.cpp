// SPDX-License-Identifier: Apache-2.0
#include "call.hpp"

#include <ATen/ATen.h>

#include "borrow.hpp"

namespace streampool_torch
{
bool is_native(const at::Tensor &tensor)
{
    return is_ours(tensor) && tensor.scalar_type() == c10::ScalarType::Float &&
           is_viewable(tensor) && !tensor.is_neg();
}

at::Tensor new_tensor(at::IntArrayRef size)
{
    return at::detail::empty_generic(size, allocator(),
                                     c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                     c10::ScalarType::Float, c10::nullopt);
}

at::Tensor scalar_tensor(double value)
{
    at::Tensor made = new_tensor({});
    const auto pattern = static_cast<float>(value);
    const sp_storage storage = handle_of(made.storage().unsafeGetStorageImpl());
    submit([&] {
        return sp_storage_fill_async(current_stream(), {storage, 0, sizeof pattern}, &pattern,
                                     sizeof pattern);
    });
    return made;
}

sp_op_attribute &Call::add(const char *name, sp_op_attribute_type type)
{
    attributes_.push_back({});
    attributes_.back().name = name;
    attributes_.back().type = type;
    return attributes_.back();
}

void Call::run(std::initializer_list<at::Tensor> outputs)
{
    c10::SmallVector<View, 3> targets;
    c10::SmallVector<sp_tensor, 3> into;
    for (const at::Tensor &output : outputs) {
        targets.emplace_back(output);
        into.push_back(targets.back().handle());
    }
    c10::SmallVector<sp_tensor, 3> results(into.size());
    sp_op_options options{};
    options.opset = opset_;
    options.attributes = attributes_.data();
    options.attribute_count = static_cast<uint32_t>(attributes_.size());
    options.into = into.data();
    submit([&] {
        return sp_op_run(op_, &options, inputs_.data(), static_cast<uint32_t>(inputs_.size()),
                         results.data(), static_cast<uint32_t>(results.size()));
    });
    for (const sp_tensor result : results) (void)sp_tensor_release(result);
}
} // namespace streampool_torch
