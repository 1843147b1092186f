/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a function of one element. Included by other templates; parameter SP_NAME, both the
 * kernel and the function. */

sp_status SP_KERNEL(SP_NAME)(const sp_tile *tile)
{
    SP_FLAT_TILE(sp_flat_constants)
    const SP_ELEMENT *x = (const SP_ELEMENT *)tile->bindings[0] + first;
    SP_ELEMENT *y = (SP_ELEMENT *)tile->bindings[1] + first;
    SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = SP_NAME(x[i]);
    return SP_OK;
}

#undef SP_NAME
