// SPDX-License-Identifier: MIT
// Reads the files of a corpus and runs each as it is and damaged, in a buffer of exactly its
// size, so that a read behind the end is seen by sanitizers.
#include "fuzz/replay.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t replay_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

void replay_exact(replay_input run, const unsigned char *data, size_t size) {
    unsigned char *copy = malloc(size > 0 ? size : 1);
    assert_non_null(copy);
    memcpy(copy, data, size);
    run(copy, size);
    free(copy);
}

size_t replay_folder(const char *corpus, const char *folder, replay_input run,
                     void (*damage)(replay_input run, unsigned char *data, size_t size)) {
    static unsigned char data[REPLAY_MAX_SEED];
    char path[4096];
    size_t n_files = 0;
    snprintf(path, sizeof(path), "%s/%s", corpus, folder);
    DIR *stream = opendir(path);
    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream)) != NULL;) {
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof(path), "%s/%s/%s", corpus, folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        const size_t size = fread(data, 1, sizeof(data), file);
        fclose(file);
        damage(run, data, size);
        ++n_files;
    }
    closedir(stream);
    return n_files;
}
