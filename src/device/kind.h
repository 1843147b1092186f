/* SPDX-License-Identifier: Apache-2.0 */
/* The registry of device kinds. A kind is one row: what it is called, how a device of it is opened,
 * and what the layers above have to know of it. They ask for these properties; the name of a kind
 * is known to its own folder and to users.
 *
 * To add a kind: a folder below src/device, its row there, a line in kind.c, and, if it does not
 * run the kernels of the host, a kernel form with its table in ops/device_kernels.c. */
#ifndef SP_DEVICE_KIND_H
#define SP_DEVICE_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

typedef struct sp_dev sp_dev;

/* How many devices of a kind there are, and how they are told apart. */
typedef enum sp_device_numbering {
    SP_DEVICE_SINGLE,     /* one, open as long as the runtime is up: "cpu" */
    SP_DEVICE_UNBOUNDED,  /* each open makes another; the runtime numbers them: "null:2" */
    SP_DEVICE_BY_ORDINAL, /* one for each ordinal of the driver, shared by all who open it: "cuda:0"
                           */
} sp_device_numbering;

/* Which table of kernels runs on devices of a kind. */
typedef enum sp_kernel_form {
    SP_KERNEL_FORM_HOST, /* functions of the host */
    SP_KERNEL_FORM_CUDA, /* entries of CUDA modules */
    SP_KERNEL_FORMS
} sp_kernel_form;

/* A zero is the kind's default; a kind reads what applies to it. */
typedef struct sp_device_open_options {
    uint32_t ordinal;      /* of SP_DEVICE_BY_ORDINAL */
    uint32_t worker_count; /* threads that run kernels of the host */
} sp_device_open_options;

typedef struct sp_device_kind {
    const char *name;
    sp_device_numbering numbering;
    sp_kernel_form kernel_form;
    int32_t dlpack_type; /* DLDeviceType of the device's memory (dlpack.h of DLPack 1.0) */
    /* The fallback: runs the steps for which another device has no kernel. One kind is. */
    bool is_fallback;
    sp_status (*open)(const sp_device_open_options *options, sp_dev **out);
} sp_device_kind;

/* The kind whose one device is the fallback. */
const sp_device_kind *sp__device_kind_fallback(void);

/* What a user's text names: "KIND", or "KIND:N" of a kind by ordinal, where "KIND" is "KIND:0".
 * SP_NOT_FOUND, with the names that there are, for any other text. */
sp_status sp__device_kind_parse(const char *text, const sp_device_kind **kind, uint32_t *ordinal);

/* The device's name before the runtime numbers it: "cpu", "null", "cuda:1". */
void sp__device_kind_name(const sp_device_kind *kind, uint32_t ordinal, char *out, size_t size);

#endif
