/* SPDX-License-Identifier: Apache-2.0 */
/* A model and what is known of its inputs and outputs. */
#ifndef SP_PYTHON_MODEL_HPP
#define SP_PYTHON_MODEL_HPP

#include <nanobind/nanobind.h>

#include <atomic>
#include <string>
#include <vector>

#include <streampool/model.h>

#include "owned.hpp"

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

/* The outputs of a model by the shapes of its inputs. Every run reads them, without a lock: entries
 * are added, up to a number, and stay as they are until the end of the model. */
class KnownShapes
{
  public:
    ~KnownShapes();
    const OutputShapes *find(const std::vector<int64_t> &key) const;
    void add(OutputShapes shapes);

  private:
    static constexpr size_t most = 64; /* others cost a look by the library */
    nanobind::ft_mutex adding;         /* nothing of Python is called with it */
    /* Those in use come first. Release by add(), acquire by find(). */
    std::atomic<const OutputShapes *> entries[most] = {};
};

enum class ReleaseGil { automatic, always, never };

/* Calls since the last one that was short enough to keep the interpreter's lock. What refuses a run
 * takes its time with the lock held, so most calls of a model whose runs are long do not ask. */
class LongRuns
{
  public:
    bool must_ask() const
    {
        const uint32_t seen = count.load(std::memory_order_relaxed);
        return seen < patience || seen % interval == 0;
    }
    /* Of two threads that count at once one may be lost. */
    void add()
    {
        count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    void forget()
    {
        if (count.load(std::memory_order_relaxed) != 0) count.store(0, std::memory_order_relaxed);
    }

  private:
    static constexpr uint32_t patience = 64, interval = 16;
    std::atomic<uint32_t> count = 0; /* orders nothing */
};

class Model : public Owned<sp_model, sp_model_release>
{
  public:
    Model(sp_model model, ReleaseGil when);

    /* The index of a name, or -1. */
    static int64_t find(const std::vector<Port> &ports, nanobind::handle name);

    const ReleaseGil release;
    /* Constant once the model is made. */
    sp_device device;
    std::vector<Port> inputs, outputs;
    /* The shapes of outputs follow from values too: the library allocates them. Set by any run. */
    std::atomic<bool> is_dynamic = false;
    KnownShapes shapes;
    LongRuns long_runs;
};

void bind_model(nanobind::module_ &m);

} // namespace py

#endif
