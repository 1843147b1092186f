/* SPDX-License-Identifier: Apache-2.0 */
/* A call from Python that computes for a given time and does nothing else: what is left of a run
 * when the library costs nothing. */
#include <nanobind/nanobind.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace nb = nanobind;

namespace
{

/* As python/src/call.cpp: shorter runs keep the interpreter's lock. */
constexpr int64_t short_run_ns = 7'000;

/* Steps that each follow from the one before. Not a clock: a thread that waits for a processor must
 * not spend its time meanwhile. */
void spin_steps(int64_t steps)
{
    uint64_t x = 1;
    for (int64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        asm volatile("" : "+r"(x));
    }
}

/* Of an undisturbed thread: the most of some loops. */
double measured_steps_per_ns()
{
    using clock = std::chrono::steady_clock;
    constexpr int64_t steps = 20'000;
    double most = 0;
    for (int i = 0; i < 200; i++) {
        const auto begin = clock::now();
        spin_steps(steps);
        const std::chrono::duration<double, std::nano> taken = clock::now() - begin;
        most = std::max(most, static_cast<double>(steps) / taken.count());
    }
    return most;
}

const double steps_per_ns = measured_steps_per_ns();

void spin(int64_t ns)
{
    const auto steps = static_cast<int64_t>(static_cast<double>(ns) * steps_per_ns);
    if (ns < short_run_ns) return spin_steps(steps);
    const nb::gil_scoped_release unlocked;
    spin_steps(steps);
}

} // namespace

NB_MODULE(_spin, m)
{
    m.def("spin", spin, nb::arg("ns"),
          "Computes for so many nanoseconds of an undisturbed thread.");
}
