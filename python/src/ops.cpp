/* SPDX-License-Identifier: Apache-2.0 */
#include "ops.hpp"

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include <streampool/operators.h>

#include "arguments.hpp"
#include "call.hpp"
#include "device.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

constexpr const char *tensor_kind =
    "a Tensor, which streampool.tensor() makes of an array, or None";

/* Of outputs, of which the library refuses more, too: but only after they have memory here. */
constexpr int most_count = 65536;

/* The attributes of a call, and what their fields point to: deques, whose elements stay in place.
 */
struct Attributes {
    std::vector<sp_op_attribute> all;
    std::deque<std::string> texts;
    std::deque<std::vector<float>> floats;
    std::deque<std::vector<int64_t>> ints;
    std::deque<std::vector<const char *>> strings;
    std::deque<sp_host_tensor> tensors;
    std::vector<Py_buffer> views;

    ~Attributes()
    {
        for (Py_buffer &view : views) PyBuffer_Release(&view);
    }
    const char *text(nb::handle value, const char *what)
    {
        return texts.emplace_back(text_of(value, what)).c_str();
    }
    void add(nb::handle name, int type, nb::handle value);
    void set_list(sp_op_attribute *attribute, nb::handle value);
    const sp_host_tensor *tensor(nb::handle array, const std::string &what);
};

const sp_host_tensor *Attributes::tensor(nb::handle array, const std::string &what)
{
    Py_buffer view;
    if (!PyObject_CheckBuffer(array.ptr())) raise_kind(what.c_str(), "an array", array);
    if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        throw nb::python_error();
    }
    views.push_back(view);
    sp_host_tensor &tensor = tensors.emplace_back();
    tensor.dtype = dtype_of_format(view.format, view.itemsize);
    if (tensor.dtype == SP_DTYPE_NONE || view.ndim > SP_MAX_RANK) {
        raise_type("%s: the array has a dtype or rank that tensors do not have", what.c_str());
    }
    tensor.data = view.buf;
    tensor.bytes = static_cast<uint64_t>(view.len);
    tensor.rank = static_cast<uint32_t>(view.ndim);
    for (int i = 0; i < view.ndim; i++) tensor.shape[i] = view.shape[i];
    return &tensor;
}

void Attributes::set_list(sp_op_attribute *attribute, nb::handle value)
{
    const std::string what = std::string("each value of attribute '") + attribute->name + "'";
    if (!nb::hasattr(value, "__iter__")) {
        raise_kind(("attribute '" + std::string(attribute->name) + "'").c_str(), "a list", value);
    }
    size_t count = 0; /* as iterated: __len__ of a class may tell another one */
    if (attribute->type == SP_OP_FLOATS) {
        auto &list = floats.emplace_back();
        for (const nb::handle item : value) {
            list.push_back(static_cast<float>(number_of(item, what.c_str())));
        }
        attribute->floats = list.data();
        count = list.size();
    } else if (attribute->type == SP_OP_INTS) {
        auto &list = ints.emplace_back();
        for (const nb::handle item : value) list.push_back(integer_of(item, what.c_str()));
        attribute->ints = list.data();
        count = list.size();
    } else {
        auto &list = strings.emplace_back();
        for (const nb::handle item : value) list.push_back(text(item, what.c_str()));
        attribute->strings = list.data();
        count = list.size();
    }
    if (count > UINT32_MAX) raise_value("%s: there are too many", what.c_str());
    attribute->count = static_cast<uint32_t>(count);
}

void Attributes::add(nb::handle name, int type, nb::handle value)
{
    sp_op_attribute attribute = {};
    attribute.name = text(name, "the name of an attribute");
    attribute.type = static_cast<sp_op_attribute_type>(type);
    const std::string what = std::string("attribute '") + attribute.name + "'";
    switch (attribute.type) {
    case SP_OP_FLOAT:
        attribute.f = static_cast<float>(number_of(value, what.c_str()));
        break;
    case SP_OP_INT:
        attribute.i = integer_of(value, what.c_str());
        break;
    case SP_OP_STRING:
        attribute.s = text(value, what.c_str());
        break;
    case SP_OP_TENSOR:
        attribute.t = tensor(value, what);
        break;
    case SP_OP_GRAPH:
        raise_type("attribute '%s' is a graph", attribute.name);
    case SP_OP_FLOATS:
    case SP_OP_INTS:
    case SP_OP_STRINGS:
        set_list(&attribute, value);
        break;
    }
    all.push_back(attribute);
}

uint32_t count_argument(nb::handle object, const char *what)
{
    const int64_t count = integer_of(object, what);
    if (count < 0 || count > most_count) {
        raise_value("%s is %lld; it can be 0 to %d", what, static_cast<long long>(count),
                    most_count);
    }
    return static_cast<uint32_t>(count);
}

/* `attributes`: (name, type, value); an input may be None. */
nb::list run(const char *op, const nb::list &inputs, const nb::list &attributes,
             nb::handle output_count, nb::handle device, nb::handle opset)
{
    Attributes chosen;
    const uint32_t outputs = count_argument(output_count, "outputs");
    for (const nb::handle item : attributes) {
        const auto triple = nb::borrow<nb::tuple>(item);
        chosen.add(triple[0], nb::cast<int>(triple[1]), triple[2]);
    }
    std::vector<sp_tensor> tensors, results(outputs);
    for (const nb::handle input : inputs) {
        const std::string what = "input " + std::to_string(tensors.size());
        tensors.push_back(input.is_none()
                              ? sp_tensor{}
                              : instance_of<Tensor>(input, what.c_str(), tensor_kind).handle);
    }
    sp_op_options options = {};
    options.opset = count_argument(opset, "opset");
    options.attributes = chosen.all.data();
    options.attribute_count = static_cast<uint32_t>(chosen.all.size());
    if (!device.is_none()) options.device = device_of(device);
    check(unlocked_wait([&] {
        return sp_op_run(op, &options, tensors.data(), static_cast<uint32_t>(tensors.size()),
                         results.data(), outputs);
    }));
    nb::list all;
    for (const sp_tensor handle : results) all.append(tensor_object(handle));
    return all;
}

nb::list attributes_of(uint32_t index, uint32_t count)
{
    nb::list all;
    for (uint32_t i = 0; i < count; i++) {
        sp_op_attribute_info info;
        check(sp_op_get_attribute(index, i, &info));
        all.append(nb::make_tuple(info.name, static_cast<int>(info.type), info.is_required));
    }
    return all;
}

nb::object count_of(uint32_t count)
{
    return count == SP_OP_ANY_COUNT ? nb::none() : nb::object(nb::int_(count));
}

nb::list types_of(uint32_t index, const sp_op_info &info)
{
    nb::list all;
    for (uint32_t input = 0; input < info.typed_input_count; input++) {
        sp_op_input_types types;
        nb::list names;
        check(sp_op_get_input_types(index, input, &types));
        for (int dtype = SP_F32; dtype <= SP_BOOL && !types.is_like; dtype++) {
            if ((types.dtypes & SP_DTYPE_BIT(dtype)) == 0) continue;
            names.append(dtype_name(static_cast<sp_dtype>(dtype)));
        }
        all.append(types.is_like ? nb::object(nb::int_(types.like)) : nb::object(names));
    }
    return all;
}

/* (outputs at least, at most) of a version of an operator; None if there is no such version. */
nb::object outputs_of(const char *name, nb::handle opset)
{
    const uint32_t version = count_argument(opset, "opset");
    for (uint32_t i = 0; i < sp_op_count(); i++) {
        sp_op_info info;
        check(sp_op_get_info(i, &info));
        if (strcmp(info.name, name) != 0 || version < info.since || version > info.until) continue;
        return nb::make_tuple(info.min_outputs, count_of(info.max_outputs));
    }
    return nb::none();
}

/* The newest version of each operator. */
nb::list table()
{
    nb::list all;
    const uint32_t newest = sp_op_newest_opset();
    for (uint32_t i = 0; i < sp_op_count(); i++) {
        sp_op_info info;
        check(sp_op_get_info(i, &info));
        if (info.until != newest) continue;
        all.append(nb::make_tuple(info.name, info.min_inputs, count_of(info.max_inputs),
                                  info.min_outputs, count_of(info.max_outputs), types_of(i, info),
                                  attributes_of(i, info.attribute_count)));
    }
    return all;
}

} // namespace

void bind_ops(nb::module_ &m)
{
    m.def("op_run", run, nb::arg("op"), nb::arg("inputs"), nb::arg("attributes"),
          nb::arg("outputs"), nb::arg("device").none(), nb::arg("opset").none());
    m.def("integer", integer_of, nb::arg("value").none(), nb::arg("what"),
          "An int of what has __index__. TypeError, which names it, for others.");
    m.def("op_outputs", outputs_of, nb::arg("op"), nb::arg("opset").none());
    m.def("op_table", table,
          "(name, inputs at least, at most, outputs at least, at most, dtypes of inputs, (name, "
          "type, is_required) of attributes) of each operator.");
}

} // namespace py
