/* SPDX-License-Identifier: Apache-2.0 */
/* A model and what is known of its inputs and outputs. */
#ifndef SP_PYTHON_MODEL_HPP
#define SP_PYTHON_MODEL_HPP

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <streampool/model.h>

namespace py
{

struct Port {
    std::string name;
    nanobind::object key; /* the name, interned */
    sp_port info;
};

/* The outputs that a run on inputs of certain shapes has. */
struct OutputShapes {
    std::vector<int64_t> key; /* dtype and rank, and the sizes, of each input */
    struct Output {
        sp_dtype dtype;
        nanobind::object shape; /* a tuple */
    };
    std::vector<Output> outputs;
};

enum class ReleaseGil { automatic, always, never };

class Model
{
  public:
    Model(sp_model model, sp_device of, ReleaseGil when);
    ~Model();
    Model(const Model &) = delete;
    Model &operator=(const Model &) = delete;

    /* SP_CLOSED as an exception after close(). */
    sp_model open_handle() const;
    void close();

    /* The index of a name, or -1. */
    static int64_t find(const std::vector<Port> &ports, nanobind::handle name);

    /* Shapes of outputs known from an earlier run, or NULL. Valid until this thread gives up the
     * interpreter's lock; in a free-threaded interpreter entries are never removed or changed. */
    const OutputShapes *find_shapes(const std::vector<int64_t> &key);
    void add_shapes(OutputShapes shapes);

    sp_model handle;
    const sp_device device;
    const ReleaseGil release;
    std::vector<Port> inputs, outputs;
    /* The shapes of outputs follow from values too: the library allocates them. */
    bool is_dynamic = false;

  private:
    std::mutex shapes_lock; /* guards `shapes`; nothing is called with it */
    std::vector<std::unique_ptr<OutputShapes>> shapes;
};

void bind_model(nanobind::module_ &m);

} // namespace py

#endif
