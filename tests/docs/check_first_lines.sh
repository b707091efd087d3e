#!/bin/sh
# SPDX-License-Identifier: MIT
# Fails for a file of C whose second line, below the licence's, is not a comment: each begins with what it is for.
cd "$1" || exit 1
found=$(find abi core plugins tools -name '*.[ch]' -o -name '*.inl')
[ -n "$found" ] || { echo "there are no files to look at"; exit 1; }
printf '%s\n' "$found" | xargs awk '
    FNR == 1 && !/SPDX-License-Identifier/ { print FILENAME ": the first line is not the licence"; bad = 1 }
    FNR == 2 && !/^\/[\/*]/ { print FILENAME ": the second line does not say what the file is for"; bad = 1 }
    END { exit bad }'
