// SPDX-License-Identifier: MIT
// Reads the CPU quota of control groups: the group from /proc/self/cgroup, its mount from
// mountinfo, then the tightest quota on the way from the group up to the mount. Both versions name
// their files differently and mean the same.
#include "machine/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/mem.h"

enum { LINE_SIZE = 4096, PATH_SIZE = 3 * LINE_SIZE, TEXT_LIMIT = 1 << 20 };

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

// Path of the process's group in the hierarchy that limits CPU time.
static bool find_group(const char *self_cgroup, bool v2, char out_path[LINE_SIZE]) {
    char line[LINE_SIZE];
    while (next_line(&self_cgroup, line)) {
        // A line is "hierarchy:controllers:path". Version 2 is hierarchy 0 without controllers.
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = '\0';
        *path++ = '\0';
        const bool matches =
            v2 ? strcmp(line, "0") == 0 && controllers[0] == '\0' : list_has(controllers, "cpu");
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
static bool parse_mount(char *line, bool v2, struct cgroup_mount *out_mount) {
    enum { MAX_FIELDS = 24, FIELD_ROOT = 3, FIELD_POINT = 4, FIELD_OPTIONAL = 6 };
    char *fields[MAX_FIELDS];
    const size_t count = split_fields(line, fields, MAX_FIELDS);
    size_t dash = FIELD_OPTIONAL;
    while (dash < count && strcmp(fields[dash], "-") != 0)
        ++dash;
    if (dash + 3 >= count) return false;
    const char *type = fields[dash + 1];
    const bool matches = v2 ? strcmp(type, "cgroup2") == 0
                            : strcmp(type, "cgroup") == 0 && list_has(fields[dash + 3], "cpu");
    if (!matches) return false;
    unescape(fields[FIELD_ROOT]);
    unescape(fields[FIELD_POINT]);
    memcpy(out_mount->root, fields[FIELD_ROOT], strlen(fields[FIELD_ROOT]) + 1);
    memcpy(out_mount->point, fields[FIELD_POINT], strlen(fields[FIELD_POINT]) + 1);
    return true;
}

// Falls back to the usual mount points, so that a hidden mountinfo only costs accuracy.
static void find_mount(const char *mountinfo, bool v2, struct cgroup_mount *out_mount) {
    char line[LINE_SIZE];
    while (next_line(&mountinfo, line)) {
        if (parse_mount(line, v2, out_mount)) return;
    }
    strcpy(out_mount->root, "/");
    strcpy(out_mount->point, v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu");
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

// CPUs of a quota and period in microseconds; 0 without a limit. Version 1 writes -1 for none.
static double ratio(double quota, double period) {
    return quota > 0 && period > 0 ? quota / period : 0;
}

// CPUs' worth of time that this one group may use; 0: no limit.
static double limit_of(const char *dir, bool v2) {
    char text[128];
    char *end;
    if (v2) {
        if (!read_words(dir, "cpu.max", text, sizeof(text))) return 0;
        // cpu.max is "QUOTA PERIOD", or "max PERIOD" without a limit: "max" doesn't parse.
        const double quota = strtod(text, &end);
        return end == text ? 0 : ratio(quota, strtod(end, NULL));
    }
    if (!read_words(dir, "cpu.cfs_quota_us", text, sizeof(text))) return 0;
    const double quota = strtod(text, NULL);
    if (!read_words(dir, "cpu.cfs_period_us", text, sizeof(text))) return 0;
    return ratio(quota, strtod(text, NULL));
}

// The smaller of two limits, where 0 means none.
static double tighter(double a, double b) {
    if (a <= 0) return b;
    return b > 0 && b < a ? b : a;
}

// The smallest limit of the group and its ancestors up to the mount point: the kernel enforces each
// of them.
static double limit_of_ancestry(const struct cgroup_view *view, bool v2) {
    char group[LINE_SIZE];
    char dir[PATH_SIZE];
    struct cgroup_mount mount;
    double limit = 0;
    if (!find_group(view->self_cgroup, v2, group)) return 0;
    find_mount(view->mountinfo, v2, &mount);
    const int top = snprintf(dir, sizeof(dir), "%s%s", view->root, mount.point);
    const char *below = below_mount(group, mount.root);
    if (top < 0 || (size_t)top + strlen(below) >= sizeof(dir)) return 0;
    memcpy(dir + top, below, strlen(below) + 1);
    for (;;) {
        limit = tighter(limit, limit_of(dir, v2));
        // The part below the mount is cut component by component; what is left without a slash is
        // the mount point, read already.
        char *slash = strrchr(dir + top, '/');
        if (!slash) return limit;
        *slash = '\0';
    }
}

double cgroup_cpu_limit(const struct cgroup_view *view) {
    if (!view->self_cgroup) return 0;
    // Both versions may be mounted at once, the controller in only one of them.
    return tighter(limit_of_ancestry(view, false), limit_of_ancestry(view, true));
}

double cgroup_cpu_limit_here(void) {
    char *self_cgroup = read_text("/proc/self/cgroup");
    char *mountinfo = read_text("/proc/self/mountinfo");
    const struct cgroup_view view = {"", self_cgroup, mountinfo};
    const double limit = cgroup_cpu_limit(&view);
    ggml_mem_free(mountinfo);
    ggml_mem_free(self_cgroup);
    return limit;
}
