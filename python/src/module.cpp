/* SPDX-License-Identifier: Apache-2.0 */
/* The extension module: thin, private, over the public headers. Its Python layer is the package. */
#include <nanobind/nanobind.h>

#include "batch_inference.hpp"
#include "batch_queue.hpp"
#include "call.hpp"
#include "device.hpp"
#include "dtypes.hpp"
#include "errors.hpp"
#include "exit_guard.h"
#include "future.hpp"
#include "gil.hpp"
#include "memory.hpp"
#include "model.hpp"
#include "model_tensors.hpp"
#include "ops.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace
{

/* With the exit handlers of Python: later, no thread may come back to the interpreter. */
void close_guard()
{
    PyThreadState *state = PyEval_SaveThread();
    sp_py_guard_close();
    PyEval_RestoreThread(state);
}

/* Another import after the module was dropped from sys.modules, as a second module object: it has
 * what the first one has, since types, lists and threads are the process's. False: the first. */
bool is_imported_again(nb::module_ &m)
{
    static PyObject *first; /* process-wide: there is one interpreter */
    if (first == nullptr) {
        first = nb::borrow(m).release().ptr();
        return false;
    }
    for (const auto &[name, value] : nb::borrow<nb::dict>(nb::handle(first).attr("__dict__"))) {
        if (!nb::hasattr(m, name)) nb::setattr(m, name, value);
    }
    return true;
}

} // namespace

NB_MODULE(_core_of_process, m)
{
    if (is_imported_again(m)) return;
    nb::set_leak_warnings(false); /* threads that are parked at exit keep what they use */
    py::bind_errors(m);
    py::bind_dtypes(m);
    py::bind_device(m);
    py::bind_stream(m);
    py::bind_host_memory(m);
    py::bind_tensor(m);
    py::bind_ops(m);
    py::bind_model(m);
    py::bind_model_tensors(m);
    py::bind_call(m);
    py::bind_batch_queue(m);
    py::bind_batch_inference(m);
    py::bind_future(m);
    m.def("close_guard", close_guard);
    m.def(
        "was_interrupted", [] { return bool(py::was_interrupted()); },
        "Of a call that failed: whether by what a signal handler has raised while it waited for a "
        "Tensor.");
    m.def("after_fork", sp_py_guard_after_fork);
}

/* State of the process, and one lock of the interpreter, are taken for granted everywhere. A
 * subinterpreter is refused before nanobind's own entry is called, which replaces its state of the
 * process: then calls in the main interpreter would fail. */
extern "C" NB_EXPORT PyObject *PyInit__core(void);

extern "C" PyObject *PyInit__core(void)
{
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) == 0) return PyInit__core_of_process();
    PyErr_SetString(PyExc_ImportError,
                    "streampool does not work in a subinterpreter: import it in the main one");
    return nullptr;
}
