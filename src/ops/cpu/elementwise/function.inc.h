/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a function of (x, alpha, beta), with the parameters in the type of x. Included by
 * other templates; parameters SP_NAME, both the kernel and the function, and SP_RESULT, which stays
 * defined. */

sp_status SP_KERNEL(SP_NAME)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_function_constants)
    const SP_ELEMENT *x = (const SP_ELEMENT *)tile->bindings[0] + first;
    SP_RESULT *y = (SP_RESULT *)tile->bindings[1] + first;
    const SP_ELEMENT alpha = (SP_ELEMENT)k->alpha, beta = (SP_ELEMENT)k->beta;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(x[i], alpha, beta);
    return SP_OK;
}

#undef SP_NAME
