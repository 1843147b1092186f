/* SPDX-License-Identifier: Apache-2.0 */
#include "peer_case.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "failure.h"
#include "text.h"

/* The file: a head, a record for each input, then for each output, then names and data. Written and
 * read by processes of one program, so that structs are stored as they are. */
typedef struct case_head {
    uint64_t input_count, output_count;
} case_head;

typedef struct case_record {
    sp_host_tensor tensor; /* its pointers are not valid */
    uint64_t name_at, data_at;
} case_record;

static sp_status arrays_allocate(peer_case *self)
{
    self->inputs = calloc((size_t)self->input_count + 1, sizeof *self->inputs);
    self->outputs = calloc((size_t)self->output_count + 1, sizeof *self->outputs);
    if (self->inputs != NULL && self->outputs != NULL) return SP_OK;
    return fail(SP_OUT_OF_MEMORY, "no memory for the tensors of another library");
}

sp_status peer_case_make(const model_runner *runner, const char *path, peer_case *out)
{
    *out = (peer_case){
        .path = path, .input_count = runner->inputs.count, .output_count = runner->output_count};
    TRY(arrays_allocate(out));
    for (uint32_t i = 0; i < out->input_count; i++) {
        out->inputs[i] = runner->inputs.tensors[i];
        out->inputs[i].name = runner->inputs.list[i].port.name;
    }
    for (uint32_t i = 0; i < out->output_count; i++) {
        sp_port port;
        CALL(sp_model_get_output(runner->model, i, &port));
        out->outputs[i] = runner->expected[i];
        out->outputs[i].name = port.name;
    }
    return SP_OK;
}

void peer_case_free(peer_case *self)
{
    if (self->mapped != NULL) munmap(self->mapped, self->mapped_bytes);
    free(self->inputs);
    free(self->outputs);
    *self = (peer_case){0};
}

/* ---- the file ---- */

static sp_host_tensor *tensor_at(const peer_case *self, uint64_t index)
{
    return index < self->input_count ? &self->inputs[index]
                                     : &self->outputs[index - self->input_count];
}

static uint64_t tensor_count(const peer_case *self)
{
    return (uint64_t)self->input_count + self->output_count;
}

static uint64_t align(uint64_t at)
{
    return (at + SP_HOST_TENSOR_ALIGNMENT - 1) / SP_HOST_TENSOR_ALIGNMENT *
           SP_HOST_TENSOR_ALIGNMENT;
}

/* Places names and data behind the record, from `at` on. Returns the end. */
static uint64_t record_place(const sp_host_tensor *tensor, uint64_t at, case_record *out)
{
    *out = (case_record){.tensor = *tensor, .name_at = at};
    out->data_at = align(at + strlen(tensor->name) + 1);
    return align(out->data_at + tensor->bytes);
}

static uint64_t records_end(const peer_case *self)
{
    return align(sizeof(case_head) + tensor_count(self) * sizeof(case_record));
}

static void case_copy(const peer_case *self, char *file)
{
    const case_head head = {self->input_count, self->output_count};
    uint64_t at = records_end(self);
    memcpy(file, &head, sizeof head);
    for (uint64_t i = 0; i < tensor_count(self); i++) {
        const sp_host_tensor *tensor = tensor_at(self, i);
        case_record record;
        at = record_place(tensor, at, &record);
        memcpy(file + sizeof head + i * sizeof record, &record, sizeof record);
        memcpy(file + record.name_at, tensor->name, strlen(tensor->name) + 1);
        if (tensor->bytes > 0) memcpy(file + record.data_at, tensor->data, tensor->bytes);
    }
}

sp_status peer_case_write(const peer_case *self, int file)
{
    uint64_t bytes = records_end(self);
    for (uint64_t i = 0; i < tensor_count(self); i++) {
        case_record record;
        bytes = record_place(tensor_at(self, i), bytes, &record);
    }
    const int error = posix_fallocate(file, 0, (off_t)bytes);
    if (error != 0) {
        return fail(SP_OUT_OF_MEMORY, "no memory for %llu bytes of tensors of another library: %s",
                    (unsigned long long)bytes, show_error(error).text);
    }
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return fail(SP_OUT_OF_MEMORY, "the tensors cannot be mapped");
    case_copy(self, memory);
    munmap(memory, bytes);
    return SP_OK;
}

static void tensors_find(peer_case *self)
{
    char *file = self->mapped;
    for (uint64_t i = 0; i < tensor_count(self); i++) {
        case_record record;
        memcpy(&record, file + sizeof(case_head) + i * sizeof record, sizeof record);
        sp_host_tensor *tensor = tensor_at(self, i);
        *tensor = record.tensor;
        tensor->name = file + record.name_at;
        tensor->data = file + record.data_at;
    }
}

/* Private: inputs may be written by the other library without an effect on others. */
sp_status peer_case_read(int file, const char *path, peer_case *out)
{
    struct stat info;
    case_head head;
    *out = (peer_case){.path = path};
    if (fstat(file, &info) != 0 || (size_t)info.st_size < sizeof head) {
        return fail(SP_IO, "the tensors of the model are missing");
    }
    out->mapped_bytes = (size_t)info.st_size;
    void *memory = mmap(NULL, out->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) return fail(SP_OUT_OF_MEMORY, "the tensors cannot be mapped");
    out->mapped = memory;
    memcpy(&head, memory, sizeof head);
    out->input_count = (uint32_t)head.input_count;
    out->output_count = (uint32_t)head.output_count;
    TRY(arrays_allocate(out));
    tensors_find(out);
    return SP_OK;
}
