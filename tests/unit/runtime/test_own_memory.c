/* SPDX-License-Identifier: Apache-2.0 */
/* Storages and tensors in memory that the host cannot reach: commands of the device work, and
 * operations that need a host pointer fail with a message that says why. */
#include <streampool/dlpack.h>

#include <string.h>

#include "device/null/null.h"
#include "runtime/storage.h"
#include "runtime_fixture.h"
#include "support/own_memory.h"

/* The device's bytes, not through a host pointer. */
static const unsigned char *device_bytes(sp_storage handle) SP_NO_LOCK_ANALYSIS
{
    const sp_rt_storage *storage = sp__storage_peek(handle);
    CHECK(storage->memory->host == NULL);
    return (const unsigned char *)storage->memory->address + storage->offset;
}

TEST(commands_find_the_bytes_by_the_devices_address)
{
    runtime_begin();
    const sp_device device = open_own_memory(false);
    const sp_stream stream = new_stream_on(device);
    const sp_storage from = new_storage_on(device, 4096, false);
    const sp_storage to = new_storage_on(device, 4096, false);
    unsigned char wanted[4096];
    memset(wanted, 7, sizeof wanted);
    fill(stream, from, 7);
    fill(stream, to, 1);
    copy(stream, to, from);
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_EQ_MEM(device_bytes(to), wanted, sizeof wanted);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

TEST(a_host_access_is_refused_and_leaves_the_storage_as_it_was)
{
    static const sp_access accesses[] = {SP_READ, SP_WRITE, SP_READ_WRITE};
    runtime_begin();
    const sp_device device = open_own_memory(false);
    const sp_stream stream = new_stream_on(device);
    const sp_storage storage = new_storage_on(device, 64, false);
    for (size_t i = 0; i < SP_COUNT_OF(accesses); i++) {
        void *data = &data;
        CHECK_UNREACHABLE(sp_storage_host_begin(storage, accesses[i], &data));
        CHECK(data == NULL);
        CHECK_STATUS(sp_storage_host_end(storage, accesses[i]), SP_INVALID);
        fill(stream, storage, 3); /* waits for no access */
        CHECK_OK(sp_stream_synchronize(stream));
    }
    CHECK_EQ_INT(device_bytes(storage)[63], 3);
    CHECK_OK(sp_storage_release(storage));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

TEST(memory_of_the_host_is_not_adopted_nor_given_out)
{
    runtime_begin();
    const sp_device device = open_own_memory(false);
    char bytes[64];
    sp_storage storage;
    void *pinned = NULL;
    CHECK_STATUS(sp_storage_adopt(device, bytes, sizeof bytes, NULL, &storage), SP_UNSUPPORTED);
    CHECK_MESSAGE("cannot use memory that it did not allocate");
    CHECK_STATUS(sp_host_alloc(device, 64, &pinned), SP_UNSUPPORTED);
    CHECK(pinned == NULL);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

TEST(a_tensors_elements_are_neither_written_nor_read_by_the_host)
{
    static const int64_t shape[] = {4};
    static const float values[4] = {1, 2, 3, 4};
    float got[4] = {0};
    sp_tensor tensor;
    runtime_begin();
    const sp_device device = open_own_memory(false);
    CHECK_UNREACHABLE(
        sp_tensor_from_host(device, SP_F32, 1, shape, values, sizeof values, &tensor));
    CHECK_EQ_U64(tensor.bits, 0);
    CHECK_OK(sp_tensor_create(device, SP_F32, 1, shape, &tensor));
    CHECK_UNREACHABLE(sp_tensor_write(tensor, values, sizeof values));
    CHECK_UNREACHABLE(sp_tensor_read(tensor, got, sizeof got));
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

/* The device kind declares that its memory is the host's. */
TEST(a_tensor_is_not_exported_as_memory_of_the_host)
{
    static const int64_t shape[] = {4};
    sp_dlpack_managed *managed;
    sp_tensor tensor;
    runtime_begin();
    const sp_device device = open_own_memory(false);
    const sp_stream stream = new_stream_on(device);
    CHECK_OK(sp_tensor_create(device, SP_F32, 1, shape, &tensor));
    CHECK_UNREACHABLE(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
    CHECK(managed == NULL);
    CHECK_UNREACHABLE(sp_tensor_to_dlpack(tensor, stream, &managed));
    CHECK(managed == NULL);
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

TEST(no_bytes_are_reached_everywhere)
{
    runtime_begin();
    sp_storage storage;
    void *data = &data;
    CHECK_OK(sp_storage_adopt(CPU, NULL, 0, NULL, &storage));
    CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
    CHECK(data == NULL);
    CHECK_OK(sp_storage_host_end(storage, SP_READ));
    CHECK_OK(sp_storage_release(storage));
    runtime_end();
}

TEST(faults_are_injected_there_too)
{
    runtime_begin();
    const sp_device device = open_own_memory(false);
    CHECK_OK(sp__null_check(rt_device(device)->dev));
    CHECK_STATUS(sp__null_check(rt_device(CPU)->dev), SP_INVALID);
    CHECK_OK(sp_device_close(device));
    runtime_end();
}

TEST_MAIN
