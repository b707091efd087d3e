#!/bin/sh
# SPDX-License-Identifier: MIT
# A person at a terminal, from a Debian system with nothing in it to knowing what the machine can do.
# Usage: person.sh PACKAGES     PACKAGES: a folder with the Debian packages
packages=$1
. "$(dirname "$0")/common.sh"

# at COLUMNS TERM COMMAND: what is written to a terminal.
at() {
    TERM=$2 script -qec "stty cols $1; $3" /dev/null
}

list() {
    ggml-devices | tee devices
    grep -E '^ *CPU ' devices
    grep -E 'Vulkan0' devices
    at 80 xterm-256color ggml-devices | grep "$(printf '\033')\["
}

narrow() {
    at 50 dumb ggml-devices | tr -d '\r' >narrow
    ! grep -E '^.{51,}$' narrow | grep -v / # paths are not cut
    ! grep "$(printf '\033')" narrow
    ! LC_ALL=C ggml-devices --tree | LC_ALL=C grep '[^ -~]'
}

one_device() {
    ggml-devices CPU | grep -i -A30 operations | grep MUL_MAT
    status 3 ggml-devices NONE 2>said
    grep CPU said
}

machine_readable() {
    ggml-devices --json >devices.json
    python3 -c 'import json; print([d["name"] for d in json.load(open("devices.json"))["devices"]])' | grep CPU
    status 2 ggml-devices --json --tree
    for tool in ggml-devices ggml-bench ggml-conformance ggml-plugin-check; do
        status 4 sh -c "$tool --help >/dev/full"
        $tool --version
        zcat "/usr/share/man/man1/$tool.1.gz" | grep NAME
    done
}

complete_names() {
    # shellcheck disable=SC2016
    bash -c 'source /usr/share/bash-completion/completions/ggml-devices
        COMP_WORDS=(ggml-devices --tr) COMP_CWORD=1 COMP_LINE="ggml-devices --tr" COMP_POINT=17
        f=$(complete -p ggml-devices | sed "s/.*-F \([^ ]*\).*/\1/")
        $f ggml-devices --tr ggml-devices; printf "%s\n" "${COMPREPLY[@]}"' | grep -e --tree
}

page() {
    ggml-bench report --quick --device CPU --output report.html
    grep -c '<svg' report.html
    ! grep -E '(src|href)="?https?:' report.html
}

step "install the tools, and a driver for Vulkan" install ggml-host-tools ggml-host-plugin-vulkan libggml-host1 libhwloc15 mesa-vulkan-drivers python3
step "list the devices, with colours on a terminal" list
step "each device computes something that is checked" ggml-devices --test
step "a narrow terminal without colours, and another without UTF-8" narrow
step "one device in detail; a name that is not there" one_device
step "for programs; help, pages of the manual, and a full disk" machine_readable
step "names are completed" complete_names
step "measure the machine and draw a page" page
goal "what this machine can do"
