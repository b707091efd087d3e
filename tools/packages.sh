# SPDX-License-Identifier: MIT
# Sourced by the entry scripts: finds out what is missing and installs it.

# (dpkg-dev is what tells Meson the library folder of Debian.)
# What each system calls the things that a build, and in addition the tests, need.
APT_BUILD="gcc libc6-dev dpkg-dev meson ninja-build pkg-config libhwloc-dev libjansson-dev libelf-dev libcapstone-dev scdoc cmark-gfm libvulkan-dev libvulkan-volk-dev glslc"
APT_TEST="g++ git cmake rustc libcmocka-dev python3 python3-jsonschema abigail-tools binutils libxml2-utils mesa-vulkan-drivers vulkan-validationlayers libopenmpi-dev openmpi-bin clang-format-14 musl-tools"
DNF_BUILD="gcc meson ninja-build pkgconf-pkg-config hwloc-devel jansson-devel elfutils-libelf-devel capstone-devel scdoc vulkan-loader-devel volk-devel glslc"
DNF_TEST="git rust gcc-c++ cmake libcmocka-devel python3 python3-jsonschema libabigail binutils libxml2 mesa-vulkan-drivers vulkan-validation-layers"
PACMAN_BUILD="gcc meson ninja pkgconf hwloc jansson libelf capstone scdoc vulkan-headers vulkan-icd-loader volk shaderc"
PACMAN_TEST="git rust cmake cmocka python python-jsonschema libabigail binutils libxml2 vulkan-swrast vulkan-validation-layers openmpi"
BREW_BUILD="meson ninja pkg-config hwloc jansson scdoc vulkan-headers vulkan-loader vulkan-volk shaderc"
BREW_TEST="rust cmake cmocka python3"

say() {
    if [ -t 1 ]; then printf '\033[1m==> %s\033[0m\n' "$*"; else printf '==> %s\n' "$*"; fi
}

# Whether everything that $1 ("build" or "test") needs is there already.
have_everything() {
    local tool
    for tool in cc meson ninja pkg-config; do command -v $tool >/dev/null || return 1; done
    pkg-config --exists 'hwloc >= 2.4' jansson || return 1
    [ "$1" = build ] && return 0
    for tool in c++ cmake python3 nm; do command -v $tool >/dev/null || return 1; done
    pkg-config --exists cmocka && /usr/bin/env python3 -c '' || return 1
}

# as_root COMMAND...
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "error: as root, run: $*" >&2
        exit 2
    fi
}

apt_install() {
    local missing="" name
    for name in "$@"; do
        dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'install ok installed' || missing+=" $name"
    done
    [ -z "$missing" ] && return 0
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        echo "Something that is needed is missing, and there is no sudo. As root, run the following line, then this again:" >&2
        echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
        exit 2
    fi
    say "installing$missing"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

# add_architecture NAME: lets packages of another architecture be installed, by NAME:ARCHITECTURE.
add_architecture() {
    dpkg --print-foreign-architectures | grep -qx "$1" || as_root dpkg --add-architecture "$1"
}

# ensure_packages build|test [extra Debian packages]: installs on Debian and its kin, elsewhere names what
# to install and stops.
ensure_packages() {
    local kind=$1
    shift
    local apt=$APT_BUILD dnf=$DNF_BUILD pacman=$PACMAN_BUILD brew=$BREW_BUILD
    if [ "$kind" = test ]; then
        apt+=" $APT_TEST"; dnf+=" $DNF_TEST"; pacman+=" $PACMAN_TEST"; brew+=" $BREW_TEST"
    fi
    if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
        # shellcheck disable=SC2086
        apt_install $apt "$@"
        return
    fi
    have_everything "$kind" && return
    echo "Something that is needed is missing. Install it with the line for your system, then run this again:" >&2
    echo "  Fedora:   sudo dnf install $dnf" >&2
    echo "  Arch:     sudo pacman -S --needed $pacman" >&2
    echo "  Homebrew: brew install $brew" >&2
    exit 2
}
