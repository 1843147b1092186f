/* SPDX-License-Identifier: Apache-2.0 */
/* Includes a template once for each signed integer type (typed.h). Parameter: SP_TEXT, the
 * template's name in quotes; undefined at the end. */

#define SP_TYPE i8
#include SP_TEXT
#define SP_TYPE i16
#include SP_TEXT
#define SP_TYPE i32
#include SP_TEXT
#define SP_TYPE i64
#include SP_TEXT

#undef SP_TEXT
