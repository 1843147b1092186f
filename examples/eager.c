/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on tensors, one call at a time. */
#include <stdio.h>
#include <stdlib.h>

#include <streampool/ops.h>

/* Ends the program with the library's message if the call failed. */
#define MUST(call) must((call), #call)

static void must(sp_status status, const char *call)
{
    if (status == SP_OK) return;
    fprintf(stderr, "%s: %s: %s\n", call, sp_status_name(status), sp_last_error());
    exit(EXIT_FAILURE); /* NOLINT(concurrency-mt-unsafe): nothing is left to race with */
}

static const sp_device cpu = {0}; /* the zero handle: the default device */

static void call_operators(void)
{
    const float values[6] = {1, 2, 3, -1, -2, -3}, ones[6] = {1, 1, 1, 1, 1, 1};
    sp_tensor x, w, columns, hidden, y, places;
    MUST(sp_tensor_from_host(cpu, SP_F32, 2, (int64_t[]){2, 3}, values, sizeof values, &x));
    MUST(sp_tensor_from_host(cpu, SP_F32, 2, (int64_t[]){3, 2}, ones, sizeof ones, &w));
    MUST(sp_tensor_transpose(w, 0, 1, &columns)); /* a view: nothing is copied */

    MUST(sp_linear(x, columns, (sp_tensor){0}, &hidden)); /* without a bias */
    MUST(sp_relu(hidden, &y));
    MUST(sp_tensor_release(hidden)); /* may still be queued: its memory stays until it has run */

    float result[4];
    MUST(sp_tensor_read(y, result, sizeof result)); /* waits for what wrote y, and only that */
    printf("relu(x w) = [[%g, %g], [%g, %g]]\n", result[0], result[1], result[2], result[3]);

    /* Any operator of docs/operators.md, by its name. */
    const sp_op_attribute axis = {.name = "axis", .type = SP_OP_INT, .i = 1};
    const sp_op_options options = {.attributes = &axis, .attribute_count = 1};
    MUST(sp_op_run("ArgMax", &options, &x, 1, &places, 1));
    if (sp_add(x, w, &hidden) == SP_MISMATCH) printf("misuse: %s\n", sp_last_error());

    const sp_tensor all[] = {x, w, columns, y, places};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) MUST(sp_tensor_release(all[i]));
}

int main(void)
{
    call_operators();
    return EXIT_SUCCESS;
}
