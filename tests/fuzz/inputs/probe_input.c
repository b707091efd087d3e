// SPDX-License-Identifier: MIT
// Gives the input to the receiver of a probe helper's frames, or to the reader of the probe
// cache. Where the input asks for it, digests and keys are made right first, so that what lies
// behind them is reached.
#include "fuzz/inputs/probe_input.h"

#include <stdlib.h>
#include <string.h>

#include "base/data/sha256.h"
#include "plugin/probe/cache/probe_cache.h"
#include "plugin/probe/message/probe_protocol.h"

size_t n_results_taken;

static void require(bool condition) {
    if (!condition) abort();
}

static void check_text(const char *text) {
    require(text && strlen(text) <= PROBE_TEXT_MAX);
}

// What was accepted is whole and can be written and read again.
static void check_result(const struct probe_result *result) {
    struct probe_writer writer = {0};
    struct probe_result again;
    check_text(result->message);
    check_text(result->missing);
    require(result->stage <= GGML_PLUGIN_STAGE_READY);
    require(result->n_devices <= PROBE_DEVICES_MAX);
    for (size_t i = 0; i < result->n_devices; ++i) {
        check_text(result->devices[i].name);
        check_text(result->devices[i].description);
        check_text(result->devices[i].device_id);
        require(result->devices[i].name[0] != '\0');
    }
    require(result->n_libraries <= PROBE_LIBRARIES_MAX);
    for (size_t i = 0; i < result->n_libraries; ++i) {
        check_text(result->libraries[i].path);
        require(result->libraries[i].path[0] == '/');
    }
    require(result->n_cpus == 0 || topology_table_valid(result->cpus, result->n_cpus));
    ++n_results_taken;
    probe_result_write(result, &writer);
    if (!writer.failed) {
        require(probe_result_read(writer.data, writer.size, &again) == GGML_HOST_OK);
        require(again.n_devices == result->n_devices && again.status == result->status);
        require(again.n_libraries == result->n_libraries && again.n_cpus == result->n_cpus);
        probe_result_free(&again);
    }
    probe_writer_free(&writer);
}

// --- protocol ------------------------------------------------------------------------------------

static void take_raw(struct probe_receiver *receiver, const unsigned char *data, size_t size,
                     size_t piece) {
    enum ggml_host_status status = GGML_HOST_OK;
    for (size_t at = 0; at < size && status == GGML_HOST_OK; at += piece) {
        const size_t n = size - at < piece ? size - at : piece;
        status = probe_receiver_take(receiver, data + at, n);
    }
}

static void write_hello(struct probe_writer *frames, const uint8_t *key) {
    struct probe_writer payload = {0};
    probe_hello_write(&payload);
    probe_frame_write(frames, key, PROBE_FRAME_HELLO, 0, payload.data, payload.size);
    probe_writer_free(&payload);
}

static void take_frames(struct probe_receiver *receiver, const unsigned char *data, size_t size) {
    enum { HEADER = 3 };
    struct probe_writer frames = {0};
    uint32_t sequence = 1;
    write_hello(&frames, receiver->key);
    while (size >= HEADER) {
        size_t length = data[1] | (size_t)data[2] << 8;
        if (length > size - HEADER) length = size - HEADER;
        probe_frame_write(&frames, receiver->key, (enum probe_frame_kind)data[0], sequence++,
                          data + HEADER, length);
        data += HEADER + length;
        size -= HEADER + length;
    }
    if (!frames.failed) take_raw(receiver, frames.data, frames.size, 1000);
    require(frames.failed || receiver->greeted);
    probe_writer_free(&frames);
}

void run_probe_input(const unsigned char *data, size_t size) {
    struct probe_receiver receiver = {.key = {1, 2, 3}};
    if (size == 0) return;
    if (data[0] % 2 == 0) {
        take_raw(&receiver, data + 1, size - 1, (size_t)data[0] + 1);
    } else {
        take_frames(&receiver, data + 1, size - 1);
    }
    if (receiver.answered) check_result(&receiver.result);
    require(!receiver.ended || receiver.answered);
    require(!receiver.answered || receiver.greeted);
    probe_receiver_free(&receiver);
}

// --- cache ---------------------------------------------------------------------------------------

static const struct probe_cache_key key = {
    .path = "/opt/ggml-plugins/ggml-some.so",
    .file = {.device = 1, .inode = 2, .size = 3, .mtime_ns = 4, .ctime_ns = 5},
    .system = {7, 7, 7},
};

enum { MAGIC_SIZE = 8, HEADER_SIZE = MAGIC_SIZE + GGML_SHA256_SIZE };

// An entry of an empty failure, of which everything up to the terms is kept: the content's sum, the
// time and the result behind them have a known size.
static void write_terms(struct probe_writer *out_entry) {
    struct probe_result result = {.status = GGML_HOST_FAILED, .message = "", .missing = ""};
    struct probe_writer tail = {0};
    probe_entry_write(&key, 0, &result, out_entry);
    probe_put_bytes(&tail, key.content, GGML_SHA256_SIZE);
    probe_put_u64(&tail, 0);
    probe_result_write(&result, &tail);
    if (!out_entry->failed && !tail.failed) out_entry->size -= tail.size;
    probe_writer_free(&tail);
}

static void fix_digest(struct probe_writer *entry) {
    struct ggml_sha256 sum;
    if (entry->failed || entry->size < HEADER_SIZE) return;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, entry->data + HEADER_SIZE, entry->size - HEADER_SIZE);
    ggml_sha256_final(&sum, entry->data + MAGIC_SIZE);
}

void run_cache_input(const unsigned char *data, size_t size) {
    struct probe_writer entry = {0};
    struct probe_result result;
    uint8_t content[GGML_SHA256_SIZE];
    int64_t probed_at;
    if (size == 0) return;
    const int mode = data[0] % 3;
    if (mode > 0) write_terms(&entry);
    if (mode == 1 && !entry.failed) entry.size = HEADER_SIZE;
    probe_put_bytes(&entry, data + 1, size - 1);
    if (mode > 0) fix_digest(&entry);
    if (!entry.failed && entry.size > 0) {
        const enum ggml_host_status status =
            probe_entry_read(entry.data, entry.size, &key, content, &probed_at, &result);
        require(status == GGML_HOST_OK || result.n_devices == 0);
        if (status == GGML_HOST_OK) check_result(&result);
        probe_result_free(&result);
    }
    probe_writer_free(&entry);
}
