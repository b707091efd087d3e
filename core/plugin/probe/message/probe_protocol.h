// SPDX-License-Identifier: MIT
// Protocol between the host and a helper process.
//
// The helper tries a plugin, or asks hwloc about the machine; then there is a RESULT alone.
// The host writes one request to the helper's standard input. The helper answers in frames on a
// pipe of its own: HELLO before anything of the plugin runs, SANDBOX when it is confined as far as
// the system can, if it is asked to be, STAGE whenever the plugin got further,
// RESULT, and END when the plugin has been shut down too. A frame carries a digest of its contents
// and of a random key that came with the request and is in no file, argument or environment: what a
// plugin happens to write into a descriptor is no frame.
#ifndef GGML_PLUGIN_PROBE_PROBE_PROTOCOL_H
#define GGML_PLUGIN_PROBE_PROBE_PROTOCOL_H

#include <stdint.h>

#include "base/data/sha256.h"
#include "plugin/image/plugin_file.h"
#include "plugin/probe/message/probe_result.h"

// Raised with every change of a frame, the request or a result.
#define PROBE_PROTOCOL_VERSION 5

enum {
    PROBE_KEY_SIZE = 32,
    PROBE_REQUEST_SIZE = 72 + PROBE_KEY_SIZE,
    PROBE_FRAME_HEADER_SIZE = 20 + GGML_SHA256_SIZE,
    PROBE_ANSWER_FD = 3,       // the helper's end of the pipe
    PROBE_EXIT_NO_ANSWER = 74, // the helper's exit status when it can't write into it
    PROBE_SANDBOX_TEXT = 256,
};

// In place of the path of a plugin: the helper is to ask hwloc about the machine.
#define PROBE_MACHINE "--machine"

enum probe_frame_kind {
    PROBE_FRAME_HELLO = 1,
    PROBE_FRAME_STAGE = 2,
    PROBE_FRAME_RESULT = 3,
    PROBE_FRAME_END = 4,
    PROBE_FRAME_SANDBOX = 5, // a text: what the system can't refuse
};

// Of fixed size, so that writing it into an empty pipe never blocks.
struct probe_request {
    uint8_t key[PROBE_KEY_SIZE];
    uint64_t memory_limit;      // bytes; 0: none
    uint32_t cpu_seconds;       // 0: no limit
    uint32_t parent;            // process id
    bool sandbox;               // the plugin is to be confined
    struct plugin_file_id file; // the only one that is to be started
};

void probe_request_write(const struct probe_request *request,
                         unsigned char out_bytes[PROBE_REQUEST_SIZE]);
// false: not a request of this version. [any-thread]
bool probe_request_read(const unsigned char bytes[PROBE_REQUEST_SIZE],
                        struct probe_request *out_request);

// Appends a frame. `sequence` counts the frames from 0. [stream]
void probe_frame_write(struct probe_writer *writer, const uint8_t key[PROBE_KEY_SIZE],
                       enum probe_frame_kind kind, uint32_t sequence, const void *payload,
                       size_t size);
// The payload of HELLO: both sides must be of one build of the library. [stream]
void probe_hello_write(struct probe_writer *writer);

// Collects what a helper says. Zero-initialised but for the key. [stream]
struct probe_receiver {
    uint8_t key[PROBE_KEY_SIZE];
    struct probe_writer bytes; // not yet a whole frame
    uint32_t sequence;         // of the next frame
    bool greeted;
    bool confined;                         // as far as the system can
    char not_confined[PROBE_SANDBOX_TEXT]; // what it can't
    bool foreign; // the helper is of another build; nothing of the plugin ran
    bool answered;
    bool ended;
    enum ggml_plugin_stage stage; // the last one that the plugin is known to have reached
    struct probe_result result;   // once answered
};

// Takes the next bytes. DAMAGED_FILE: they are not what a helper sends; OUT_OF_MEMORY; both are
// final. [stream]
enum ggml_host_status probe_receiver_take(struct probe_receiver *receiver, const void *bytes,
                                          size_t size);
void probe_receiver_free(struct probe_receiver *receiver);

#endif
