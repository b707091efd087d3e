#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails for a source file that does not begin with the licence and then what it is for: lines 1 and 2 of C, headers,
# lists and included GLSL; lines 2 and 3 of a shader, whose first line is its #version.
cd "$1" || exit 1
found=$(find abi core plugins tools tests \( -name '*.[ch]' -o -name '*.inl' -o -name '*.comp' -o -name '*.glsl' \) -type f)
[ -n "$found" ] || { echo "there are no files to look at"; exit 1; }
printf '%s\n' "$found" | xargs awk '
    FNR == 1 { licence = 1 }
    FNR == 1 && /^#version/ { licence = 2; next }
    FNR == licence && !/SPDX-License-Identifier/ { print FILENAME ": line " FNR " is not the licence"; bad = 1 }
    FNR == licence + 1 && !/^\/[\/*]/ { print FILENAME ": line " FNR " does not say what the file is for"; bad = 1 }
    END { exit bad }'
