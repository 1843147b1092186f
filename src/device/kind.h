/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of device kinds. A kind is one row: its name, how a device of it is opened, and the
 * properties that upper layers need. They test these properties; the name of a kind is known to its
 * own folder and to users only.
 *
 * To add a kind: a folder below src/device, its row there, a line in kind.c, and, if it does not
 * run host kernels, a kernel form with its table in ops/device_kernels.c. */
#ifndef SP_DEVICE_KIND_H
#define SP_DEVICE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

typedef struct sp_dev sp_dev;

/* How many devices of a kind there are, and how they are numbered. */
typedef enum sp_device_numbering {
    SP_DEVICE_SINGLE,     /* one, open while the runtime is up: "cpu" */
    SP_DEVICE_UNBOUNDED,  /* each open creates another; the runtime numbers them: "null:2" */
    SP_DEVICE_BY_ORDINAL, /* one for each ordinal of the driver, shared by all openers: "cuda:0" */
} sp_device_numbering;

/* The table of kernels that runs on devices of a kind. */
typedef enum sp_kernel_form {
    SP_KERNEL_FORM_HOST, /* functions of the host */
    SP_KERNEL_FORM_CUDA, /* entries of CUDA modules */
    SP_KERNEL_FORMS
} sp_kernel_form;

/* Zero: the kind's default. A kind ignores options that do not apply to it. */
typedef struct sp_device_open_options {
    uint32_t ordinal;      /* for SP_DEVICE_BY_ORDINAL */
    uint32_t worker_count; /* threads that run host kernels */
} sp_device_open_options;

typedef struct sp_device_kind {
    const char *name;
    sp_device_numbering numbering;
    sp_kernel_form kernel_form;
    int32_t dlpack_type; /* DLDeviceType of the device's memory (dlpack.h of DLPack 1.0) */
    /* The fallback: runs the steps for which another device has no kernel. Exactly one kind. */
    bool is_fallback;
    sp_status (*open)(const sp_device_open_options *options, sp_dev **out);
} sp_device_kind;

/* The kind whose single device is the fallback. */
const sp_device_kind *sp__device_kind_fallback(void);

/* Parses a device name: "KIND", or, of a kind by ordinal, "KIND:N", where "KIND" is "KIND:0".
 * SP_NOT_FOUND, with the known names, for any other text. */
sp_status sp__device_kind_parse(const char *text, const sp_device_kind **kind, uint32_t *ordinal);

/* The device's name before the runtime numbers it: "cpu", "null", "cuda:1". */
void sp__device_kind_name(const sp_device_kind *kind, uint32_t ordinal, char *out, size_t size);

#endif
