/* SPDX-License-Identifier: Apache-2.0 */
/* Casts from one type to all. Parameters: SP_TYPE; SP_NAME, the kernel; SP_CARRIER. */

ROW(f32, float)
ROW(f64, double)
ROW(f16, uint16_t)
ROW(bf16, uint16_t)
ROW(i8, int8_t)
ROW(i16, int16_t)
ROW(i32, int32_t)
ROW(i64, int64_t)
ROW(u8, uint8_t)
ROW(u16, uint16_t)
ROW(u32, uint32_t)
ROW(u64, uint64_t)
ROW(bool, uint8_t)

sp_status SP_KERNEL(SP_NAME)(const sp_tile *tile)
{
    const sp_cast_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t n = sp_tile_end(tile, 0, k->count) - first;
    const SP_ELEMENT *x = (const SP_ELEMENT *)tile->bindings[0] + first;
    void *y = tile->bindings[1];
    switch ((sp_dtype)k->to) {
        ROW_CASE(SP_F32, f32, float)
        ROW_CASE(SP_F64, f64, double)
        ROW_CASE(SP_F16, f16, uint16_t)
        ROW_CASE(SP_BF16, bf16, uint16_t)
        ROW_CASE(SP_I8, i8, int8_t)
        ROW_CASE(SP_I16, i16, int16_t)
        ROW_CASE(SP_I32, i32, int32_t)
        ROW_CASE(SP_I64, i64, int64_t)
        ROW_CASE(SP_U8, u8, uint8_t)
        ROW_CASE(SP_U16, u16, uint16_t)
        ROW_CASE(SP_U32, u32, uint32_t)
        ROW_CASE(SP_U64, u64, uint64_t)
        ROW_CASE(SP_BOOL, bool, uint8_t)
    case SP_DTYPE_NONE:
        break;
    }
    return SP_OK;
}

#undef SP_CARRIER
#undef SP_NAME
#undef SP_TYPE
