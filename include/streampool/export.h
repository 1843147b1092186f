/* SPDX-License-Identifier: Apache-2.0 */
/* Linkage of the public API: C names, default visibility. */
#ifndef STREAMPOOL_EXPORT_H
#define STREAMPOOL_EXPORT_H

#if defined(__GNUC__)
#define SP_API __attribute__((visibility("default")))
#else
#define SP_API
#endif

#ifdef __cplusplus
#define SP_EXTERN_C_BEGIN extern "C" {
#define SP_EXTERN_C_END }
#else
#define SP_EXTERN_C_BEGIN
#define SP_EXTERN_C_END
#endif

#endif
