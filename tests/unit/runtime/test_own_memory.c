/* SPDX-License-Identifier: Apache-2.0 */
/* Storages and tensors in memory that the host cannot reach: commands of the device work, the host
 * accesses mirrors, and what needs a host pointer of the memory fails with a message. */
#include <streampool/dlpack.h>

#include <string.h>

#include "device/null/null.h"
#include "own_memory_fixture.h"

TEST(commands_find_the_bytes_by_the_devices_address)
{
    own_memory o = own_memory_begin();
    const sp_storage from = new_storage_on(o.device, 4096, false);
    const sp_storage to = new_storage_on(o.device, 4096, false);
    unsigned char wanted[4096];
    memset(wanted, 7, sizeof wanted);
    fill(o.stream, from, 7);
    fill(o.stream, to, 1);
    copy(o.stream, to, from);
    CHECK_OK(sp_stream_synchronize(o.stream));
    CHECK_EQ_MEM(device_bytes(to), wanted, sizeof wanted);
    CHECK_OK(sp_storage_release(from));
    CHECK_OK(sp_storage_release(to));
    own_memory_end(&o);
}

/* Of a broken device. */
TEST(without_pinned_memory_an_access_is_refused_and_leaves_the_storage_as_it_was)
{
    static const sp_access accesses[] = {SP_READ, SP_WRITE, SP_READ_WRITE};
    runtime_begin();
    const sp_device device = open_own_memory(true);
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

TEST(adopted_memory_of_the_device_is_accessed_as_its_own)
{
    own_memory o = own_memory_begin();
    static unsigned char bytes[64]; /* the device's, as the simulated one has it */
    sp_storage storage;
    CHECK_OK(sp_storage_adopt(o.device, bytes, sizeof bytes, NULL, &storage));
    fill(o.stream, storage, 9);
    CHECK_EQ_INT(first_other(storage, 9), -1);
    put_bytes(storage, 0, 64, 4);
    CHECK_OK(sp_stream_synchronize(o.stream));
    CHECK_EQ_INT(first_other(storage, 4), -1);
    bytes[5] = 77; /* its owner writes: no mirror is kept */
    CHECK_EQ_INT(first_other(storage, 4), 5);
    CHECK_OK(sp_storage_release(storage));
    own_memory_end(&o);
}

TEST(pinned_memory_is_the_hosts)
{
    own_memory o = own_memory_begin();
    unsigned char *pinned = NULL;
    CHECK_OK(sp_host_alloc(o.device, 64, (void **)&pinned));
    memset(pinned, 1, 64);
    CHECK(sp_host_is_pinned(pinned, 64));
    CHECK_OK(sp_host_free(pinned));
    own_memory_end(&o);
}

TEST(a_tensors_elements_are_written_and_read_by_the_host)
{
    static const int64_t shape[] = {2, 3};
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    const float column[2] = {-1, -2};
    const float wanted[6] = {1, -1, 3, 4, -2, 6};
    float got[6] = {0};
    sp_tensor tensor, view;
    own_memory o = own_memory_begin();
    CHECK_OK(sp_tensor_from_host(o.device, SP_F32, 2, shape, values, sizeof values, &tensor));
    CHECK_OK(sp_tensor_slice(tensor, 1, 1, 1, 1, &view));
    CHECK_OK(sp_tensor_write(view, column, sizeof column));
    CHECK_OK(sp_tensor_read(tensor, got, sizeof got));
    CHECK_EQ_MEM(got, wanted, sizeof wanted);
    CHECK_OK(sp_tensor_read(view, got, sizeof column));
    CHECK_EQ_MEM(got, column, sizeof column);
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(tensor));
    own_memory_end(&o);
}

/* The device kind declares that its memory is the host's. */
TEST(a_tensor_is_not_exported_as_memory_of_the_host)
{
    static const int64_t shape[] = {4};
    sp_dlpack_managed *managed;
    sp_tensor tensor;
    own_memory o = own_memory_begin();
    CHECK_OK(sp_tensor_create(o.device, SP_F32, 1, shape, &tensor));
    CHECK_UNREACHABLE(sp_tensor_to_dlpack(tensor, (sp_stream){0}, &managed));
    CHECK(managed == NULL);
    CHECK_UNREACHABLE(sp_tensor_to_dlpack(tensor, o.stream, &managed));
    CHECK(managed == NULL);
    CHECK_OK(sp_tensor_release(tensor));
    own_memory_end(&o);
}

TEST(no_bytes_are_reached_everywhere)
{
    own_memory o = own_memory_begin();
    const sp_device devices[] = {CPU, o.device};
    for (int i = 0; i < 2; i++) {
        sp_storage storage;
        void *data = &data;
        CHECK_OK(sp_storage_adopt(devices[i], NULL, 0, NULL, &storage));
        CHECK_OK(sp_storage_host_begin(storage, SP_READ, &data));
        CHECK(data == NULL);
        CHECK_OK(sp_storage_host_end(storage, SP_READ));
        CHECK_OK(sp_storage_release(storage));
    }
    own_memory_end(&o);
}

TEST(faults_are_injected_there_too)
{
    own_memory o = own_memory_begin();
    CHECK_OK(sp__null_check(o.dev));
    CHECK_STATUS(sp__null_check(rt_device(CPU)->dev), SP_INVALID);
    own_memory_end(&o);
}

TEST_MAIN
