/* SPDX-License-Identifier: Apache-2.0 */
/* Elements and units of memory by their size. */

struct __align__(16) sp_word16 {
    uint64_t part[2];
};

/* Calls function<T>(...) with the element type T of `bytes` bytes. */
#define SP_BY_ELEMENT(bytes, function, ...)                                                        \
    do {                                                                                           \
        if ((bytes) == 4) function<uint32_t>(__VA_ARGS__);                                         \
        else if ((bytes) == 8) function<uint64_t>(__VA_ARGS__);                                    \
        else if ((bytes) == 2) function<uint16_t>(__VA_ARGS__);                                    \
        else function<uint8_t>(__VA_ARGS__);                                                       \
    } while (0)

/* Calls function<T>(...) with the largest unit T whose size divides `bits`. */
#define SP_BY_UNIT(bits, function, ...)                                                            \
    do {                                                                                           \
        if ((bits) % 16 == 0) function<sp_word16>(__VA_ARGS__);                                    \
        else if ((bits) % 4 == 0) function<uint32_t>(__VA_ARGS__);                                 \
        else function<uint8_t>(__VA_ARGS__);                                                       \
    } while (0)
