// SPDX-License-Identifier: MIT
// What Linux tells of processors and GPUs: /proc/stat, the driver's gpu_busy_percent, and what
// drivers write into the fdinfo of processes that have a device open (drm-usage-stats in the
// kernel's documentation). Other systems tell nothing here.
#define _POSIX_C_SOURCE 200809L
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <ctype.h>
#include <dirent.h>
#endif

enum { PATH_SIZE = 1024, LINE_SIZE = 256 };

#ifdef __linux__
void watch_sample_cpu(const char *root, struct watch_sample *out_sample) {
    char path[PATH_SIZE];
    unsigned long long user, nice, system, idle, wait;
    *out_sample = (struct watch_sample){.busy = -1};
    snprintf(path, sizeof(path), "%s/proc/stat", root);
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fscanf(file, "cpu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait) == 5) {
        out_sample->busy_time = user + nice + system;
        out_sample->all_time = user + nice + system + idle + wait;
    }
    fclose(file);
}

static double read_busy(const char *root, const char *address) {
    char path[PATH_SIZE];
    int percent = -1;
    snprintf(path, sizeof(path), "%s/sys/bus/pci/devices/%s/gpu_busy_percent", root, address);
    FILE *file = fopen(path, "r");
    if (!file) return -1;
    const bool read = fscanf(file, "%d", &percent) == 1;
    fclose(file);
    return read && percent >= 0 && percent <= 100 ? percent / 100.0 : -1;
}

// What one open file of a process says.
struct client {
    char address[32];
    unsigned long long id;
    uint64_t bytes, busy_ns;
};

static uint64_t bytes_of(const char *text) {
    char *unit;
    const uint64_t number = strtoull(text, &unit, 10);
    while (*unit == ' ')
        ++unit;
    return number * (strncmp(unit, "KiB", 3) == 0   ? 1024u
                     : strncmp(unit, "MiB", 3) == 0 ? 1024u * 1024
                                                    : 1u);
}

static void read_key(struct client *client, const char *line) {
    const char *value = strchr(line, ':');
    if (!value) return;
    const size_t length = (size_t)(value++ - line);
    char key[64];
    snprintf(key, sizeof(key), "%.*s", (int)length, line);
    while (isspace((unsigned char)*value))
        ++value;
    if (strcmp(key, "drm-pdev") == 0) {
        snprintf(client->address, sizeof(client->address), "%.*s", (int)strcspn(value, "\n"),
                 value);
    } else if (strcmp(key, "drm-client-id") == 0) {
        client->id = strtoull(value, NULL, 10);
    } else if (strncmp(key, "drm-engine-capacity-", 20) == 0) {
        return;
    } else if (strncmp(key, "drm-engine-", 11) == 0) {
        const uint64_t ns = strtoull(value, NULL, 10);
        if (ns > client->busy_ns) client->busy_ns = ns;
    } else if (strncmp(key, "drm-resident-", 13) == 0 || strncmp(key, "drm-memory-", 11) == 0) {
        // Memory of the device, which may be told under both names.
        const char *region = strchr(key + 4, '-') + 1;
        const uint64_t bytes = bytes_of(value);
        if ((strncmp(region, "vram", 4) == 0 || strncmp(region, "local", 5) == 0) &&
            bytes > client->bytes)
            client->bytes = bytes;
    }
}

static bool read_client(const char *path, struct client *out_client) {
    char line[LINE_SIZE];
    FILE *file = fopen(path, "r");
    *out_client = (struct client){0};
    if (!file) return false;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, "drm-", 4) == 0) read_key(out_client, line);
    fclose(file);
    return out_client->address[0] != '\0';
}

// Sums what a process has open of the device. A client that several descriptors stand for is
// counted once.
static bool read_process(const char *root, const char *pid, const char *address,
                         struct watch_process *out_process) {
    enum { MOST = 16 };
    unsigned long long seen[MOST];
    int n_seen = 0;
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/proc/%s/fdinfo", root, pid);
    DIR *files = opendir(path);
    if (!files) return false;
    *out_process = (struct watch_process){.pid = strtol(pid, NULL, 10)};
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        struct client client;
        bool known = false;
        snprintf(path, sizeof(path), "%s/proc/%s/fdinfo/%.32s", root, pid, entry->d_name);
        if (!isdigit((unsigned char)entry->d_name[0]) || !read_client(path, &client)) continue;
        if (strcmp(client.address, address) != 0) continue;
        for (int i = 0; i < n_seen; ++i)
            known |= seen[i] == client.id;
        if (known || n_seen == MOST) continue;
        seen[n_seen++] = client.id;
        out_process->bytes += client.bytes;
        out_process->busy_ns += client.busy_ns;
    }
    closedir(files);
    return n_seen > 0;
}

static void read_name(const char *root, struct watch_process *process) {
    char path[PATH_SIZE];
    snprintf(path, sizeof(path), "%s/proc/%ld/comm", root, process->pid);
    FILE *file = fopen(path, "r");
    if (!file) return;
    if (fgets(process->name, sizeof(process->name), file))
        process->name[strcspn(process->name, "\n")] = '\0';
    fclose(file);
}

// Keeps the largest.
static void add_process(struct watch_sample *sample, const struct watch_process *process) {
    int at = sample->n_processes;
    while (at > 0 && sample->processes[at - 1].bytes < process->bytes)
        --at;
    if (sample->n_processes == WATCH_MAX_PROCESSES) ++sample->n_more;
    if (at == WATCH_MAX_PROCESSES) return;
    if (sample->n_processes < WATCH_MAX_PROCESSES) ++sample->n_processes;
    memmove(&sample->processes[at + 1], &sample->processes[at],
            (size_t)(sample->n_processes - 1 - at) * sizeof(*process));
    sample->processes[at] = *process;
}

void watch_sample_gpu(const char *root, const char *address, uint64_t now_ns,
                      struct watch_sample *out_sample) {
    char path[PATH_SIZE];
    *out_sample = (struct watch_sample){.busy = read_busy(root, address), .all_time = now_ns};
    snprintf(path, sizeof(path), "%s/proc", root);
    DIR *processes = opendir(path);
    if (!processes) return;
    for (const struct dirent *entry; (entry = readdir(processes)) != NULL;) {
        struct watch_process process;
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        if (!read_process(root, entry->d_name, address, &process)) continue;
        read_name(root, &process);
        out_sample->busy_time += process.busy_ns;
        add_process(out_sample, &process);
    }
    closedir(processes);
    if (out_sample->n_processes == 0) out_sample->all_time = 0; // not known
}
#else
void watch_sample_cpu(const char *root, struct watch_sample *out_sample) {
    (void)root;
    *out_sample = (struct watch_sample){.busy = -1};
}

void watch_sample_gpu(const char *root, const char *address, uint64_t now_ns,
                      struct watch_sample *out_sample) {
    (void)root;
    (void)address;
    (void)now_ns;
    *out_sample = (struct watch_sample){.busy = -1};
}
#endif
