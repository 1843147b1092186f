/* SPDX-License-Identifier: Apache-2.0 */
/* Capsules of DLPack in both directions: the versioned struct of DLPack 1.x, which the library has,
 * and the older one without version and flags, which NumPy 1 and PyTorch until 2.8 exchange. */
#include "dlpack.hpp"

#include <streampool/dlpack.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "arguments.hpp"
#include "device.hpp"
#include "errors.hpp"
#include "future.hpp"
#include "gil.hpp"
#include "stream.hpp"
#include "tensor.hpp"

namespace nb = nanobind;

namespace py
{

namespace
{

/* DLManagedTensor of DLPack before 1.0. */
struct OldManaged {
    sp_dlpack_view dl_tensor;
    void *manager_ctx;
    void (*deleter)(OldManaged *self);
};

/* A producer's tensor. The library ends it on one of its threads, where the producer's deleter must
 * not run, since it takes the interpreter's lock: so it is pushed, and deleted by a drain. */
struct Imported : Completed {
    sp_dlpack_managed managed;    /* what the library has */
    sp_dlpack_managed *versioned; /* the producer's; one of the two */
    OldManaged *old;
    sp_py_completion_list *list;
    uint64_t bytes; /* of the elements */
};

/* Of what is in the memory list: pushes add, drains subtract. Orders nothing. process-wide: as the
 * list */
std::atomic<uint64_t> waiting_bytes;
/* So much does not wait for a drain of many at a time: other libraries may need it. */
constexpr uint64_t most_waiting_bytes = uint64_t{64} << 20;

bool is_much_waiting()
{
    return waiting_bytes.load(std::memory_order_relaxed) >= most_waiting_bytes;
}

void delete_imported(Imported *imported)
{
    waiting_bytes.fetch_sub(imported->bytes, std::memory_order_relaxed);
    if (imported->versioned != nullptr) {
        if (imported->versioned->deleter != nullptr) {
            imported->versioned->deleter(imported->versioned);
        }
    } else if (imported->old->deleter != nullptr) {
        imported->old->deleter(imported->old);
    }
    sp_py_completion_list_release(imported->list);
    delete imported;
}

void release_imported(Completed *completed)
{
    delete_imported(static_cast<Imported *>(completed));
}

void push_imported(sp_dlpack_managed *managed)
{
    auto *imported = static_cast<Imported *>(managed->manager_ctx);
    sp_py_completion_list *list = imported->list;
    waiting_bytes.fetch_add(imported->bytes, std::memory_order_relaxed);
    sp_py_completion_list_retain(list);
    sp_py_completion_list_push(list, &imported->link); /* it may have been deleted after this */
    sp_py_completion_list_release(list);
    if (is_much_waiting()) sp_py_completion_list_wake(default_list()->list);
}

/* The names say whether a consumer has taken the tensor: of several that try, one gets it. */
struct Capsule {
    nb::handle object;
    bool is_versioned;

    const char *name() const
    {
        return is_versioned ? "dltensor_versioned" : "dltensor";
    }
    const char *used_name() const
    {
        return is_versioned ? "used_dltensor_versioned" : "used_dltensor";
    }
    void *take()
    {
        const nb::ft_object_guard guard(object);
        is_versioned = PyCapsule_IsValid(object.ptr(), "dltensor_versioned");
        if (!PyCapsule_IsValid(object.ptr(), name())) {
            raise_value("the capsule has no DLPack tensor, or was used before");
        }
        void *pointer = PyCapsule_GetPointer(object.ptr(), name());
        PyCapsule_SetName(object.ptr(), used_name());
        return pointer;
    }
    void give_back() const
    {
        PyCapsule_SetName(object.ptr(), name());
    }
};

/* Where the memory is, and the stream behind which it is ready; None: the cpu, ready now. */
sp_dlpack_import_options options_of(nb::handle device, nb::handle stream)
{
    sp_dlpack_import_options options = {};
    if (!device.is_none()) options.device = device_of(device);
    if (!stream.is_none()) {
        options.ready_after = instance_of<Stream>(stream, "stream", "a Stream").handle;
    }
    return options;
}

uint64_t bytes_of(const sp_dlpack_view &view)
{
    uint64_t bytes = (uint64_t{view.dtype.bits} * view.dtype.lanes + 7) / 8;
    for (int32_t i = 0; i < view.ndim; i++) bytes *= static_cast<uint64_t>(view.shape[i]);
    return bytes;
}

TensorObject import_capsule(nb::handle object, nb::handle device, nb::handle stream)
{
    /* This thread may be faster than the drainer, which waits for the interpreter's lock. */
    if (is_much_waiting()) memory_list()->take(nb::list());
    const sp_dlpack_import_options options = options_of(device, stream);
    Capsule capsule = {object, false};
    auto imported = std::make_unique<Imported>();
    if (!PyCapsule_CheckExact(object.ptr())) {
        raise_kind("the result of __dlpack__()", "a capsule", object);
    }
    void *pointer = capsule.take();
    imported->release = release_imported;
    imported->managed.version = {SP_DLPACK_MAJOR, SP_DLPACK_MINOR};
    imported->managed.manager_ctx = imported.get();
    imported->managed.deleter = push_imported;
    if (capsule.is_versioned) {
        imported->versioned = static_cast<sp_dlpack_managed *>(pointer);
        imported->managed.version = imported->versioned->version;
        imported->managed.flags = imported->versioned->flags;
        imported->managed.dl_tensor = imported->versioned->dl_tensor;
    } else {
        imported->old = static_cast<OldManaged *>(pointer);
        imported->managed.dl_tensor = imported->old->dl_tensor;
    }
    sp_tensor handle;
    const sp_status status =
        unlocked_wait([&] { return sp_tensor_from_dlpack(&imported->managed, &options, &handle); });
    if (status != SP_OK) capsule.give_back();
    check(status);
    imported->bytes = bytes_of(imported->managed.dl_tensor);
    imported->list = memory_list()->list;
    sp_py_completion_list_retain(imported->list);
    (void)imported.release();
    return tensor_object(handle);
}

/* ---- to a consumer ---- */

void delete_old(OldManaged *self)
{
    auto *managed = static_cast<sp_dlpack_managed *>(self->manager_ctx);
    managed->deleter(managed);
    delete self;
}

/* Of a capsule that no consumer has used. */
void end_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        auto *managed =
            static_cast<sp_dlpack_managed *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, "dltensor")) {
        auto *old = static_cast<OldManaged *>(PyCapsule_GetPointer(capsule, "dltensor"));
        old->deleter(old);
    }
}

/* (type, id), as __dlpack_device__ returns it: of a GPU by its name, cuda:ID. */
nb::tuple dlpack_device(const Tensor &tensor)
{
    sp_storage_info storage;
    sp_device_info info;
    const sp_tensor_info of = tensor.info();
    check(sp_device_get_info(of.device, &info));
    check(sp_storage_get_info(of.storage, &storage));
    if (strcmp(info.kind, "cuda") != 0) return nb::make_tuple(SP_DLPACK_CPU, 0);
    const char *colon = strchr(info.name, ':');
    const long ordinal = colon != nullptr ? strtol(colon + 1, nullptr, 10) : 0;
    const bool is_pinned = storage.address != nullptr;
    return nb::make_tuple(is_pinned ? SP_DLPACK_CUDA_HOST : SP_DLPACK_CUDA, ordinal);
}

bool is_on_gpu(const Tensor &tensor)
{
    return nb::cast<int>(dlpack_device(tensor)[0]) == SP_DLPACK_CUDA;
}

/* The consumer's stream of a tensor on a GPU, as the protocol numbers it: 1 and 2 are the default
 * streams, which have these handles in the driver, too. */
bool cuda_stream_of(const Tensor &tensor, nb::handle stream, void **out)
{
    if (stream.is_none() || !is_on_gpu(tensor)) return false;
    const int64_t number = integer_of(stream, "stream");
    if (number == 0 || number < -1)
        raise_value("stream is no CUDA stream: 1 is the default stream");
    *out = reinterpret_cast<void *>(number);
    return number != -1;
}

/* Without a stream the elements are ready when the call returns. */
sp_dlpack_managed *export_tensor(const Tensor &tensor, nb::handle stream)
{
    sp_dlpack_managed *managed;
    void *native = nullptr;
    const bool has_stream = cuda_stream_of(tensor, stream, &native);
    check(unlocked_wait([&] {
        return has_stream ? sp_tensor_to_dlpack_cuda(tensor.handle, native, &managed)
                          : sp_tensor_to_dlpack(tensor.handle, {}, &managed);
    }));
    return managed;
}

/* Ends an exported tensor that no capsule has. */
struct EndExported {
    template <typename Managed> void operator()(Managed *managed) const
    {
        managed->deleter(managed);
    }
};

template <typename Managed> using Exported = std::unique_ptr<Managed, EndExported>;

template <typename Managed> nb::any capsule_of(Exported<Managed> managed, const char *name)
{
    PyObject *capsule = PyCapsule_New(managed.get(), name, end_capsule);
    if (capsule == nullptr) throw nb::python_error();
    (void)managed.release();
    return nb::steal<nb::any>(capsule);
}

nb::any export_capsule(const Tensor &tensor, bool is_versioned, nb::handle stream)
{
    Exported<sp_dlpack_managed> managed(export_tensor(tensor, stream));
    if (is_versioned) return capsule_of(std::move(managed), "dltensor_versioned");
    if ((managed->flags & SP_DLPACK_READ_ONLY) != 0) {
        PyErr_SetString(PyExc_BufferError, "a frozen tensor is read-only, which a consumer of "
                                           "DLPack before 1.0 is not told");
        throw nb::python_error();
    }
    Exported<OldManaged> old(new OldManaged{managed->dl_tensor, managed.get(), delete_old});
    (void)managed.release();
    return capsule_of(std::move(old), "dltensor");
}

/* Of the newest version that a consumer takes. */
int64_t major_of(nb::handle max_version)
{
    if (max_version.is_none()) return 0;
    if (!PyTuple_Check(max_version.ptr())) {
        raise_kind("max_version", "a tuple (major, minor)", max_version);
    }
    if (PyTuple_Size(max_version.ptr()) < 2) {
        raise_type("max_version is a tuple (major, minor); one with less was given");
    }
    return integer_of(PyTuple_GetItem(max_version.ptr(), 0), "the major version");
}

/* A TypeError that a signal handler has raised during the thread's last export. A consumer takes it
 * for that of a producer before DLPack 1.0, and asks again without max_version. */
class KeptTypeError
{
  public:
    /* Of the thread: an object in the dictionary that Python has for it. */
    static void keep(PyObject *error)
    {
        PyDict_SetItemString(of_thread(), key, error);
        PyErr_Clear(); /* what the dictionary may have failed with */
    }
    /* Throws it, if there is one, to a call that is such a second one. */
    static void leave(bool is_second)
    {
        nb::object error = nb::borrow(PyDict_GetItemString(of_thread(), key));
        if (!error.is_valid()) return;
        PyDict_DelItemString(of_thread(), key);
        if (!is_second) return;
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
        throw nb::python_error();
    }

  private:
    static constexpr const char *key = "streampool.type_error";
    static PyObject *of_thread()
    {
        PyObject *dict = PyThreadState_GetDict(); /* borrowed */
        if (dict == nullptr) throw std::bad_alloc();
        return dict;
    }
};

/* The protocol's method. */
nb::any dlpack(const Tensor &tensor, nb::handle stream, nb::handle max_version,
               nb::handle dl_device, nb::handle copy)
{
    if (!dl_device.is_none() && !dlpack_device(tensor).equal(dl_device)) {
        PyErr_SetString(PyExc_BufferError, "a tensor is exported to the device that it is on");
        throw nb::python_error();
    }
    if (!copy.is_none() && truth_of(copy)) {
        sp_tensor handle;
        const sp_tensor_info info = tensor.info();
        check(unlocked_wait([&] {
            return sp_tensor_create(info.device, info.dtype, info.rank, info.shape, &handle);
        }));
        const nb::object copied = tensor_object(handle);
        check(unlocked_wait([&] { return sp_tensor_copy(handle, tensor.handle); }));
        return dlpack(nb::cast<const Tensor &>(copied), stream, max_version, dl_device, nb::none());
    }
    KeptTypeError::leave(max_version.is_none());
    try {
        return export_capsule(tensor, major_of(max_version) >= 1, stream);
    } catch (nb::python_error &error) {
        const bool is_handlers = was_interrupted() && error.matches(PyExc_TypeError);
        if (is_handlers && !max_version.is_none()) KeptTypeError::keep(error.value().ptr());
        throw;
    }
}

} // namespace

void bind_dlpack(nb::module_ &m, nb::class_<Tensor> &c)
{
    c.def(
        "__dlpack__", dlpack, nb::kw_only(), nb::arg("stream") = nb::none(),
        nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
        nb::arg("copy") = nb::none(),
        "A capsule over the tensor's memory, ready to be read and written; on a GPU ready for what "
        "the CUDA stream with the number `stream` does next.");
    c.def("__dlpack_device__", dlpack_device);
    m.def("import_dlpack", import_capsule, nb::arg("capsule").none(),
          nb::arg("device") = nb::none(), nb::arg("stream") = nb::none(),
          "A tensor over the memory of a capsule on a device, ready behind a stream of ours.");
}

} // namespace py
