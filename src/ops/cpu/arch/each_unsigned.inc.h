/* SPDX-License-Identifier: Apache-2.0 */
/* Includes a template once for each unsigned integer type (typed.h). Parameter: SP_TEXT, the
 * template's name in quotes; undefined at the end. */

#define SP_TYPE u8
#include SP_TEXT
#define SP_TYPE u16
#include SP_TEXT
#define SP_TYPE u32
#include SP_TEXT
#define SP_TYPE u64
#include SP_TEXT

#undef SP_TEXT
