// SPDX-License-Identifier: MIT
// Opens hwloc at run time, so that no program has to be linked with it: all functions of the
// list or none, of the major version whose headers this was built with. It is never closed
// again.
#include <stddef.h>
#include <string.h>

#include "base/dl/dl.h"
#include "machine/topology/hwloc_calls.h"

// The number is that of the binary interface of every hwloc 2.
#define HWLOC_LIBRARY "libhwloc.so.15"

static const struct {
    const char *symbol;
    size_t offset;
} rows[] = {
#define HWLOC_ROW(name) {"hwloc_" #name, offsetof(struct hwloc_calls, name)},
#include "machine/topology/hwloc_list.inl"
};

const struct hwloc_calls *hwloc_calls_open(void) {
    static struct hwloc_calls calls;
    struct dl_library *library = dl_open(HWLOC_LIBRARY, NULL, 0);
    if (!library) return NULL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        void *symbol = dl_symbol(library, rows[i].symbol);
        if (!symbol) goto fail;
        // The members are function pointers of one size: a row's offset is where its address is
        // stored.
        memcpy((char *)&calls + rows[i].offset, &symbol, sizeof(symbol));
    }
    // The upper 16 bits are major and minor version; within one major version of the library's name
    // the inline functions and structs of the headers must match as well.
    if (calls.get_api_version() >> 16 != HWLOC_API_VERSION >> 16) goto fail;
    return &calls;
fail:
    dl_close(library);
    return NULL;
}
