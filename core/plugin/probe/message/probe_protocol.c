// SPDX-License-Identifier: MIT
// Wire format of helper messages. Both sides may be of different builds, and a plugin may write to
// the pipe: magic numbers and a version identify the speaker, and each frame has a digest over its
// bytes and a key from the request.
#include "plugin/probe/message/probe_protocol.h"

#include <string.h>

#include "base/status.h"

#define REQUEST_MAGIC UINT32_C(0x51524247)
#define FRAME_MAGIC UINT32_C(0x46524247)

enum { REQUEST_FIXED_SIZE = PROBE_REQUEST_SIZE - PROBE_KEY_SIZE };

// --- request -------------------------------------------------------------------------------------

// Stores a number in little-endian order, whatever the machine.
static void store(unsigned char *out_bytes, uint64_t value, size_t size) {
    for (size_t i = 0; i < size; ++i)
        out_bytes[i] = (unsigned char)(value >> 8 * i);
}

// Layout: magic, version, limits, the parent, identity of the plugin's file, sandbox, key.
void probe_request_write(const struct probe_request *request,
                         unsigned char out_bytes[PROBE_REQUEST_SIZE]) {
    memset(out_bytes, 0, PROBE_REQUEST_SIZE);
    store(out_bytes, REQUEST_MAGIC, 4);
    store(out_bytes + 4, PROBE_PROTOCOL_VERSION, 4);
    store(out_bytes + 8, request->memory_limit, 8);
    store(out_bytes + 16, request->cpu_seconds, 4);
    store(out_bytes + 20, request->parent, 4);
    store(out_bytes + 24, request->file.device, 8);
    store(out_bytes + 32, request->file.inode, 8);
    store(out_bytes + 40, request->file.size, 8);
    store(out_bytes + 48, (uint64_t)request->file.mtime_ns, 8);
    store(out_bytes + 56, (uint64_t)request->file.ctime_ns, 8);
    store(out_bytes + 64, request->sandbox, 4);
    memcpy(out_bytes + REQUEST_FIXED_SIZE, request->key, PROBE_KEY_SIZE);
}

// Parses a request; false if magic or protocol version differ, which means a helper of another
// build.
bool probe_request_read(const unsigned char bytes[PROBE_REQUEST_SIZE],
                        struct probe_request *out_request) {
    struct probe_reader reader = {.data = bytes, .size = PROBE_REQUEST_SIZE};
    memset(out_request, 0, sizeof(*out_request));
    if (probe_get_u32(&reader) != REQUEST_MAGIC) return false;
    if (probe_get_u32(&reader) != PROBE_PROTOCOL_VERSION) return false;
    out_request->memory_limit = probe_get_u64(&reader);
    out_request->cpu_seconds = probe_get_u32(&reader);
    out_request->parent = probe_get_u32(&reader);
    out_request->file = probe_file_id_read(&reader);
    out_request->sandbox = probe_get_u32(&reader) != 0;
    reader.at = REQUEST_FIXED_SIZE;
    memcpy(out_request->key, probe_get_bytes(&reader, PROBE_KEY_SIZE), PROBE_KEY_SIZE);
    return true;
}

// --- frames --------------------------------------------------------------------------------------

// Digest of a frame: SHA-256 over key, header without digest, and payload. Only the request has the
// key, so that what a plugin writes can't pass for a frame.
static void digest_frame(const uint8_t *key, const unsigned char *fixed, const void *payload,
                         size_t size, uint8_t out_digest[GGML_SHA256_SIZE]) {
    struct ggml_sha256 sum;
    ggml_sha256_init(&sum);
    ggml_sha256_update(&sum, key, PROBE_KEY_SIZE);
    ggml_sha256_update(&sum, fixed, PROBE_FRAME_HEADER_SIZE - GGML_SHA256_SIZE);
    ggml_sha256_update(&sum, payload, size);
    ggml_sha256_final(&sum, out_digest);
}

// Layout: magic, version, kind, sequence number, size, digest, payload. The digest covers the key,
// so that a plugin can't forge a frame.
void probe_frame_write(struct probe_writer *writer, const uint8_t key[PROBE_KEY_SIZE],
                       enum probe_frame_kind kind, uint32_t sequence, const void *payload,
                       size_t size) {
    unsigned char header[PROBE_FRAME_HEADER_SIZE];
    store(header, FRAME_MAGIC, 4);
    store(header + 4, PROBE_PROTOCOL_VERSION, 4);
    store(header + 8, (uint64_t)kind, 4);
    store(header + 12, sequence, 4);
    store(header + 16, size, 4);
    digest_frame(key, header, payload, size, header + PROBE_FRAME_HEADER_SIZE - GGML_SHA256_SIZE);
    probe_put_bytes(writer, header, sizeof(header));
    probe_put_bytes(writer, payload, size);
}

// Payload of the greeting: what must be equal on both sides, that is, versions, contract and layout
// of structures.
void probe_hello_write(struct probe_writer *writer) {
    probe_put_text(writer, ggml_version());
    probe_put_text(writer, ggml_commit());
    probe_put_u32(writer, GGML_CONTRACT_MAJOR);
    probe_put_u32(writer, GGML_CONTRACT_MINOR);
    probe_put_u64(writer, GGML_PLUGIN_LAYOUT_HASH);
}

// --- receiver ------------------------------------------------------------------------------------

// Final: the receiver takes nothing after it.
static enum ggml_host_status damaged(const char *what) {
    return ggml_fail(GGML_HOST_DAMAGED_FILE, "%s", what);
}

// The greeting. A helper of another build makes the receiver `foreign`, and nothing else is read
// from it.
static enum ggml_host_status take_hello(struct probe_receiver *receiver, const void *payload,
                                        size_t size) {
    struct probe_writer own = {0};
    probe_hello_write(&own);
    if (own.failed) {
        probe_writer_free(&own);
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory to talk to the helper");
    }
    receiver->greeted = true;
    receiver->foreign = size != own.size || memcmp(payload, own.data, size) != 0;
    probe_writer_free(&own);
    return GGML_HOST_OK;
}

// The sandbox report: once, before any stage. Its text says what could not be confined.
static enum ggml_host_status take_sandbox(struct probe_receiver *receiver, const char *payload,
                                          size_t size) {
    if (receiver->confined || receiver->stage != GGML_PLUGIN_STAGE_FOUND || receiver->answered ||
        size >= PROBE_SANDBOX_TEXT || memchr(payload, '\0', size)) {
        return damaged("a sandbox that can't be");
    }
    memcpy(receiver->not_confined, payload, size);
    receiver->confined = true;
    return GGML_HOST_OK;
}

// A stage: must be later than the last one.
static enum ggml_host_status take_stage(struct probe_receiver *receiver, const void *payload,
                                        size_t size) {
    struct probe_reader reader = {.data = payload, .size = size};
    const uint32_t stage = probe_get_u32(&reader);
    const bool advances = stage > (uint32_t)receiver->stage && stage <= GGML_PLUGIN_STAGE_READY;
    if (reader.damaged || reader.at != size || receiver->answered || !advances) {
        return damaged("a stage that can't be");
    }
    receiver->stage = (enum ggml_plugin_stage)stage;
    return GGML_HOST_OK;
}

// The result: once; its stage becomes the last one reached.
static enum ggml_host_status take_result(struct probe_receiver *receiver, const void *payload,
                                         size_t size) {
    if (receiver->answered) return damaged("a second result");
    const enum ggml_host_status status = probe_result_read(payload, size, &receiver->result);
    if (status != GGML_HOST_OK) return status;
    receiver->answered = true;
    receiver->stage = receiver->result.stage;
    return GGML_HOST_OK;
}

// Dispatches a frame by its kind, and enforces the order hello, sandbox, stages, result, end.
static enum ggml_host_status take_frame(struct probe_receiver *receiver, uint32_t kind,
                                        const void *payload, size_t size) {
    const bool first = kind == PROBE_FRAME_HELLO;
    if (first == receiver->greeted || receiver->foreign || receiver->ended) {
        return damaged("a frame out of order");
    }
    switch (kind) {
    case PROBE_FRAME_HELLO: return take_hello(receiver, payload, size);
    case PROBE_FRAME_SANDBOX: return take_sandbox(receiver, payload, size);
    case PROBE_FRAME_STAGE: return take_stage(receiver, payload, size);
    case PROBE_FRAME_RESULT: return take_result(receiver, payload, size);
    case PROBE_FRAME_END:
        if (!receiver->answered || size != 0) return damaged("an end without a result");
        receiver->ended = true;
        return GGML_HOST_OK;
    default: return damaged("a frame of unknown kind");
    }
}

// Takes one whole frame from the front of the buffer; *out_size is 0 while it is incomplete.
static enum ggml_host_status take_front(struct probe_receiver *receiver, const unsigned char *bytes,
                                        size_t size, size_t *out_size) {
    struct probe_reader reader = {.data = bytes, .size = size};
    uint8_t digest[GGML_SHA256_SIZE];
    *out_size = 0;
    if (size < PROBE_FRAME_HEADER_SIZE) return GGML_HOST_OK;
    const uint32_t magic = probe_get_u32(&reader);
    const uint32_t version = probe_get_u32(&reader);
    const uint32_t kind = probe_get_u32(&reader);
    const uint32_t sequence = probe_get_u32(&reader);
    const uint32_t length = probe_get_u32(&reader);
    const unsigned char *said = probe_get_bytes(&reader, GGML_SHA256_SIZE);
    if (magic != FRAME_MAGIC || version != PROBE_PROTOCOL_VERSION || length > PROBE_RESULT_MAX ||
        sequence != receiver->sequence) {
        return damaged("not a frame");
    }
    const unsigned char *payload = probe_get_bytes(&reader, length);
    if (!payload) return GGML_HOST_OK;
    digest_frame(receiver->key, bytes, payload, length, digest);
    if (memcmp(said, digest, sizeof(digest)) != 0) return damaged("a frame without the key");
    ++receiver->sequence;
    *out_size = reader.at;
    return take_frame(receiver, kind, payload, length);
}

// Whether the bytes may be the start of a frame, so that garbage is recognised without waiting for
// a whole header.
static bool may_begin_frame(const unsigned char *bytes, size_t size) {
    unsigned char magic[4];
    store(magic, FRAME_MAGIC, sizeof(magic));
    return memcmp(bytes, magic, size < sizeof(magic) ? size : sizeof(magic)) == 0;
}

// The buffer keeps at most one incomplete frame.
enum ggml_host_status probe_receiver_take(struct probe_receiver *receiver, const void *bytes,
                                          size_t size) {
    enum ggml_host_status status = GGML_HOST_OK;
    size_t at = 0;
    size_t length = 1;
    if (size == 0) return GGML_HOST_OK;
    probe_put_bytes(&receiver->bytes, bytes, size);
    if (receiver->bytes.failed) {
        return ggml_fail(GGML_HOST_OUT_OF_MEMORY, "no memory for what the helper says");
    }
    while (status == GGML_HOST_OK && length > 0) {
        status =
            take_front(receiver, receiver->bytes.data + at, receiver->bytes.size - at, &length);
        at += length;
    }
    if (at > 0) memmove(receiver->bytes.data, receiver->bytes.data + at, receiver->bytes.size - at);
    receiver->bytes.size -= at;
    if (status != GGML_HOST_OK || receiver->bytes.size == 0) return status;
    if (!may_begin_frame(receiver->bytes.data, receiver->bytes.size)) return damaged("not a frame");
    return GGML_HOST_OK;
}

void probe_receiver_free(struct probe_receiver *receiver) {
    probe_writer_free(&receiver->bytes);
    probe_result_free(&receiver->result);
}
