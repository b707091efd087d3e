// SPDX-License-Identifier: MIT
// What counts as the answer of a helper, and what does not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "plugin/probe/message/probe_protocol.h"

static const uint8_t key[PROBE_KEY_SIZE] = {9, 8, 7};
static const uint8_t other_key[PROBE_KEY_SIZE] = {9, 8, 6};

static void put_hello(struct probe_writer *frames, const uint8_t *with, uint32_t sequence) {
    struct probe_writer payload = {0};
    probe_hello_write(&payload);
    probe_frame_write(frames, with, PROBE_FRAME_HELLO, sequence, payload.data, payload.size);
    probe_writer_free(&payload);
}

static void put_stage(struct probe_writer *frames, uint32_t stage, uint32_t sequence) {
    struct probe_writer payload = {0};
    probe_put_u32(&payload, stage);
    probe_frame_write(frames, key, PROBE_FRAME_STAGE, sequence, payload.data, payload.size);
    probe_writer_free(&payload);
}

static void put_result(struct probe_writer *frames, uint32_t sequence) {
    struct ggml_backend_dev_props props = {.name = "GPU0", .description = "x", .device_id = ""};
    static const struct ggml_backend_feature list[] = {
        {"driver", "probed"}, {"link", "pci"}, {NULL, NULL}};
    const struct ggml_backend_feature *details = list;
    struct probe_result result = {.stage = GGML_PLUGIN_STAGE_READY,
                                  .message = "",
                                  .missing = "",
                                  .n_devices = 1,
                                  .devices = &props,
                                  .details = &details};
    struct probe_writer payload = {0};
    probe_result_write(&result, &payload);
    probe_frame_write(frames, key, PROBE_FRAME_RESULT, sequence, payload.data, payload.size);
    probe_writer_free(&payload);
}

static void put_end(struct probe_writer *frames, uint32_t sequence) {
    probe_frame_write(frames, key, PROBE_FRAME_END, sequence, NULL, 0);
}

static void put_conversation(struct probe_writer *frames) {
    put_hello(frames, key, 0);
    put_stage(frames, GGML_PLUGIN_STAGE_SELECT, 1);
    put_stage(frames, GGML_PLUGIN_STAGE_MAP, 2);
    put_result(frames, 3);
    put_end(frames, 4);
}

static struct probe_receiver new_receiver(void) {
    struct probe_receiver receiver = {.greeted = false};
    memcpy(receiver.key, key, sizeof(key));
    return receiver;
}

static void test_a_conversation_in_pieces_of_any_size(void **state) {
    (void)state;
    struct probe_writer frames = {0};
    put_conversation(&frames);
    for (size_t piece = 1; piece <= frames.size; ++piece) {
        struct probe_receiver receiver = new_receiver();
        for (size_t at = 0; at < frames.size; at += piece) {
            const size_t n = frames.size - at < piece ? frames.size - at : piece;
            assert_false(receiver.ended);
            assert_int_equal(probe_receiver_take(&receiver, frames.data + at, n), GGML_HOST_OK);
        }
        assert_true(receiver.greeted && receiver.answered && receiver.ended);
        assert_false(receiver.foreign);
        assert_string_equal(receiver.result.devices[0].name, "GPU0");
        assert_string_equal(receiver.result.details[0][1].name, "link");
        assert_string_equal(receiver.result.details[0][1].value, "pci");
        assert_null(receiver.result.details[0][2].name);
        assert_int_equal(receiver.stage, GGML_PLUGIN_STAGE_READY);
        probe_receiver_free(&receiver);
    }
    probe_writer_free(&frames);
}

static void test_a_flipped_bit_anywhere_is_noticed(void **state) {
    (void)state;
    struct probe_writer frames = {0};
    put_conversation(&frames);
    for (size_t bit = 0; bit < frames.size * 8; ++bit) {
        struct probe_receiver receiver = new_receiver();
        frames.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        const enum ggml_host_status status =
            probe_receiver_take(&receiver, frames.data, frames.size);
        // A length that became larger is still being waited for.
        assert_true(status == GGML_HOST_DAMAGED_FILE || !receiver.ended);
        frames.data[bit / 8] ^= (unsigned char)(1u << bit % 8);
        probe_receiver_free(&receiver);
    }
    probe_writer_free(&frames);
}

static void expect_damaged(struct probe_writer *frames) {
    struct probe_receiver receiver = new_receiver();
    assert_int_equal(probe_receiver_take(&receiver, frames->data, frames->size),
                     GGML_HOST_DAMAGED_FILE);
    probe_receiver_free(&receiver);
    probe_writer_free(frames);
}

static void test_nothing_is_believed_without_the_key_or_out_of_order(void **state) {
    (void)state;
    struct probe_writer frames = {0};
    put_hello(&frames, other_key, 0);
    expect_damaged(&frames);
    put_hello(&frames, key, 1);
    expect_damaged(&frames);
    put_result(&frames, 0);
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_hello(&frames, key, 1);
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_stage(&frames, 5, 1);
    put_stage(&frames, 5, 1); // replayed
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_stage(&frames, 5, 1);
    put_stage(&frames, 4, 2); // backwards
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_result(&frames, 1);
    put_result(&frames, 2);
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_end(&frames, 1);
    expect_damaged(&frames);
    put_conversation(&frames);
    put_end(&frames, 5);
    expect_damaged(&frames);
    probe_put_bytes(&frames, "hello", 5);
    expect_damaged(&frames);
}

static void put_sandbox(struct probe_writer *frames, const char *text, uint32_t sequence) {
    probe_frame_write(frames, key, PROBE_FRAME_SANDBOX, sequence, text, strlen(text));
}

static void test_what_is_not_confined_is_said_once_and_first(void **state) {
    (void)state;
    char text[PROBE_SANDBOX_TEXT + 1];
    struct probe_writer frames = {0};
    struct probe_receiver receiver = new_receiver();
    put_hello(&frames, key, 0);
    put_sandbox(&frames, "no Landlock", 1);
    put_stage(&frames, 5, 2);
    assert_int_equal(probe_receiver_take(&receiver, frames.data, frames.size), GGML_HOST_OK);
    assert_true(receiver.confined);
    assert_string_equal(receiver.not_confined, "no Landlock");
    put_sandbox(&frames, "", 3); // late
    probe_receiver_free(&receiver);
    expect_damaged(&frames);
    put_hello(&frames, key, 0);
    put_sandbox(&frames, "", 1);
    put_sandbox(&frames, "", 2); // twice
    expect_damaged(&frames);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    put_hello(&frames, key, 0);
    put_sandbox(&frames, text, 1); // too long
    expect_damaged(&frames);
}

static void test_another_build_is_recognised(void **state) {
    (void)state;
    struct probe_writer frames = {0};
    struct probe_receiver receiver = new_receiver();
    probe_frame_write(&frames, key, PROBE_FRAME_HELLO, 0, "0.1", 3);
    assert_int_equal(probe_receiver_take(&receiver, frames.data, frames.size), GGML_HOST_OK);
    assert_true(receiver.greeted && receiver.foreign);
    probe_receiver_free(&receiver);
    probe_writer_free(&frames);
}

static void test_a_request_survives_the_way(void **state) {
    (void)state;
    unsigned char bytes[PROBE_REQUEST_SIZE];
    struct probe_request read;
    struct probe_request request = {.memory_limit = UINT64_MAX - 1,
                                    .cpu_seconds = 77,
                                    .parent = 4711,
                                    .sandbox = true,
                                    .file = {1, UINT64_C(1) << 40, 3, -4, INT64_MAX}};
    memcpy(request.key, key, sizeof(key));
    probe_request_write(&request, bytes);
    assert_true(probe_request_read(bytes, &read));
    assert_memory_equal(&read, &request, sizeof(request));
    bytes[4] ^= 1; // version
    assert_false(probe_request_read(bytes, &read));
    bytes[4] ^= 1;
    bytes[0] ^= 1;
    assert_false(probe_request_read(bytes, &read));
}

static void test_texts_are_cut_to_what_fits(void **state) {
    (void)state;
    static char text[2 * PROBE_TEXT_MAX];
    struct ggml_backend_dev_props props = {.name = "D", .description = text, .device_id = ""};
    struct probe_result again;
    struct probe_result result = {.status = GGML_HOST_FAILED,
                                  .message = text,
                                  .missing = NULL,
                                  .n_devices = 1,
                                  .devices = &props};
    struct probe_writer writer = {0};
    memset(text, 'x', sizeof(text) - 1);
    probe_result_write(&result, &writer);
    assert_int_equal(probe_result_read(writer.data, writer.size, &again), GGML_HOST_OK);
    assert_int_equal(strlen(again.message), PROBE_TEXT_MAX);
    assert_string_equal(again.missing, "");
    probe_result_free(&again);
    probe_writer_free(&writer);
}

// F19 of a security review: as many devices with as long texts as loading takes.
static void test_f19_the_largest_result_fits(void **state) {
    (void)state;
    char text[PROBE_TEXT_MAX];
    struct ggml_backend_dev_props *devices = calloc(PROBE_DEVICES_MAX, sizeof(*devices));
    const struct ggml_backend_feature **details = calloc(PROBE_DEVICES_MAX, sizeof(*details));
    struct ggml_backend_feature list[GGML_DEVICE_INFO_MAX_PAIRS + 1] = {{NULL, NULL}};
    struct probe_result read, result = {.stage = GGML_PLUGIN_STAGE_READY, .message = ""};
    struct probe_writer writer = {0};
    assert_non_null(devices);
    assert_non_null(details);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    const char *longest = text + PROBE_TEXT_MAX - GGML_DEVICE_INFO_MAX_TEXT;
    for (int i = 0; i < GGML_DEVICE_INFO_MAX_PAIRS; ++i)
        list[i] = (struct ggml_backend_feature){longest, longest};
    for (size_t i = 0; i < PROBE_DEVICES_MAX; ++i) {
        details[i] = list;
        devices[i].name = devices[i].description = devices[i].device_id = text;
        memset(&devices[i].caps, 0xaa, sizeof(devices[i].caps)); // any byte may lie in a bool
    }
    result.missing = "";
    result.devices = devices;
    result.details = details;
    result.n_devices = PROBE_DEVICES_MAX;
    probe_result_write(&result, &writer);
    assert_false(writer.failed);
    assert_true(writer.size <= PROBE_RESULT_MAX);
    assert_int_equal(probe_result_read(writer.data, writer.size, &read), GGML_HOST_OK);
    assert_int_equal(read.n_devices, PROBE_DEVICES_MAX);
    assert_true(read.devices[7].caps.async && read.devices[7].caps.events);
    probe_result_free(&read);
    probe_writer_free(&writer);
    free(details);
    free(devices);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f19_the_largest_result_fits),
        cmocka_unit_test(test_a_conversation_in_pieces_of_any_size),
        cmocka_unit_test(test_a_flipped_bit_anywhere_is_noticed),
        cmocka_unit_test(test_nothing_is_believed_without_the_key_or_out_of_order),
        cmocka_unit_test(test_what_is_not_confined_is_said_once_and_first),
        cmocka_unit_test(test_another_build_is_recognised),
        cmocka_unit_test(test_a_request_survives_the_way),
        cmocka_unit_test(test_texts_are_cut_to_what_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
