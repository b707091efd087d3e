// SPDX-License-Identifier: MIT
// What goes wrong: mistakes of the program's, calls that a test wants to fail or to be dropped, and
// counts of what was called.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "state.h"

namespace fake {

static long n_faults, fail_after = -1, drop_after = -1;
static int fail_code;
static bool lost, dropped;
static const char *failed;

static std::map<std::string, long> &calls() { // by selector
    static std::map<std::string, long> *all = new std::map<std::string, long>();
    return *all;
}
static std::string &drop_name() {
    static std::string *name = new std::string();
    return *name;
}

std::recursive_mutex &lock() {
    static std::recursive_mutex *mutex = new std::recursive_mutex();
    return *mutex;
}

void fault(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("fake Metal: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    ++n_faults;
    if (!getenv("FAKE_METAL_TOLERANT")) abort();
}

bool fails(const char *what) {
    if (lost) return true;
    if (fail_after < 0 || fail_after-- > 0) return false;
    failed = what;
    lost = fail_code == FAKE_METAL_DEVICE_REMOVED;
    return true;
}

bool is_lost() {
    return lost;
}

int code_of_failures() {
    return fail_code;
}

bool drops(selector name) {
    ++calls()[name];
    if (drop_after < 0 || drop_name() != name || drop_after-- > 0) return false;
    return dropped = true;
}

size_t number(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, nullptr, 10) : otherwise;
}

} // namespace fake

using namespace fake;

API void fake_metal_fail(long n, int code) {
    HOLD fail_after = n;
    fail_code = code;
    failed = nullptr;
    lost = false;
}
API const char *fake_metal_failed(void) {
    return failed;
}
API long fake_metal_faults(void) {
    return n_faults;
}
API long fake_metal_calls(const char *name) {
    HOLD return calls()[name];
}
API void fake_metal_drop(const char *name, long n) {
    HOLD drop_after = n;
    drop_name() = name;
    dropped = false;
}
API bool fake_metal_dropped(void) {
    HOLD return dropped;
}
