/* SPDX-License-Identifier: Apache-2.0 */
/* An empty folder as STREAMPOOL_CACHE_DIR, and a look at the files in it. */
#ifndef SP_TESTS_CACHE_FOLDER_H
#define SP_TESTS_CACHE_FOLDER_H

#include <stdint.h>

typedef struct cache_folder {
    char path[64];
    char file[512]; /* what cache_folder_find saw last */
} cache_folder;

cache_folder cache_folder_open(void);
/* Removes the files that are in it, and unsets the variable. */
void cache_folder_close(cache_folder *self);
/* How many files there are in `path`, the folder's own or one below it. */
uint32_t cache_folder_find(cache_folder *self, const char *path);
void cache_folder_clear(cache_folder *self);

#endif
