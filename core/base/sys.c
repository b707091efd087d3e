// SPDX-License-Identifier: MIT
// Files, versions and the other services of ggml.h that only the core has.
#include <time.h>

#include "base/fault.h"
#include "base/status.h"
#include "ggml-commit.h"
#include "ggml-impl.h"
#include "ggml-version.h"

#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
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
    wchar_t wide_name[4096];
    wchar_t wide_mode[16];
    if (!MultiByteToWideChar(CP_UTF8, 0, fname, -1, wide_name, 4096)) return NULL;
    if (!MultiByteToWideChar(CP_UTF8, 0, mode, -1, wide_mode, 16)) return NULL;
    return _wfopen(wide_name, wide_mode);
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
