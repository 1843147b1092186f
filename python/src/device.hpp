/* SPDX-License-Identifier: Apache-2.0 */
/* Devices and their memory. */
#ifndef SP_PYTHON_DEVICE_HPP
#define SP_PYTHON_DEVICE_HPP

#include <nanobind/nanobind.h>

#include <streampool/device.h>

namespace py
{

/* Numbers by name, as the stubs show them. */
using Counters = nanobind::typed<nanobind::dict, nanobind::str, int>;

/* A handle; devices stay open until they are closed. */
struct Device {
    sp_device handle;
};

/* Of a Device, or of a name: "null" is one device for all that name it. */
sp_device device_of(nanobind::handle device);

void bind_device(nanobind::module_ &m);

} // namespace py

#endif
