/* SPDX-License-Identifier: Apache-2.0 */
#include "model_tensors.hpp"

#include <string>
#include <vector>

#include <streampool/model_tensors.h>

#include "arguments.hpp"
#include "dtypes.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "model.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

constexpr const char *tensor_kind = "a Tensor of the model's device";

bool takes(const Model &model, nb::handle value)
{
    if (!is_instance<Tensor>(value)) return false;
    return nb::inst_ptr<Tensor>(value)->info().device.bits == model.device.bits;
}

/* The model's own name: that of the call may be another text, if the file's is no UTF-8. */
const char *own_name(const std::vector<Port> &ports, nb::handle name, const char *what)
{
    const int64_t index = Model::find(ports, name);
    return index < 0 ? text_of(name, (std::string("the name of an ") + what).c_str())
                     : ports[static_cast<size_t>(index)].name.c_str();
}

/* As arrays that are given for outputs are refused (call.cpp). */
void check_output(const Model &model, nb::handle name, nb::handle value)
{
    const int64_t index = Model::find(model.outputs, name);
    if (index < 0) {
        raise_type("the model has no output '%s'", text_of(name, "the name of an output"));
    }
    if (!is_instance<Tensor>(value)) return;
    const Port &port = model.outputs[static_cast<size_t>(index)];
    const sp_dtype wanted = port.info.dtype;
    const sp_dtype dtype = nb::inst_ptr<Tensor>(value)->info().dtype;
    if (wanted == SP_DTYPE_NONE || dtype == wanted) return;
    raise_type("output '%s' is %s; the Tensor given has elements of type %s", port.name.c_str(),
               dtype_name(wanted), dtype_name(dtype));
}

/* The objects of the dicts keep the handles during the call. */
std::vector<sp_model_tensor> arguments(const std::vector<Port> &ports, const nb::dict &tensors,
                                       const char *what)
{
    std::vector<sp_model_tensor> all;
    for (const auto &[name, value] : tensors) {
        sp_model_tensor argument = {};
        argument.name = own_name(ports, name, what);
        if (!value.is_none()) {
            const std::string own = std::string(what) + " '" + argument.name + "'";
            argument.tensor = instance_of<Tensor>(value, own.c_str(), tensor_kind).handle;
        }
        all.push_back(argument);
    }
    return all;
}

nb::list call_tensors(const Model &model, const nb::dict &inputs, const nb::dict &outputs)
{
    const sp_model handle = model.open_handle();
    const std::vector<sp_model_tensor> given = arguments(model.inputs, inputs, "input");
    for (const auto &[name, value] : outputs) check_output(model, name, value);
    std::vector<sp_model_tensor> results = arguments(model.outputs, outputs, "output");
    model.check_call(unlocked_wait([&] {
        return sp_model_run_tensors(handle, {}, nullptr, given.data(),
                                    static_cast<uint32_t>(given.size()), results.data(),
                                    static_cast<uint32_t>(results.size()));
    }));
    nb::list all;
    size_t at = 0;
    for (const auto &[name, value] : outputs) {
        const sp_tensor result = results[at++].tensor;
        all.append(value.is_none() ? nb::object(tensor_object(result)) : nb::borrow(value));
    }
    return all;
}

} // namespace

void bind_model_tensors(nb::module_ &m)
{
    m.def("model_device", [](const Model &model) { return Device{model.device}; });
    m.def("model_takes", takes, nb::arg("model"), nb::arg("value").none(),
          "Whether the value is a Tensor of the model's device.");
    m.def("call_tensors", call_tensors, nb::arg("model"), nb::arg("inputs"), nb::arg("outputs"),
          "Runs the model on Tensors by name, on the current stream; an output None is a new one.");
}

} // namespace py
