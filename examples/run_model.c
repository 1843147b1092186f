/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a model, from the root of the repository. README.md shows the marked part. */
/* README: begin */
#include <stdio.h>
#include <streampool/model.h>

static float picture[128 * 128 * 3], scores[512]; /* zeros: a grey picture */

int main(void)
{
    sp_model model;
    const sp_host_tensor in = {.data = picture,
                               .bytes = sizeof picture,
                               .dtype = SP_F32,
                               .rank = 4,
                               .shape = {1, 128, 128, 3}};
    sp_host_tensor out = {.name = "Identity:0", .data = scores, .bytes = sizeof scores};
    sp_status status = sp_model_load("examples/blazeface/model.onnx", NULL, &model);
    if (status == SP_OK) status = sp_model_run(model, &in, 1, &out, 1); /* from any thread */
    if (status == SP_OK) printf("%s: the first score is %g\n", out.name, (double)scores[0]);
    if (status != SP_OK) fprintf(stderr, "%s\n", sp_last_error());
    sp_model_release(model);
    return status != SP_OK;
}
/* README: end */
