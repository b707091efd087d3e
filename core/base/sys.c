// SPDX-License-Identifier: MIT
// Files, versions and the other services of ggml.h that only the core has.
#include <time.h>

#include "base/fault.h"
#include "base/status.h"
#include "ggml-commit.h"
#include "ggml-impl.h"
#include "ggml-version.h"

#ifdef _WIN32
#include <errno.h>

#include "base/mem.h"
#include "base/win32.h"
#endif

const char *ggml_version(void) {
    return GGML_HOST_VERSION;
}

const char *ggml_commit(void) {
    return GGML_HOST_COMMIT;
}

void ggml_time_init(void) {
}

int64_t ggml_time_ms(void) {
    return ggml_time_us() / 1000;
}

// Cycles of clock(): processor time of the process, not of the machine's cycle counter.
int64_t ggml_cycles(void) {
    return clock();
}

int64_t ggml_cycles_per_ms(void) {
    return CLOCKS_PER_SEC / 1000;
}

FILE *ggml_fopen(const char *fname, const char *mode) {
    if (!fname || !mode) {
        ggml_fail(GGML_HOST_INVALID_ARGUMENT, "ggml_fopen: file name or mode is NULL");
        return NULL;
    }
    if (ggml_fault(GGML_FAULT_OPEN)) return NULL;
#ifdef _WIN32
    wchar_t *wide_name = win32_wide_path(fname, 0);
    wchar_t *wide_mode = win32_wide(mode, 0);
    FILE *file = NULL;
    errno = EINVAL;
    if (wide_name && wide_mode) file = _wfopen(wide_name, wide_mode);
    ggml_mem_free(wide_mode);
    ggml_mem_free(wide_name);
    return file;
#else
    return fopen(fname, mode);
#endif
}

const char *ggml_status_to_string(enum ggml_status status) {
    switch (status) {
    case GGML_STATUS_ALLOC_FAILED: return "GGML status: error (failed to allocate memory)";
    case GGML_STATUS_FAILED: return "GGML status: error (operation failed)";
    case GGML_STATUS_SUCCESS: return "GGML status: success";
    case GGML_STATUS_ABORTED: return "GGML status: warning (operation aborted)";
    }
    return "GGML status: unknown";
}
