/* SPDX-License-Identifier: Apache-2.0 */
/* One block of a row; the last strides are 0 or 1. Included by other templates; parameters SP_NAME,
 * a function of two elements, and SP_RESULT, which stay defined. */

static void SP_GLUE(row, SP_NAME)(const SP_ELEMENT *a, int64_t a_step, const SP_ELEMENT *b,
                                  int64_t b_step, SP_RESULT *y, int64_t n)
{
    const SP_ELEMENT a0 = a[0], b0 = b[0];
    if (a_step == 1 && b_step == 1) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(a[i], b[i]);
    } else if (a_step == 1) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(a[i], b0);
    } else if (b_step == 1) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(a0, b[i]);
    } else {
        for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(a0, b0);
    }
}
