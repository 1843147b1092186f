/* SPDX-License-Identifier: Apache-2.0 */
/* The remainder of two floats is a float. */

SP_CUDA_FUNCTION sp_f32 sp_fmod(sp_f32 a, sp_f32 b)
{
    return (float)sp_fmod(sp_f64(a.v), sp_f64(b.v)).v;
}
