/* SPDX-License-Identifier: Apache-2.0 */
#include "call.hpp"

#include "arguments.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "gil.hpp"
#include "memory.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* Runs that are expected to take less keep the interpreter's lock: a release and the way back cost
 * about as much, and more with every thread that waits for the lock. */
constexpr int64_t short_run_ns = 7'000;

/* The shape that a plain buffer has, in `tensor`. False: too many dimensions, or not contiguous. */
bool buffer_shape(const Py_buffer &view, sp_host_tensor *tensor)
{
    if (view.ndim > SP_MAX_RANK || !PyBuffer_IsContiguous(&view, 'C')) return false;
    tensor->rank = static_cast<uint32_t>(view.ndim);
    for (int i = 0; i < view.ndim; i++) tensor->shape[i] = view.shape[i];
    return true;
}

bool is_aligned(const Py_buffer &view)
{
    return reinterpret_cast<uintptr_t>(view.buf) % static_cast<uintptr_t>(view.itemsize) == 0;
}

bool shape_is(nb::handle tuple, const sp_host_tensor &tensor)
{
    if (nb::len(tuple) != tensor.rank) return false;
    for (uint32_t i = 0; i < tensor.rank; i++) {
        if (PyLong_AsLongLong(PyTuple_GetItem(tuple.ptr(), i)) != tensor.shape[i]) return false;
    }
    return true;
}

std::string shape_text(const int64_t *shape, uint32_t rank)
{
    return nb::repr(shape_tuple(shape, rank)).c_str();
}

/* Only the exceptions which say that there is no such buffer: not KeyboardInterrupt, say. */
void clear_no_buffer()
{
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyErr_ExceptionMatches(PyExc_ValueError)) {
        throw nb::python_error();
    }
    PyErr_Clear();
}

} // namespace

Call::~Call()
{
    release_views();
    free_allocated();
}

void Call::release_views()
{
    for (uint32_t i = 0; i < view_count; i++) {
        if (views[i].obj != nullptr) PyBuffer_Release(&views[i]);
    }
    view_count = 0;
}

/* What no array has taken over. */
void Call::free_allocated()
{
    for (uint32_t i = 0; i < output_count; i++) {
        if (!arrays[i].is_valid()) sp_host_tensor_free(&outputs[i]);
    }
}

/* ---- inputs ---- */

void Call::take_input(uint32_t index, nb::handle value, bool is_raw, const char **refused)
{
    Py_buffer *view = &views[index];
    sp_host_tensor *tensor = &inputs[index];
    if (PyObject_GetBuffer(value.ptr(), view, PyBUF_FORMAT | PyBUF_STRIDES) != 0) {
        view->obj = nullptr;
        clear_no_buffer();
        *refused = tensor->name;
        return;
    }
    sp_dtype dtype = dtype_of_format(view->format, view->itemsize);
    if (index < model->inputs.size()) {
        const sp_dtype wanted = model->inputs[index].info.dtype;
        if (is_raw && wanted == SP_BF16 && dtype == SP_U16) dtype = SP_BF16;
        if (wanted != SP_DTYPE_NONE && dtype != wanted) *refused = tensor->name;
    }
    if (dtype == SP_DTYPE_NONE || !buffer_shape(*view, tensor) || !is_aligned(*view)) {
        *refused = tensor->name;
    }
    tensor->dtype = dtype;
    tensor->data = view->buf;
    tensor->bytes = static_cast<uint64_t>(view->len);
}

/* Of names that are no inputs the library knows whether they are initializers. */
void Call::take_named(const nb::dict &named, bool is_raw, const char **refused)
{
    auto next = static_cast<uint32_t>(model->inputs.size());
    for (const auto &[name, value] : named) {
        const int64_t index = Model::find(model->inputs, name);
        const auto at = index < 0 ? next++ : static_cast<uint32_t>(index);
        /* The model's own name: that of the call may be another text, if the file's is no UTF-8. */
        const char *text =
            index < 0 ? text_of(name, "the name of an input") : model->inputs[at].name.c_str();
        if (inputs[at].name != nullptr) raise_type("input '%s' is given twice", text);
        inputs[at].name = text;
        take_input(at, value, is_raw, refused);
    }
}

bool Call::take_inputs(const nb::tuple &values, const nb::dict &named, bool is_raw)
{
    const auto own = static_cast<uint32_t>(model->inputs.size());
    const auto in_order = static_cast<uint32_t>(nb::len(values));
    uint32_t extra = 0;
    if (in_order > own) raise_type("%u inputs given; the model has %u", in_order, own);
    const bool has_names = nb::len(named) > 0;
    for (const auto &[name, value] : named) extra += Model::find(model->inputs, name) < 0;
    const char *refused = nullptr; /* the name of an input */
    input_count = own + extra;
    inputs.make(input_count);
    views.make(input_count + static_cast<uint32_t>(model->outputs.size()));
    view_count = input_count;
    for (uint32_t i = 0; i < input_count; i++) inputs[i] = {}; /* after a call that was refused */
    for (uint32_t i = 0; i < in_order; i++) {
        inputs[i].name = model->inputs[i].name.c_str();
        take_input(i, PyTuple_GetItem(values.ptr(), i), is_raw, &refused);
    }
    if (has_names) take_named(named, is_raw, &refused);
    for (uint32_t i = 0; i < own; i++) {
        if (inputs[i].name != nullptr) continue;
        const char *missing = model->inputs[i].name.c_str();
        if (extra == 0) raise_type("input '%s' is missing", missing);
        raise_type("input '%s' is missing; '%s' is no input's name", missing, inputs[own].name);
    }
    if (refused != nullptr) {
        release_views();
        if (is_raw) {
            raise_value("input '%s' has more than 8 dimensions, or elements without a dtype",
                        refused);
        }
        return false;
    }
    has_key = !model->is_dynamic && extra == 0;
    if (!has_key) return true;
    for (uint32_t i = 0; i < own; i++) {
        key.push_back(int64_t{inputs[i].dtype} << 8 | inputs[i].rank);
        key.insert(key.end(), inputs[i].shape, inputs[i].shape + inputs[i].rank);
    }
    known = model->shapes.find(key);
    return true;
}

/* ---- outputs ---- */

/* The bytes of an array are the output's memory. */
void Call::hold(uint32_t place, nb::handle array)
{
    Py_buffer *view = &views[view_count];
    if (PyObject_GetBuffer(array.ptr(), view, PyBUF_FORMAT | PyBUF_STRIDES | PyBUF_WRITABLE) != 0) {
        clear_no_buffer();
        raise_type("output '%s' is no writable array: %s",
                   model->outputs[output_index[place]].name.c_str(), class_name(array).c_str());
    }
    view_count++;
    outputs[place].data = view->buf;
    outputs[place].capacity = static_cast<uint64_t>(view->len);
    arrays[place] = nb::borrow(array);
}

void Call::take_new_output(uint32_t place, const OutputShapes *shapes, uint32_t index)
{
    if (shapes == nullptr || shapes->outputs[index].dtype == SP_BF16) return;
    const OutputShapes::Output &output = shapes->outputs[index];
    hold(place, numpy_empty(output.shape, output.dtype));
    /* Without bytes there is no memory to write to, and the library leaves the output alone. */
    if (outputs[place].capacity == 0) outputs[place].data = nullptr;
}

void Call::take_given_output(uint32_t place, const OutputShapes *shapes, uint32_t index,
                             nb::handle array)
{
    const Port &port = model->outputs[index];
    sp_host_tensor tensor = {};
    hold(place, array);
    const Py_buffer &view = views[view_count - 1];
    const sp_dtype dtype = dtype_of_format(view.format, view.itemsize);
    const sp_dtype wanted = shapes != nullptr ? shapes->outputs[index].dtype : port.info.dtype;
    if (wanted != SP_DTYPE_NONE && dtype != wanted) {
        /* A format that no dtype has is named as in the buffer: ">f" has the other byte order. */
        const bool is_named = dtype == SP_DTYPE_NONE && view.format != nullptr;
        raise_type("output '%s' is %s; the array given has elements of type %s", port.name.c_str(),
                   dtype_name(wanted), is_named ? view.format : dtype_name(dtype));
    }
    if (!buffer_shape(view, &tensor)) {
        raise_value("output '%s': the array given is not contiguous", port.name.c_str());
    }
    given[place].is_given = true;
    given[place].rank = tensor.rank;
    std::copy(tensor.shape, tensor.shape + tensor.rank, given[place].shape);
    if (shapes != nullptr && !shape_is(shapes->outputs[index].shape, tensor)) {
        raise_value("output '%s' has shape %s; the array given has %s", port.name.c_str(),
                    nb::repr(shapes->outputs[index].shape).c_str(),
                    shape_text(tensor.shape, tensor.rank).c_str());
    }
}

void Call::take_output(uint32_t place, uint32_t index, nb::handle array)
{
    outputs[place].name = model->outputs[index].name.c_str();
    output_index[place] = index;
    if (array.is_none()) take_new_output(place, known, index);
    else take_given_output(place, known, index, array);
}

void Call::take_outputs(nb::handle chosen)
{
    const auto all = static_cast<uint32_t>(model->outputs.size());
    const bool is_dict = PyDict_Check(chosen.ptr());
    const uint32_t count = chosen.is_none() ? all : static_cast<uint32_t>(nb::len(chosen));
    if (count > all || (!is_dict && count != all)) {
        raise_type("%u outputs given; the model has %u", count, all);
    }
    outputs.make(count);
    arrays.make(count);
    given.make(count);
    output_index.make(count);
    /* Counted once they have names: the destructor frees what it finds. */
    output_count = count;
    if (!is_dict) {
        for (uint32_t i = 0; i < count; i++) {
            take_output(i, i, chosen.is_none() ? nb::handle(Py_None) : nb::handle(chosen[i]));
        }
        return;
    }
    uint32_t place = 0;
    for (const auto &[name, value] : nb::borrow<nb::dict>(chosen)) {
        const int64_t index = Model::find(model->outputs, name);
        if (index < 0) {
            raise_type("the model has no output '%s'", text_of(name, "the name of an output"));
        }
        take_output(place++, static_cast<uint32_t>(index), value);
    }
}

/* ---- runs ---- */

sp_status Call::run_once()
{
    const sp_model handle = model->open_handle();
    const auto run = [&] {
        return sp_model_run(handle, inputs.data(), input_count, outputs.data(), output_count);
    };
    if (model->release == ReleaseGil::never) return run();
    if (has_gil && model->release == ReleaseGil::automatic) {
        if (model->long_runs.must_ask()) {
            const sp_status status = sp_model_try_run(handle, short_run_ns, inputs.data(),
                                                      input_count, outputs.data(), output_count);
            if (status == SP_OK) model->long_runs.forget();
            if (status != SP_BUSY) return status;
        }
        model->long_runs.add();
    }
    return unlocked_wait(run);
}

/* After a run that needed other sizes than an earlier one with the same shapes: they follow from
 * values. False: all arrays are the caller's. */
bool Call::let_library_allocate()
{
    bool has_own = false;
    model->is_dynamic = true;
    has_key = false;
    for (uint32_t i = 0; i < output_count; i++) {
        if (given[i].is_given || !arrays[i].is_valid()) continue;
        has_own = true;
        arrays[i].reset();
        outputs[i].data = nullptr;
        outputs[i].capacity = 0;
    }
    return has_own;
}

void Call::check_given_shapes()
{
    for (uint32_t i = 0; i < output_count; i++) {
        const Given &own = given[i];
        if (!own.is_given) continue;
        if (own.rank == outputs[i].rank &&
            std::equal(own.shape, own.shape + own.rank, outputs[i].shape)) {
            continue;
        }
        raise_value("output '%s' has shape %s; the array given has %s", outputs[i].name,
                    shape_text(outputs[i].shape, outputs[i].rank).c_str(),
                    shape_text(own.shape, own.rank).c_str());
    }
}

/* Of a model whose shapes do not follow from values, once all outputs were requested. Not of one
 * that was closed during the run, which succeeds all the same. */
void Call::learn_shapes()
{
    if (!has_key || output_count != model->outputs.size()) return;
    sp_model_info info;
    if (sp_model_get_info(model->handle_or_zero(), &info) != SP_OK) return;
    if (info.partial_plan_count != 0) model->is_dynamic = true;
    if (model->is_dynamic) return;
    OutputShapes shapes;
    shapes.key = std::move(key);
    shapes.outputs.resize(output_count);
    for (uint32_t i = 0; i < output_count; i++) {
        shapes.outputs[output_index[i]] = {outputs[i].dtype,
                                           shape_tuple(outputs[i].shape, outputs[i].rank)};
    }
    model->shapes.add(std::move(shapes));
}

bool Call::has_other_sizes(sp_status status)
{
    if (known == nullptr) return false;
    if (status == SP_MISMATCH) return true;
    for (uint32_t i = 0; i < output_count && status == SP_OK; i++) {
        if (!given[i].is_given && arrays[i].is_valid() && outputs[i].bytes != outputs[i].capacity) {
            return true;
        }
    }
    return false;
}

void Call::run()
{
    sp_status status = run_once();
    if (has_other_sizes(status) && let_library_allocate()) status = run_once();
    release_views();
    model->check_call(status);
}

nb::object Call::results(bool is_single)
{
    if (known == nullptr) {
        check_given_shapes();
        learn_shapes();
    }
    for (uint32_t i = 0; i < output_count; i++) {
        if (arrays[i].is_valid()) continue;
        const sp_host_tensor tensor = outputs[i];
        outputs[i].data = nullptr;
        arrays[i] = array_of_output(tensor);
    }
    const uint32_t count = output_count;
    output_count = 0; /* all memory belongs to arrays now */
    if (is_single && count == 1) return std::move(arrays[0]);
    PyObject *tuple = PyTuple_New(count);
    if (tuple == nullptr) throw nb::python_error();
    for (uint32_t i = 0; i < count; i++) {
        PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(i), arrays[i].release().ptr());
    }
    return nb::steal(tuple);
}

sp_status Call::take_from(sp_future future)
{
    for (uint32_t i = 0; i < output_count; i++) {
        const char *name = outputs[i].name;
        const sp_status status = sp_future_take_output(future, i, &outputs[i]);
        outputs[i].name = name;
        if (status != SP_OK) return status;
    }
    return SP_OK;
}

void bind_call(nb::module_ &m)
{
    m.def(
        "call",
        [](Model &model, const nb::tuple &values, const nb::dict &named, nb::handle outputs,
           bool is_raw) -> nb::object {
            Call call(model);
            if (!call.take_inputs(values, named, is_raw)) return nb::borrow(Py_NotImplemented);
            call.take_outputs(outputs);
            call.run();
            return call.results(!PyDict_Check(outputs.ptr()));
        },
        nb::arg("model"), nb::arg("values"), nb::arg("named"), nb::arg("outputs").none(),
        nb::arg("is_raw"),
        "Runs the model. NotImplemented: inputs must be converted first. One output is returned "
        "as it is, several as a tuple.");
}

} // namespace py
