/* SPDX-License-Identifier: Apache-2.0 */
#include "model.hpp"

#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "arguments.hpp"
#include "device.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

nb::object interned(const char *name)
{
    /* A name of a file need not be UTF-8. */
    PyObject *text = PyUnicode_DecodeUTF8(name, static_cast<Py_ssize_t>(strlen(name)), "replace");
    if (text == nullptr) throw nb::python_error();
    PyUnicode_InternInPlace(&text);
    return nb::steal(text);
}

void add_port(std::vector<Port> *ports, const sp_port &info)
{
    ports->push_back({info.name, interned(info.name), info});
}

/* Sizes: a number, the name of a free dimension, or None for one without a name. */
nb::object port_shape(const sp_port &info)
{
    if (!info.has_shape) return nb::none();
    nb::list sizes;
    for (uint32_t i = 0; i < info.rank; i++) {
        if (info.shape[i] >= 0) sizes.append(info.shape[i]);
        else if (info.dim_names[i][0] != 0) sizes.append(interned(info.dim_names[i]));
        else sizes.append(nb::none());
    }
    return nb::tuple(sizes);
}

nb::list port_list(const std::vector<Port> &ports)
{
    nb::list all;
    for (const Port &port : ports) {
        all.append(nb::make_tuple(port.key, dtype_name(port.info.dtype), port_shape(port.info),
                                  port.info.determines_shapes));
    }
    return all;
}

struct LoadOptions {
    sp_model_options options = {};
    std::string cpu_ops;
};

/* By sp_precision. */
constexpr const char *precisions[] = {"default", "tf32", "f16", "bf16"};

sp_precision precision_of(nb::handle value)
{
    const std::string text = text_of(value, "precision");
    for (size_t i = 0; i < std::size(precisions); i++) {
        if (text == precisions[i]) return static_cast<sp_precision>(i);
    }
    raise_value("precision is '%s'; it can be 'default', 'tf32', 'f16' or 'bf16'", text.c_str());
}

/* By the names of sp_model_options; TypeError for others. */
void set_option(LoadOptions *out, const char *name, nb::handle value)
{
    sp_model_options *o = &out->options;
    if (strcmp(name, "cpu_ops") == 0) {
        out->cpu_ops = text_of(value, name);
        o->cpu_ops = out->cpu_ops.c_str();
        return;
    }
    if (strcmp(name, "precision") == 0) {
        o->precision = precision_of(value);
        return;
    }
    const struct {
        const char *name;
        uint32_t *u32;
        uint64_t *u64;
    } fields[] = {
        {"max_plans", &o->max_plans, nullptr},
        {"max_run_bytes", nullptr, &o->max_run_bytes},
        {"max_loop_trips", nullptr, &o->max_loop_trips},
        {"max_partial_bytes", nullptr, &o->max_partial_bytes},
        {"weight", &o->weight, nullptr},
        {"max_concurrent_runs", &o->max_concurrent_runs, nullptr},
        {"max_waiting", &o->max_waiting, nullptr},
    };
    for (const auto &field : fields) {
        if (strcmp(name, field.name) != 0) continue;
        const int64_t number = integer_of(value, name);
        if (number < 0) raise_value("%s is %lld; it must not be negative", name, (long long)number);
        if (field.u64 != nullptr) *field.u64 = static_cast<uint64_t>(number);
        else if (number > UINT32_MAX)
            raise_value("%s is %lld; it can be 0 to %u", name, (long long)number, UINT32_MAX);
        else *field.u32 = static_cast<uint32_t>(number);
        return;
    }
    raise_type("load() has no option '%s'", name);
}

std::unique_ptr<Model> load(nb::handle source, bool is_path, sp_device device, ReleaseGil release,
                            const nb::dict &options)
{
    LoadOptions chosen;
    chosen.options.device = device;
    for (const auto &[name, value] : options) {
        set_option(&chosen, text_of(name, "the name of an option"), value);
    }
    sp_model handle = {};
    if (is_path) {
        const auto path = nb::borrow<nb::bytes>(source);
        if (strlen(path.c_str()) != path.size()) raise_value("the path has a null character");
        check(unlocked([&] { return sp_model_load(path.c_str(), &chosen.options, &handle); }));
    } else {
        Py_buffer view;
        if (!PyObject_CheckBuffer(source.ptr())) {
            raise_kind("source", "a path, or the bytes of a file", source);
        }
        if (PyObject_GetBuffer(source.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
        const sp_status status = unlocked([&] {
            return sp_model_load_from_memory(view.buf, static_cast<size_t>(view.len),
                                             &chosen.options, &handle);
        });
        PyBuffer_Release(&view);
        check(status);
    }
    return std::make_unique<Model>(handle, release);
}

nb::dict info_of(const Model &model)
{
    sp_model_info info;
    nb::dict all;
    model.check_call(sp_model_get_info(model.open_handle(), &info));
#define SP_PY_FIELD(name) all[#name] = info.name
    SP_PY_FIELD(node_count);
    SP_PY_FIELD(opset);
    SP_PY_FIELD(weight_bytes);
    SP_PY_FIELD(runs);
    SP_PY_FIELD(plan_count);
    SP_PY_FIELD(plan_builds);
    SP_PY_FIELD(plan_evictions);
    SP_PY_FIELD(context_count);
    SP_PY_FIELD(most_in_flight);
    SP_PY_FIELD(partial_plan_count);
    SP_PY_FIELD(step_count);
    SP_PY_FIELD(cpu_step_count);
    SP_PY_FIELD(segment_count);
    SP_PY_FIELD(packed_bytes);
    SP_PY_FIELD(batches);
    SP_PY_FIELD(batched_runs);
#undef SP_PY_FIELD
    all["precision"] = precisions[info.precision];
    return all;
}

nb::dict statistics_of(const Model &model)
{
    sp_model_statistics info;
    nb::dict all, by_rows;
    model.check_call(sp_model_get_statistics(model.open_handle(), &info));
#define SP_PY_FIELD(name) all[#name] = info.name
    SP_PY_FIELD(runs);
    SP_PY_FIELD(failed);
    SP_PY_FIELD(cancelled);
    SP_PY_FIELD(expired);
    SP_PY_FIELD(refused);
    SP_PY_FIELD(waiting);
    SP_PY_FIELD(in_flight);
    SP_PY_FIELD(most_in_flight);
    SP_PY_FIELD(waited);
    SP_PY_FIELD(wait_ns);
    SP_PY_FIELD(longest_wait_ns);
    SP_PY_FIELD(timed);
    SP_PY_FIELD(timed_ns);
    SP_PY_FIELD(batches);
    SP_PY_FIELD(batched_runs);
#undef SP_PY_FIELD
    for (uint32_t rows = 0; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        if (info.batches_of[rows] != 0) by_rows[nb::int_(rows)] = info.batches_of[rows];
    }
    all["batches_of"] = by_rows;
    return all;
}

} // namespace

Model::Model(sp_model model, ReleaseGil when) : Owned(model, "the model was closed"), release(when)
{
    sp_model_info info;
    check(sp_model_get_info(model, &info));
    device = info.device;
    for (uint32_t i = 0; i < info.input_count; i++) {
        sp_port port;
        check(sp_model_get_input(model, i, &port));
        add_port(&inputs, port);
        if (port.determines_shapes) is_dynamic = true;
    }
    for (uint32_t i = 0; i < info.output_count; i++) {
        sp_port port;
        check(sp_model_get_output(model, i, &port));
        add_port(&outputs, port);
    }
}

int64_t Model::find(const std::vector<Port> &ports, nb::handle name)
{
    for (size_t i = 0; i < ports.size(); i++) {
        if (ports[i].key.ptr() == name.ptr()) return static_cast<int64_t>(i);
    }
    if (!PyUnicode_Check(name.ptr())) raise_type("names of inputs and outputs are strings");
    for (size_t i = 0; i < ports.size(); i++) {
        if (PyUnicode_Compare(ports[i].key.ptr(), name.ptr()) == 0) return static_cast<int64_t>(i);
    }
    return -1;
}

KnownShapes::~KnownShapes()
{
    for (const auto &entry : entries) delete entry.load(std::memory_order_relaxed);
}

const OutputShapes *KnownShapes::find(const std::vector<int64_t> &key) const
{
    for (const auto &entry : entries) {
        const OutputShapes *shapes = entry.load(std::memory_order_acquire);
        if (shapes == nullptr || shapes->key == key) return shapes;
    }
    return nullptr;
}

void KnownShapes::add(OutputShapes added)
{
    const nb::ft_lock_guard guard(adding);
    for (auto &entry : entries) {
        const OutputShapes *shapes = entry.load(std::memory_order_relaxed);
        if (shapes != nullptr && shapes->key == added.key) return;
        if (shapes != nullptr) continue;
        entry.store(new OutputShapes(std::move(added)), std::memory_order_release);
        return;
    }
}

void bind_model(nb::module_ &m)
{
    nb::enum_<ReleaseGil>(m, "ReleaseGil", "Whether runs release the interpreter's lock.")
        .value("automatic", ReleaseGil::automatic)
        .value("always", ReleaseGil::always)
        .value("never", ReleaseGil::never);
    nb::class_<Model>(m, "Model", nb::is_weak_referenceable(), "A loaded model.")
        .def("close", &Model::close, "Releases the model; runs in flight finish.")
        .def_prop_ro("is_closed", &Model::is_closed)
        .def(
            "ports",
            [](const Model &model) {
                return nb::make_tuple(port_list(model.inputs), port_list(model.outputs));
            },
            "(name, dtype, shape, determines_shapes) of the inputs, and of the outputs.")
        .def("info", info_of, "Counts of the model, by name.")
        .def("statistics", statistics_of, "What became of the model's runs, by name.");
    m.def(
        "load",
        [](nb::handle source, bool is_path, nb::handle device, ReleaseGil release,
           const nb::dict &options) {
            return load(source, is_path, device_of(device), release, options).release();
        },
        nb::arg("source").none(), nb::arg("is_path"), nb::arg("device").none(), nb::arg("release"),
        nb::arg("options"), nb::rv_policy::take_ownership,
        "Loads the file of that path (bytes), or the bytes.");
}

} // namespace py
