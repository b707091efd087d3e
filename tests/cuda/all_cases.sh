#!/bin/sh
# SPDX-License-Identifier: MIT
# All conformance cases on the emulated CUDA device, in three orders of threads, blocks and nodes of graphs: each in turn, and two
# that follow from seeds. Usage: all_cases.sh CONFORMANCE PLUGIN_FOLDER [OPTION...]
conformance=$1
folder=$2
shift 2
status=0
for seed in 0 1 2; do
    echo "# order $seed"
    out=$(SIMT_SEED=$seed FAKE_CUDA_SEED=$seed "$conformance" --plugin-path "$folder" --device CUDA0 --claims "$@") || status=1
    printf '%s\n' "$out" | grep -v '^ok .* of ' # what failed, and how many cases there were
done
exit $status
