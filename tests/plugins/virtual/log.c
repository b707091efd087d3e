// SPDX-License-Identifier: MIT
// The record of calls: each gets a ticket, and the times when it was called, began and ended;
// bounded, and shared by all devices.
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "internal.h"

enum { MAX_RECORDS = 1 << 20 };

static struct {
    pthread_mutex_t mutex;
    struct virtual_record *records;
    size_t n_records, capacity;
    uint64_t first_ticket; // of records[0]
    size_t n_violations;
} book = {.mutex = PTHREAD_MUTEX_INITIALIZER, .first_ticket = 1};

uint64_t log_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool has_room(void) {
    if (book.n_records < book.capacity) return true;
    const size_t capacity = book.capacity ? 2 * book.capacity : 1024;
    if (capacity > MAX_RECORDS) return false;
    struct virtual_record *records = ggml_aligned_malloc(capacity * sizeof(*records));
    if (!records) return false;
    if (book.n_records) memcpy(records, book.records, book.n_records * sizeof(*records));
    ggml_aligned_free(book.records, book.capacity * sizeof(*records));
    book.records = records;
    book.capacity = capacity;
    return true;
}

uint64_t log_add(struct virtual_record record) {
    uint64_t ticket = 0;
    record.called_ns = log_now();
    pthread_mutex_lock(&book.mutex);
    if (record.call == VIRTUAL_CALL_VIOLATION) book.n_violations++;
    if (has_room()) {
        ticket = book.first_ticket + book.n_records;
        book.records[book.n_records++] = record;
    }
    pthread_mutex_unlock(&book.mutex);
    return ticket;
}

// Under the mutex; NULL once the log was cleared.
static struct virtual_record *find(uint64_t ticket) {
    const bool present = ticket >= book.first_ticket && ticket - book.first_ticket < book.n_records;
    return present ? &book.records[ticket - book.first_ticket] : NULL;
}

void log_begin(uint64_t ticket) {
    pthread_mutex_lock(&book.mutex);
    struct virtual_record *record = find(ticket);
    if (record) record->begin_ns = log_now();
    pthread_mutex_unlock(&book.mutex);
}

void log_end(uint64_t ticket, enum ggml_status status) {
    pthread_mutex_lock(&book.mutex);
    struct virtual_record *record = find(ticket);
    if (record) {
        record->end_ns = log_now();
        record->status = status;
    }
    pthread_mutex_unlock(&book.mutex);
}

void log_once(enum virtual_call call, int device, uint32_t stream, uint64_t bytes,
              const char *text) {
    struct virtual_record record = {
        .call = call, .device = device, .peer = -1, .stream = stream, .bytes = bytes};
    snprintf(record.text, sizeof(record.text), "%s", text);
    record.begin_ns = record.end_ns = log_now();
    log_add(record);
}

void log_violation(int device, const char *format, ...) {
    char text[sizeof(((struct virtual_record *)0)->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    log_once(VIRTUAL_CALL_VIOLATION, device, 0, 0, text);
    ggml_sdk_fail(GGML_HOST_INVALID_ARGUMENT, "VIRTUAL%d: %s", device, text);
}

void log_clear(void) {
    pthread_mutex_lock(&book.mutex);
    book.first_ticket += book.n_records;
    book.n_records = 0;
    book.n_violations = 0;
    pthread_mutex_unlock(&book.mutex);
}

size_t log_count(void) {
    pthread_mutex_lock(&book.mutex);
    const size_t count = book.n_records;
    pthread_mutex_unlock(&book.mutex);
    return count;
}

bool log_get(size_t i, struct virtual_record *out_record) {
    *out_record = (struct virtual_record){0};
    pthread_mutex_lock(&book.mutex);
    const bool present = i < book.n_records;
    if (present) *out_record = book.records[i];
    pthread_mutex_unlock(&book.mutex);
    return present;
}

size_t log_violations(void) {
    pthread_mutex_lock(&book.mutex);
    const size_t count = book.n_violations;
    pthread_mutex_unlock(&book.mutex);
    return count;
}

void log_free(void) {
    log_clear();
    ggml_aligned_free(book.records, book.capacity * sizeof(*book.records));
    book.records = NULL;
    book.capacity = 0;
}
