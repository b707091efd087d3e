// SPDX-License-Identifier: MIT
// Messages of strangers: what is refused, and that nothing is read beyond what came, whatever it
// is. Knows no MPI; sanitizers see each message in memory of its own size.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/wire.h"

enum { MUTATIONS = 20000 };

struct bytes {
    unsigned char *data;
    size_t size;
};

// --- sound messages ------------------------------------------------------------------------------

static struct wire_tensor sound_tensor(void) {
    struct wire_tensor tensor = {.type = GGML_TYPE_Q4_0,
                                 .ne = {64, 4, 2, 1},
                                 .nb = {18, 36, 144, 288},
                                 .view_src = -1,
                                 .buffer = 7,
                                 .offset = 128};
    for (int i = 0; i < GGML_MAX_SRC; ++i)
        tensor.src[i] = -1;
    strcpy(tensor.name, "weight");
    return tensor;
}

enum { SPAN = 288 };

static struct bytes with(struct wire_message message, const void *rest, size_t size) {
    struct bytes bytes = {malloc(sizeof(message) + size), sizeof(message) + size};
    assert_non_null(bytes.data);
    message.magic = WIRE_MAGIC;
    memcpy(bytes.data, &message, sizeof(message));
    if (size > 0) memcpy(bytes.data + sizeof(message), rest, size);
    return bytes;
}

static struct bytes graph_message(void) {
    struct wire_change changes[3];
    for (uint64_t i = 0; i < 3; ++i)
        changes[i] = (struct wire_change){i, sound_tensor()};
    changes[0].tensor.op = GGML_OP_MUL_MAT;
    changes[0].tensor.src[0] = 1;
    changes[0].tensor.src[1] = 2;
    changes[2].tensor.view_src = 1;
    return with((struct wire_message){.kind = WIRE_COMPUTE,
                                      .id = 9,
                                      .queue = 1,
                                      .object = 4,
                                      .size = 3,
                                      .n_tensors = 3,
                                      .n_nodes = 1},
                changes, sizeof(changes));
}

static struct bytes set_message(void) {
    struct {
        struct wire_tensor tensor;
        unsigned char bytes[40];
    } rest = {.tensor = sound_tensor()};
    return with((struct wire_message){.kind = WIRE_SET, .offset = 16, .size = sizeof(rest.bytes)},
                &rest, sizeof(rest));
}

static struct bytes reduce_message(void) {
    struct {
        struct wire_tensor tensor;
        struct wire_rank ranks[3];
    } rest = {.tensor = sound_tensor(), .ranks = {{1, 1}, {2, 0}, {3, 1}}};
    return with((struct wire_message){.kind = WIRE_REDUCE, .object = 5, .device = 2, .n_nodes = 3},
                &rest, sizeof(rest));
}

// The tensor's first bytes from a file; it is of two pieces if `size` is larger than one.
static struct bytes file_message(const struct wire_file *file, uint64_t size, size_t n_digests) {
    struct {
        struct wire_tensor tensor;
        struct wire_file file;
        uint8_t digests[3][WIRE_DIGEST];
    } rest = {.tensor = sound_tensor(), .file = *file};
    if (size > SPAN) { // a tensor that has so many
        rest.tensor.type = GGML_TYPE_I8;
        for (int i = 0; i < GGML_MAX_DIMS; ++i) {
            rest.tensor.ne[i] = i == 0 ? (int64_t)size : 1;
            rest.tensor.nb[i] = i == 0 ? 1 : size;
        }
    }
    return with((struct wire_message){.kind = WIRE_SET_FILE, .size = size}, &rest,
                sizeof(rest) - (3 - n_digests) * WIRE_DIGEST);
}

static const struct wire_file sound_file = {.offset = 8, .size = 24, .name = "model.gguf"};

static struct bytes of_kind(uint32_t kind) {
    const struct wire_tensor two[2] = {sound_tensor(), sound_tensor()};
    const struct wire_program program = {.boot = "b", .space = 4, .process = 7};
    struct wire_message message = {.kind = kind, .id = 3, .queue = 2, .size = 8};
    switch (kind) {
    case WIRE_COMPUTE: return graph_message();
    case WIRE_SET: return set_message();
    case WIRE_SUPPORTS: message.n_tensors = 2; return with(message, two, sizeof(two));
    case WIRE_COPY: return with(message, two, sizeof(two));
    case WIRE_REDUCE: return reduce_message();
    case WIRE_SET_FILE: return file_message(&sound_file, 16, 1);
    case WIRE_PROGRAM: return with(message, &program, sizeof(program));
    case WIRE_STREAM_NEW: return with(message, "threads=2", 9);
    case WIRE_ANSWER: return with(message, "damaged", 7);
    case WIRE_GET:
    case WIRE_MEMSET:
    case WIRE_SEND:
    case WIRE_RECEIVE:
    case WIRE_ALLOC_SIZE: return with(message, two, sizeof(two[0]));
    default: return with(message, NULL, 0);
    }
}

static bool reads(const struct bytes *bytes, const char **out_why) {
    struct wire_message message;
    const void *rest;
    return wire_read(bytes->data, bytes->size, &message, &rest, out_why);
}

static void test_every_kind_has_a_sound_message(void **state) {
    (void)state;
    for (uint32_t kind = 1; kind < WIRE_KINDS; ++kind) {
        struct bytes bytes = of_kind(kind);
        const char *why;
        if (!reads(&bytes, &why)) fail_msg("kind %u: %s", kind, why);
        free(bytes.data);
    }
}

// --- refusals ------------------------------------------------------------------------------------

static void test_messages_have_the_size_that_they_say(void **state) {
    (void)state;
    for (uint32_t kind = 1; kind < WIRE_KINDS; ++kind) {
        if (kind == WIRE_ANSWER || kind == WIRE_STREAM_NEW) continue; // any text
        const struct bytes whole = of_kind(kind);
        for (size_t size = 0; size <= whole.size + 1; ++size) {
            struct bytes part = {calloc(1, size + (size == 0)), size};
            const char *why;
            memcpy(part.data, whole.data, size < whole.size ? size : whole.size);
            assert_true(reads(&part, &why) == (size == whole.size));
            const size_t head = sizeof(struct wire_message);
            if (size < head) assert_string_equal(why, "less than a message");
            if (size == head && whole.size > head) assert_string_equal(why, "less than it says");
            free(part.data);
        }
        free(whole.data);
    }
}

static void expect_refused(void (*change)(struct wire_tensor *), const char *why_not) {
    struct wire_tensor tensor = sound_tensor();
    change(&tensor);
    struct bytes bytes =
        with((struct wire_message){.kind = WIRE_GET, .size = SPAN}, &tensor, sizeof(tensor));
    const char *why;
    assert_false(reads(&bytes, &why));
    assert_string_equal(why, why_not);
    free(bytes.data);
}

static void reserved_is_set(struct wire_tensor *t) {
    t->reserved = 1;
}

static void type_is_too_large(struct wire_tensor *t) {
    t->type = GGML_TYPE_COUNT;
}
static void type_is_negative(struct wire_tensor *t) {
    t->type = -1;
}
static void op_is_too_large(struct wire_tensor *t) {
    t->op = GGML_OP_COUNT;
}
static void op_is_the_programs(struct wire_tensor *t) {
    t->op = GGML_OP_CUSTOM;
}
static void extent_is_negative(struct wire_tensor *t) {
    t->ne[1] = -4;
}
static void elements_overflow(struct wire_tensor *t) {
    t->ne[1] = t->ne[2] = INT64_C(1) << 32;
}
static void row_is_no_blocks(struct wire_tensor *t) {
    t->ne[0] = 63;
}
static void stride_overflows(struct wire_tensor *t) {
    t->nb[1] = UINT64_C(1) << 62;
}
static void span_wraps(struct wire_tensor *t) {
    t->nb[3] = UINT64_MAX;
}
static void offset_wraps(struct wire_tensor *t) {
    t->offset = UINT64_MAX - 8;
}
static void source_is_beyond(struct wire_tensor *t) {
    t->src[3] = 1;
}
static void source_is_below(struct wire_tensor *t) {
    t->src[0] = -2;
}
static void viewed_is_beyond(struct wire_tensor *t) {
    t->view_src = 1;
}
static void name_has_no_end(struct wire_tensor *t) {
    memset(t->name, 'x', sizeof(t->name));
}
static void lies_nowhere(struct wire_tensor *t) {
    t->buffer = 0;
}
static void is_shorter(struct wire_tensor *t) {
    t->ne[2] = 1;
}

static void test_unsound_tensors_are_refused_by_name(void **state) {
    (void)state;
    expect_refused(type_is_too_large, "a type that there is not");
    expect_refused(type_is_negative, "a type that there is not");
    expect_refused(op_is_too_large, "an operation that there is not");
    expect_refused(op_is_the_programs, "an operation that calls a function of the program");
    expect_refused(extent_is_negative, "extents or strides out of range");
    expect_refused(elements_overflow, "extents or strides out of range");
    expect_refused(row_is_no_blocks, "extents or strides out of range");
    expect_refused(stride_overflows, "extents or strides out of range");
    expect_refused(span_wraps, "extents or strides out of range");
    expect_refused(offset_wraps, "an offset out of range");
    expect_refused(source_is_beyond, "a source that there is not");
    expect_refused(source_is_below, "a source that there is not");
    expect_refused(viewed_is_beyond, "a view of a tensor that there is not");
    expect_refused(reserved_is_set, "a member that has no meaning yet");
    expect_refused(name_has_no_end, "a name without an end");
    expect_refused(lies_nowhere, "a tensor that lies nowhere");
    expect_refused(is_shorter, "a transfer beyond the tensor");
}

static void expect_message_refused(uint32_t kind, void (*change)(struct wire_message *),
                                   const char *why_not) {
    struct bytes bytes = of_kind(kind);
    struct wire_message message;
    const char *why;
    memcpy(&message, bytes.data, sizeof(message));
    change(&message);
    memcpy(bytes.data, &message, sizeof(message));
    if (reads(&bytes, &why)) fail_msg("it was taken, and is %s", why_not);
    assert_string_equal(why, why_not);
    free(bytes.data);
}

static void is_none(struct wire_message *m) {
    m->magic ^= 1;
}
static void kind_is_none(struct wire_message *m) {
    m->kind = 0;
}
static void kind_is_new(struct wire_message *m) {
    m->kind = WIRE_KINDS;
}
static void queue_is_beyond(struct wire_message *m) {
    m->queue = WIRE_MAX_QUEUES;
}
static void device_is_beyond(struct wire_message *m) {
    m->device = WIRE_MAX_DEVICES;
}
static void rank_is_beyond(struct wire_message *m) {
    m->device = m->n_nodes;
}
static void ranks_are_too_many(struct wire_message *m) {
    m->n_nodes = WIRE_MAX_RANKS + 1;
}
static void nodes_are_too_many(struct wire_message *m) {
    m->n_nodes = m->n_tensors + 1;
}
static void tensors_are_too_many(struct wire_message *m) {
    m->n_tensors = WIRE_MAX_TENSORS + 1;
}
static void tensors_are_none(struct wire_message *m) {
    m->n_tensors = 0;
}
static void changes_are_too_few(struct wire_message *m) {
    m->size = m->n_tensors - 1;
}
static void changes_are_too_many(struct wire_message *m) {
    m->n_tensors = m->n_nodes = 0;
    m->size = WIRE_MAX_TENSORS + 1;
}
static void size_is_negative(struct wire_message *m) {
    m->size = UINT64_C(1) << 63;
}
static void begin_is_negative(struct wire_message *m) {
    m->offset = UINT64_C(1) << 63;
}
static void tag_is_negative(struct wire_message *m) {
    m->tag = UINT32_C(1) << 31;
}
static void peer_is_negative(struct wire_message *m) {
    m->peer = UINT32_C(1) << 31;
}

static void test_unsound_messages_are_refused_by_name(void **state) {
    (void)state;
    expect_message_refused(WIRE_GET, is_none, "no message");
    expect_message_refused(WIRE_GET, kind_is_none, "an unknown kind");
    expect_message_refused(WIRE_GET, kind_is_new, "an unknown kind");
    expect_message_refused(WIRE_GET, queue_is_beyond, "a queue out of range");
    expect_message_refused(WIRE_GET, device_is_beyond, "a device out of range");
    expect_message_refused(WIRE_REDUCE, rank_is_beyond, "a rank that the group does not have");
    expect_message_refused(WIRE_REDUCE, ranks_are_too_many, "a rank that the group does not have");
    expect_message_refused(WIRE_COMPUTE, nodes_are_too_many,
                           "more nodes than tensors, or too many");
    expect_message_refused(WIRE_COMPUTE, tensors_are_too_many,
                           "more nodes than tensors, or too many");
    expect_message_refused(WIRE_SUPPORTS, tensors_are_none, "a node that is missing");
    expect_message_refused(WIRE_COMPUTE, changes_are_too_few, "a graph that is not whole");
    expect_message_refused(WIRE_COMPUTE, changes_are_too_many, "a graph that is not whole");
    expect_message_refused(WIRE_GET, size_is_negative, "a size out of range");
    expect_message_refused(WIRE_GET, begin_is_negative, "a size out of range");
    expect_message_refused(WIRE_GET, tag_is_negative, "a tag or peer out of range");
    expect_message_refused(WIRE_GET, peer_is_negative, "a tag or peer out of range");
}

// Of a new graph all tensors in turn, of a known one those that there may be.
static void test_changes_are_of_tensors_that_there_are(void **state) {
    (void)state;
    static const struct {
        uint64_t index;
        bool is_new;
        const char *why;
    } rows[] = {{2, true, "a tensor that the graph does not have"},
                {1, true, "tensors out of order"},
                {WIRE_MAX_TENSORS, false, "a tensor that the graph does not have"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
        const struct wire_change changes[2] = {{rows[i].index, sound_tensor()},
                                               {1, sound_tensor()}};
        struct bytes bytes = with(
            (struct wire_message){
                .kind = WIRE_COMPUTE, .object = 4, .size = 2, .n_tensors = rows[i].is_new ? 2 : 0},
            changes, sizeof(changes));
        const char *why;
        assert_false(reads(&bytes, &why));
        assert_string_equal(why, rows[i].why);
        free(bytes.data);
    }
}

// --- nodes ---------------------------------------------------------------------------------------

static void test_nodes_are_read_whole_or_not_at_all(void **state) {
    (void)state;
    struct {
        struct wire_node node;
        struct wire_device devices[2];
    } sent = {.node = {.host = "here", .version = "1", .n_devices = 2}};
    struct wire_node node;
    struct wire_device devices[WIRE_MAX_DEVICES];
    const char *why;
    for (int i = 0; i < 2; ++i) {
        strcpy(sent.devices[i].name, "CPU");
        sent.devices[i].alignment = 64;
    }
    assert_true(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
    for (size_t size = 0; size < sizeof(sent); ++size) {
        assert_false(wire_read_node(&sent, size, &node, devices, &why));
        assert_string_equal(why, size < sizeof(sent.node) ? "less than a node"
                                                          : "another number of devices");
    }
    sent.node.n_devices = UINT32_MAX;
    assert_false(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
    sent.node.n_devices = 2;
    sent.devices[1].alignment = 48;
    assert_false(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
    sent.devices[1].alignment = 64;
    char *const texts[] = {sent.node.host, sent.node.version, sent.devices[1].name,
                           sent.devices[1].description, sent.devices[1].id};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        char before[WIRE_TEXT];
        memcpy(before, texts[i], WIRE_TEXT);
        memset(texts[i], 'x', WIRE_TEXT);
        assert_false(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
        assert_string_equal(why, "a text without an end");
        memcpy(texts[i], before, WIRE_TEXT);
    }
    sent.devices[0].memory.free = sent.devices[0].memory.total + 1;
    assert_false(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
    assert_string_equal(why, "more memory free than there is");
    sent.devices[0].memory.free = 0;
    sent.devices[0].name[0] = '\0';
    assert_false(wire_read_node(&sent, sizeof(sent), &node, devices, &why));
    assert_string_equal(why, "a device without a name");
}

// --- damage --------------------------------------------------------------------------------------

static uint64_t seed = 1;

static uint32_t next(uint32_t below) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

static void damage(struct bytes *bytes) {
    static const uint32_t telling[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x10000};
    for (uint32_t i = 0, n = 1 + next(6); i < n && bytes->size >= 4; ++i) {
        const size_t at = next((uint32_t)(bytes->size / 4)) * 4;
        const uint32_t value = next(2) ? telling[next(6)] : next(1 << 20);
        if (next(3) == 0) {
            bytes->data[at + next(4)] ^= (unsigned char)(1u << next(8));
        } else {
            memcpy(bytes->data + at, &value, sizeof(value));
        }
    }
    if (next(8) == 0) bytes->size = next((uint32_t)bytes->size + 1);
}

// What was accepted can be used without another look at its numbers.
static void expect_usable(const struct bytes *bytes, const struct wire_message *message,
                          const void *rest) {
    const bool changes = message->kind == WIRE_COMPUTE;
    const size_t count = wire_count(message);
    assert_true(sizeof(*message) + wire_fixed_size(message) <= bytes->size);
    for (size_t i = 0; i < count; ++i) {
        struct wire_change change = {i, {0}};
        uint64_t span;
        const char *why;
        if (changes) {
            wire_read_change(rest, i, &change);
        } else {
            wire_read_tensor(rest, i, &change.tensor);
        }
        const struct wire_tensor *tensor = &change.tensor;
        assert_true(wire_tensor_sound(tensor, WIRE_MAX_TENSORS, &span, &why));
        assert_true(tensor->type >= 0 && tensor->type < GGML_TYPE_COUNT);
        assert_false(wire_calls_program(tensor->op));
        struct ggml_tensor restored;
        wire_restore(tensor, &restored);
        assert_true(ggml_nbytes(&restored) <= INT64_MAX);
        assert_true(tensor->buffer == 0 || span <= INT64_MAX - tensor->offset);
        for (int k = 0; k < GGML_MAX_SRC && !changes; ++k)
            assert_true(tensor->src[k] < (int32_t)count);
    }
}

static void test_damaged_messages_are_refused_or_harmless(void **state) {
    (void)state;
    int n_accepted = 0;
    for (int i = 0; i < MUTATIONS; ++i) {
        struct bytes whole = of_kind(1 + next(WIRE_KINDS - 1));
        damage(&whole);
        struct bytes exact = {malloc(whole.size + (whole.size == 0)), whole.size};
        memcpy(exact.data, whole.data, whole.size);
        struct wire_message message;
        const void *rest;
        const char *why;
        if (wire_read(exact.data, exact.size, &message, &rest, &why)) {
            expect_usable(&exact, &message, rest);
            ++n_accepted;
        } else {
            assert_true(why[0] != '\0');
        }
        free(whole.data);
        free(exact.data);
    }
    assert_in_range(n_accepted, MUTATIONS / 100, MUTATIONS / 2);
}

static void expect_file(struct wire_file file, uint64_t size, size_t n_digests,
                        const char *why_not) {
    struct bytes bytes = file_message(&file, size, n_digests);
    const char *why;
    const bool sound = reads(&bytes, &why);
    if (!why_not && !sound) fail_msg("%s", why);
    if (why_not) assert_false(sound);
    if (why_not) assert_string_equal(why, why_not);
    free(bytes.data);
}

static struct wire_file named(const char *name) {
    struct wire_file file = sound_file;
    memset(file.name, 0, sizeof(file.name));
    memcpy(file.name, name, strlen(name));
    return file;
}

static void test_files_are_entries_of_the_folder_and_have_the_bytes(void **state) {
    (void)state;
    const char *const bad[] = {"", ".", "..", "/etc/passwd", "a/../../b", "folder/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i)
        expect_file(named(bad[i]), 16, 1, "a name of a file that is none");
    expect_file(named("..."), 16, 1, NULL);
    struct wire_file file = sound_file;
    memset(file.name, 'x', sizeof(file.name));
    expect_file(file, 16, 1, "a name without an end");
    expect_file(sound_file, 17, 1, "bytes that the file does not have");
    file = sound_file;
    file.offset = UINT64_MAX - 7; // and the end wraps
    expect_file(file, 16, 1, "bytes that the file does not have");
    file.offset = 8;
    file.size = UINT64_MAX;
    expect_file(file, 16, 1, "bytes that the file does not have");
    expect_file(sound_file, 0, 0, "bytes that the file does not have");
    file.size = 3 * (uint64_t)WIRE_FILE_PIECE;
    expect_file(file, WIRE_FILE_PIECE, 1, NULL);
    expect_file(file, WIRE_FILE_PIECE + 1, 2, NULL);
    expect_file(file, WIRE_FILE_PIECE + 1, 1, "another number of digests");
    expect_file(file, WIRE_FILE_PIECE, 2, "another number of digests");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_a_sound_message),
        cmocka_unit_test(test_messages_have_the_size_that_they_say),
        cmocka_unit_test(test_unsound_tensors_are_refused_by_name),
        cmocka_unit_test(test_unsound_messages_are_refused_by_name),
        cmocka_unit_test(test_changes_are_of_tensors_that_there_are),
        cmocka_unit_test(test_files_are_entries_of_the_folder_and_have_the_bytes),
        cmocka_unit_test(test_nodes_are_read_whole_or_not_at_all),
        cmocka_unit_test(test_damaged_messages_are_refused_or_harmless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
