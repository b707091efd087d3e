// SPDX-License-Identifier: MIT
// Reads limits of control groups: the group from /proc/self/cgroup, its mount from mountinfo, then
// the tightest limit on the way from the group up to the mount. Both versions name their files
// differently and mean the same.
#include "machine/cgroup.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"

enum { LINE_SIZE = 4096, PATH_SIZE = 3 * LINE_SIZE, TEXT_LIMIT = 1 << 20 };

// Version 1 writes such a number of bytes where there is no limit.
#define LEAST_UNLIMITED 0x1p62

// What is limited.
struct resource {
    const char *controller; // of version 1, which has a hierarchy for each
    // Of this one group, INFINITY: no limit.
    double (*limit_of)(const char *dir, bool v2);
};

// --- text

// Copies the next line and advances; a line that doesn't fit is returned empty. false at the end.
static bool next_line(const char **text, char out_line[LINE_SIZE]) {
    out_line[0] = '\0';
    if (!*text || **text == '\0') return false;
    const char *end = strchr(*text, '\n');
    const size_t length = end ? (size_t)(end - *text) : strlen(*text);
    if (length < LINE_SIZE) {
        memcpy(out_line, *text, length);
        out_line[length] = '\0';
    }
    *text += length + (end ? 1 : 0);
    return true;
}

// Whether a comma-separated list has the item.
static bool list_has(const char *list, const char *item) {
    const size_t length = strlen(item);
    while (list) {
        const char *end = strchr(list, ',');
        const size_t n = end ? (size_t)(end - list) : strlen(list);
        if (n == length && memcmp(list, item, n) == 0) return true;
        list = end ? end + 1 : NULL;
    }
    return false;
}

// Replaces \ooo, as mountinfo writes blanks and newlines.
static void unescape(char *text) {
    char *out = text;
    for (const char *p = text; *p; ++out) {
        const bool is_octal = p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' &&
                              p[2] <= '7' && p[3] >= '0' && p[3] <= '7';
        *out = is_octal ? (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0')) : *p;
        p += is_octal ? 4 : 1;
    }
    *out = '\0';
}

// Whole file, at most TEXT_LIMIT bytes, freed by the caller; NULL on failure.
// A file larger than the limit is cut: files of /proc report no size.
static char *read_text(const char *path) {
    size_t used = 0;
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen(path, "rb");
    char *text = file ? ggml_mem_alloc(TEXT_LIMIT + 1) : NULL;
    if (text) used = fread(text, 1, TEXT_LIMIT, file);
    if (text) text[used] = '\0';
    if (file) fclose(file);
    return text;
}

// --- location of the group

// Path of the process's group in the controller's hierarchy.
static bool find_group(const char *self_cgroup, const char *controller, bool v2,
                       char out_path[LINE_SIZE]) {
    char line[LINE_SIZE];
    while (next_line(&self_cgroup, line)) {
        // A line is "hierarchy:controllers:path". Version 2 is hierarchy 0 without controllers.
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = '\0';
        *path++ = '\0';
        const bool matches = v2 ? strcmp(line, "0") == 0 && controllers[0] == '\0'
                                : list_has(controllers, controller);
        if (!matches) continue;
        memcpy(out_path, path, strlen(path) + 1);
        return true;
    }
    return false;
}

struct cgroup_mount {
    char point[LINE_SIZE];
    char root[LINE_SIZE]; // of the hierarchy, as far as it is mounted there
};

// Splits at blanks, in place; returns the number of fields.
static size_t split_fields(char *line, char **out_fields, size_t capacity) {
    size_t count = 0;
    for (char *p = line; p && count < capacity; ++count) {
        out_fields[count] = p;
        p = strchr(p, ' ');
        if (p) *p++ = '\0';
    }
    return count;
}

// Parses a line of mountinfo: fixed fields, then optional ones up to "-", then type, source and
// options. false if it is another file system.
static bool parse_mount(char *line, const char *controller, bool v2,
                        struct cgroup_mount *out_mount) {
    enum { MAX_FIELDS = 24, FIELD_ROOT = 3, FIELD_POINT = 4, FIELD_OPTIONAL = 6 };
    char *fields[MAX_FIELDS];
    const size_t count = split_fields(line, fields, MAX_FIELDS);
    size_t dash = FIELD_OPTIONAL;
    while (dash < count && strcmp(fields[dash], "-") != 0)
        ++dash;
    if (dash + 3 >= count) return false;
    const char *type = fields[dash + 1];
    const bool matches = v2 ? strcmp(type, "cgroup2") == 0
                            : strcmp(type, "cgroup") == 0 && list_has(fields[dash + 3], controller);
    if (!matches) return false;
    unescape(fields[FIELD_ROOT]);
    unescape(fields[FIELD_POINT]);
    memcpy(out_mount->root, fields[FIELD_ROOT], strlen(fields[FIELD_ROOT]) + 1);
    memcpy(out_mount->point, fields[FIELD_POINT], strlen(fields[FIELD_POINT]) + 1);
    return true;
}

// Falls back to the usual mount points, so that a hidden mountinfo only costs accuracy.
static void find_mount(const char *mountinfo, const char *controller, bool v2,
                       struct cgroup_mount *out_mount) {
    char line[LINE_SIZE];
    while (next_line(&mountinfo, line)) {
        if (parse_mount(line, controller, v2, out_mount)) return;
    }
    strcpy(out_mount->root, "/");
    snprintf(out_mount->point, sizeof(out_mount->point), "/sys/fs/cgroup%s%s", v2 ? "" : "/",
             v2 ? "" : controller);
}

// The group's path below the mount point; "" is the mount point itself, which is also used for a
// group outside the mounted part of the hierarchy.
static const char *below_mount(const char *group, const char *mount_root) {
    const size_t length = strlen(mount_root);
    // A path with ".." is a group outside this process's cgroup namespace.
    if (strstr(group, "/..") || strcmp(group, "/") == 0) return "";
    if (strcmp(mount_root, "/") == 0) return group;
    if (strncmp(group, mount_root, length) != 0) return "";
    return group[length] == '/' ? group + length : "";
}

// --- limits

static bool read_words(const char *dir, const char *name, char *out_text, size_t size) {
    char path[PATH_SIZE + 32];
    out_text[0] = '\0';
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = ggml_fault(GGML_FAULT_OPEN) ? NULL : fopen(path, "rb");
    if (!file) return false;
    const size_t n = fread(out_text, 1, size - 1, file);
    out_text[n] = '\0';
    fclose(file);
    return n > 0;
}

// CPUs of a quota and period in microseconds. Version 1 writes -1 for no limit.
static double ratio(double quota, double period) {
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

// CPUs' worth of time.
static double cpu_limit_of(const char *dir, bool v2) {
    char text[128];
    char *end;
    if (v2) {
        if (!read_words(dir, "cpu.max", text, sizeof(text))) return INFINITY;
        // cpu.max is "QUOTA PERIOD", or "max PERIOD" without a limit: "max" doesn't parse.
        const double quota = strtod(text, &end);
        return end == text ? INFINITY : ratio(quota, strtod(end, NULL));
    }
    if (!read_words(dir, "cpu.cfs_quota_us", text, sizeof(text))) return INFINITY;
    const double quota = strtod(text, NULL);
    if (!read_words(dir, "cpu.cfs_period_us", text, sizeof(text))) return INFINITY;
    return ratio(quota, strtod(text, NULL));
}

// The number after the key at the beginning of a line; 0 if there is none.
static double number_of(const char *text, const char *key) {
    const size_t length = strlen(key);
    while (text && (strncmp(text, key, length) != 0 || text[length] != ' ')) {
        text = strchr(text, '\n');
        if (text) ++text;
    }
    return text ? strtod(text + length, NULL) : 0;
}

// Bytes that may still be taken. Files that are cached count as used, and are dropped before a
// process is ended. All figures include groups below: in memory.stat of version 1 under names of
// their own.
static double memory_left_of(const char *dir, bool v2) {
    char text[LINE_SIZE];
    char *end;
    const char *limit_name = v2 ? "memory.max" : "memory.limit_in_bytes";
    if (!read_words(dir, limit_name, text, sizeof(text))) return INFINITY;
    const double limit = strtod(text, &end);
    if (end == text || limit >= LEAST_UNLIMITED) return INFINITY;
    if (!read_words(dir, v2 ? "memory.current" : "memory.usage_in_bytes", text, sizeof(text)))
        return limit;
    const double usage = strtod(text, NULL);
    read_words(dir, "memory.stat", text, sizeof(text));
    const double cached = number_of(text, v2 ? "inactive_file" : "total_inactive_file") +
                          number_of(text, v2 ? "active_file" : "total_active_file");
    const double used = usage > cached ? usage - cached : 0;
    return limit > used ? limit - used : 0;
}

static double lesser(double a, double b) {
    return a < b ? a : b;
}

// The smallest limit of the group and its ancestors up to the mount point: the kernel enforces each
// of them.
static double limit_of_ancestry(const struct cgroup_view *view, const struct resource *resource,
                                bool v2) {
    char group[LINE_SIZE];
    char dir[PATH_SIZE];
    struct cgroup_mount mount;
    double limit = INFINITY;
    if (!find_group(view->self_cgroup, resource->controller, v2, group)) return INFINITY;
    find_mount(view->mountinfo, resource->controller, v2, &mount);
    const int top = snprintf(dir, sizeof(dir), "%s%s", view->root, mount.point);
    const char *below = below_mount(group, mount.root);
    if (top < 0 || (size_t)top + strlen(below) >= sizeof(dir)) return INFINITY;
    memcpy(dir + top, below, strlen(below) + 1);
    for (;;) {
        limit = lesser(limit, resource->limit_of(dir, v2));
        // The part below the mount is cut component by component; what is left without a slash is
        // the mount point, read already.
        char *slash = strrchr(dir + top, '/');
        if (!slash) return limit;
        *slash = '\0';
    }
}

// Both versions may be mounted at once, the controller in only one of them.
static double tightest(const struct cgroup_view *view, const struct resource *resource) {
    if (!view->self_cgroup) return INFINITY;
    return lesser(limit_of_ancestry(view, resource, false),
                  limit_of_ancestry(view, resource, true));
}

static double tightest_here(const struct resource *resource) {
    char *self_cgroup = read_text("/proc/self/cgroup");
    char *mountinfo = read_text("/proc/self/mountinfo");
    const struct cgroup_view view = {"", self_cgroup, mountinfo};
    const double limit = tightest(&view, resource);
    ggml_mem_free(mountinfo);
    ggml_mem_free(self_cgroup);
    return limit;
}

// --- what they are asked for

static const struct resource cpu = {"cpu", cpu_limit_of};
static const struct resource memory = {"memory", memory_left_of};

static double cpus(double limit) {
    return limit < INFINITY ? limit : 0;
}

static uint64_t bytes(double left) {
    return left < LEAST_UNLIMITED ? (uint64_t)left : UINT64_MAX;
}

double cgroup_cpu_limit(const struct cgroup_view *view) {
    return cpus(tightest(view, &cpu));
}

double cgroup_cpu_limit_here(void) {
    return cpus(tightest_here(&cpu));
}

uint64_t cgroup_memory_left(const struct cgroup_view *view) {
    return bytes(tightest(view, &memory));
}

uint64_t cgroup_memory_left_here(void) {
    return bytes(tightest_here(&memory));
}
