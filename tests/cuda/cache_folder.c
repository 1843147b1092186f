/* SPDX-License-Identifier: Apache-2.0 */
#include "cache_folder.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/option.h"
#include "support/test.h"

cache_folder cache_folder_open(void)
{
    cache_folder folder = {.path = "/tmp/streampool-test-XXXXXX"};
    if (mkdtemp(folder.path) == NULL) abort();
    setenv("STREAMPOOL_CACHE_DIR", folder.path, 1);
    sp__option_reset();
    return folder;
}

uint32_t cache_folder_find(cache_folder *self, const char *path)
{
    uint32_t count = 0;
    DIR *dir = opendir(path);
    if (dir == NULL) return 0;
    const struct dirent *entry;
    while ((entry = readdir(dir)) !=
           NULL) { /* NOLINT(concurrency-mt-unsafe): a stream of our own */
        if (entry->d_name[0] == '.') continue;
        count++;
        snprintf(self->file, sizeof self->file, "%s/%s", path, entry->d_name);
    }
    closedir(dir);
    return count;
}

void cache_folder_clear(cache_folder *self)
{
    while (cache_folder_find(self, self->path) > 0) CHECK_EQ_INT(remove(self->file), 0);
}

void cache_folder_close(cache_folder *self)
{
    cache_folder_clear(self);
    CHECK_EQ_INT(rmdir(self->path), 0);
    unsetenv("STREAMPOOL_CACHE_DIR");
    sp__option_reset();
}
