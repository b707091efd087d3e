# SPDX-License-Identifier: MIT
# Sourced by the newcomers' scripts: steps with the time that each took, and expectations.
set -eu
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
unset GGML_PLUGIN_PATH GGML_DEVICES
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
begun=$(date +%s%N)

# seconds SINCE: with one decimal.
seconds() {
    tenths=$((($(date +%s%N) - $1) / 100000000))
    echo "$((tenths / 10)).$((tenths % 10))"
}

# step NAME COMMAND...: the first one that fails is the last, and shows what it wrote.
step() {
    name=$1
    shift
    since=$(date +%s%N)
    # A subshell of its own: "set -e" does not hold where the status is looked at.
    set +e
    (set -ex; "$@") >"$place/log" 2>&1
    status=$?
    set -e
    if [ "$status" != 0 ]; then
        echo "not ok - $name (status $status)"
        tail -n 40 "$place/log" | sed 's/^/# /'
        exit 1
    fi
    printf 'ok - %s (%s s)\n' "$name" "$(seconds "$since")"
}

# install PACKAGE...: those of this project by their names, from the folder.
install() {
    list=""
    for package in "$@"; do
        file=$(echo "$packages/$package"_*.deb)
        if [ -f "$file" ]; then list="$list $file"; else list="$list $package"; fi
    done
    # shellcheck disable=SC2086
    apt-get install -q -y --no-install-recommends $list
}

# status N COMMAND...: ends with exit status N.
status() {
    wanted=$1
    shift
    got=0
    "$@" || got=$?
    [ "$got" = "$wanted" ] || { echo "exit status $got instead of $wanted: $*"; return 1; }
}

goal() {
    printf 'ok - goal: %s (%s s in all)\n' "$1" "$(seconds "$begun")"
}
