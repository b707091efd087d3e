// SPDX-License-Identifier: MIT
// What a thread that sleeps until bytes arrive learns of sockets: whether messages are announced by
// them. The messages are made up, the socket is one of two of this process.
#define _GNU_SOURCE
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "link/link_doze.h"

enum { ENOUGH = 16, MANY = 100 };

static int ends[2]; // of a connection

static void connect_ends(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, size), 0);
    ends[1] = accept(listening, NULL, NULL);
    assert_true(ends[1] >= 0);
    close(listening);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// As a look that finds the message which the socket told of, and then some that find nothing.
static void take_announced(struct doze *doze) {
    char byte = 1;
    assert_int_equal(write(ends[0], &byte, 1), 1);
    doze_sleep(doze, seconds(), 10);
    assert_int_equal(read(ends[1], &byte, 1), 1);
    doze_learn(doze, true);
    while (doze->fresh > 0)
        doze_learn(doze, false);
}

static int begin(void **state) {
    static struct doze doze;
    assert_true(doze_init(&doze));
    connect_ends();
    for (int i = 0; i < MANY; ++i)
        take_announced(&doze);
    *state = &doze;
    return 0;
}

static int end(void **state) {
    doze_end(*state);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

static void test_messages_are_announced_by_sockets(void **state) {
    struct doze fresh;
    assert_true(doze_is_announced(*state));
    doze_init(&fresh);
    for (int i = 0; i < ENOUGH; ++i) {
        assert_false(doze_is_announced(&fresh));
        take_announced(&fresh);
    }
    assert_true(doze_is_announced(&fresh));
    doze_end(&fresh);
}

// A thread that looks without sleeping reads most messages before it asks the socket.
static void test_what_comes_between_looks_tells_nothing(void **state) {
    struct doze *doze = *state;
    for (int i = 0; i < MANY; ++i) {
        doze_sleep(doze, seconds(), 0);
        doze_learn(doze, true);
    }
    for (int i = 0; i < MANY; ++i) { // or a while after a sleep
        doze_sleep(doze, seconds(), 1e-6);
        doze_learn(doze, false);
        doze_learn(doze, true);
    }
    assert_true(doze_is_announced(doze));
}

static void test_one_that_ends_a_sleep_tells_nothing(void **state) {
    struct doze *doze = *state;
    for (int i = 0; i < MANY; ++i) {
        doze_begin(doze);
        doze_wake(doze);
        doze_sleep(doze, seconds(), 1000);
        doze_finish(doze);
        doze_learn(doze, true);
    }
    assert_true(doze_is_announced(doze));
}

static void test_messages_that_are_slept_through_are_not_announced(void **state) {
    struct doze *doze = *state;
    for (int i = 0; i < MANY; ++i) {
        doze_sleep(doze, seconds(), 1e-6);
        doze_learn(doze, true);
    }
    assert_false(doze_is_announced(doze));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_are_announced_by_sockets, begin, end),
        cmocka_unit_test_setup_teardown(test_what_comes_between_looks_tells_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_one_that_ends_a_sleep_tells_nothing, begin, end),
        cmocka_unit_test_setup_teardown(test_messages_that_are_slept_through_are_not_announced,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
