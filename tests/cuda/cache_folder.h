/* SPDX-License-Identifier: Apache-2.0 */
/* An empty folder as STREAMPOOL_CACHE_DIR, and the files that appear in it. */
#ifndef SP_TESTS_CACHE_FOLDER_H
#define SP_TESTS_CACHE_FOLDER_H

#include <stdint.h>

typedef struct cache_folder {
    char path[64];
    char file[512]; /* the last file that cache_folder_find found */
} cache_folder;

cache_folder cache_folder_open(void);
/* Removes the folder with its files, and unsets the variable. */
void cache_folder_close(cache_folder *self);
/* The number of files in `path`, the folder or one below it. */
uint32_t cache_folder_find(cache_folder *self, const char *path);
void cache_folder_clear(cache_folder *self);

#endif
