#!/bin/sh
# SPDX-License-Identifier: MIT
# An application's developer, from a Debian system with nothing in it to one binary that computes where nothing is installed.
# Usage: app.sh PACKAGES     PACKAGES: a folder with the Debian packages
packages=$1
. "$(dirname "$0")/common.sh"
sample=/usr/share/doc/libggml-host-dev/examples/one-binary

build_shared() {
    # shellcheck disable=SC2046
    cc -Wall -Werror "$sample/main.c" $(pkg-config --cflags --libs ggml-host) -o app-shared
    ./app-shared | grep 'computed \[9, 4\]'
}

build_static() {
    # shellcheck disable=SC2046
    cc -Wall -Werror "$sample/main.c" $(pkg-config --cflags --libs ggml-host-static) -o app
    ldd ./app >needs
    ! grep -v -e linux-vdso -e /ld-linux -e 'lib[cm]\.so' needs
}

ship() {
    mkdir -p ship/ggml-plugins
    cp app ship/
    apt-get download -q ggml-host-plugin-cpu 2>/dev/null || cp "$packages"/ggml-host-plugin-cpu_*.deb .
    dpkg-deb -x ggml-host-plugin-cpu_*.deb extracted
    cp extracted/usr/lib/*/ggml-plugins/ggml-cpu.so ship/ggml-plugins/
    echo "no plugin" >ship/ggml-plugins/ggml-text.so
    apt-get purge -q -y libggml-host1 libggml-host-dev
    mv ship /opt/app
    chmod -R go-w /opt/app
    /opt/app/app | tee wrote
    grep '/opt/app/ggml-plugins/ggml-cpu.so: in use' wrote
    grep 'ggml-text.so: .*not' wrote
    grep 'computed \[9, 4\]' wrote
}

nothing_else() {
    mkdir -p empty
    # shellcheck disable=SC2046
    cc -Wall "$sample/main.c" $(pkg-config --cflags --libs --static ggml-host-static) -static -o empty/app
    chroot empty /app | grep 'computed \[9, 4\]'
}

step "install a compiler and the library" install gcc libc6-dev pkgconf libggml-host1 libggml-host-dev
step "build the sample with the shared library" build_shared
step "build it with the static one: it needs the C library alone" build_static
step "link all of it: it runs in a folder with no other file" nothing_else
step "ship it with a plugin, where nothing of this project is installed" ship
goal "one binary, and a plugin beside it"
