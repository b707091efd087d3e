#!/bin/sh
# SPDX-License-Identifier: MIT
# A plugin's author, from a Debian system with nothing in it to a device that adds, and a check that tells when it adds wrong.
# Usage: author.sh PACKAGES     PACKAGES: a folder with the Debian packages
packages=$1
scripts=$(cd "$(dirname "$0")" && pwd)
. "$scripts/common.sh"

make() {
    ggml-plugin-new mine
    meson setup --werror ggml-mine/build ggml-mine
    ninja -C ggml-mine/build
    meson test -C ggml-mine/build --print-errorlogs
    ggml-devices --names --plugin-path "$place/ggml-mine/build" | grep -x MINE0
}

by_cmake() {
    CMAKE_PREFIX_PATH=$(echo /usr/lib/*/ggml-host) cmake -S ggml-mine -B ggml-mine/by-cmake
    cmake --build ggml-mine/by-cmake
    ctest --test-dir ggml-mine/by-cmake --output-on-failure
}

write_add() {
    "$scripts/write_add.sh" ggml-mine/mine.c
    ninja -C ggml-mine/build
    ggml-plugin-check ggml-mine/build/ggml-mine.so | tee checked
    tail -n 1 checked | grep -w '0 failed'
    ggml-conformance --plugin-path "$place/ggml-mine/build" --device MINE0 --op ADD | tee conformance
    grep -E '^ok .*ADD' conformance | grep -v SKIP
}

write_it_wrong() {
    sed -i 's/a\[i\] + b\[i\]/a[i] - b[i]/' ggml-mine/mine.c
    ninja -C ggml-mine/build
    status 1 ggml-plugin-check ggml-mine/build/ggml-mine.so >checked
    grep '^not ok .* op\.' checked
    grep 'skipped need one that failed' checked
    status 1 ggml-conformance --plugin-path "$place/ggml-mine/build" --device MINE0 --op ADD >conformance
    grep '^not ok .*ADD' conformance
}

read_on() {
    # The guides are there, and name what is there.
    doc=/usr/share/doc/libggml-host-dev
    for guide in plugin-contract writing-a-plugin plugin-check security; do
        ls "$doc/$guide.html" "$doc/$guide".md*
    done
    ls /usr/share/ggml-host/skeleton/null.c /usr/share/ggml-host/skeleton/plugin.map
}

step "install a compiler, Meson and the library" install gcc libc6-dev meson ninja-build pkgconf cmake make libggml-host1 libggml-host-dev ggml-host-tools
step "make a plugin, which builds and keeps the contract" make
step "the same by CMake" by_cmake
step "write an ADD: the checks pass" write_add
step "write it wrong: the checks name it" write_it_wrong
step "find the guides" read_on
goal "a plugin with an operation that is checked"
