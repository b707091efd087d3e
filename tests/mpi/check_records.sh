#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: check_records.sh GGML-DEVICES
# What ggml-devices says of the plugin without a job, and that trying it out in a helper starts no MPI.
devices=$1
n=0
failed=0
echo 1..4

# expect TEXT WHAT: the last output has the text.
expect() {
    n=$((n + 1))
    if printf '%s' "$output" | tr '\n' ' ' | grep -q "$1"; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        printf '%s\n' "$output" | sed 's/^/# /'
        failed=1
    fi
}

job() {
    env OMPI_COMM_WORLD_RANK="$1" OMPI_COMM_WORLD_SIZE=2 OMPI_NUM_APP_CTX="$2" "$devices" --no-cache --color never
}

output=$("$devices" --no-cache --color never)
expect 'start the program with mpirun -n 1 PROGRAM' 'without a job the record says how to start'
output=$(job 0 1)
expect 'the MPI job has no ggml-node' 'a job of one program has no nodes'
output=$(job 1 2)
expect 'only rank 0 uses nodes' 'a process of another rank uses none'
# There is no such job: whoever started MPI would find no other process, and say so.
output=$(job 0 2)
expect 'in use *[^ ]*ggml-mpi.so' 'a helper starts no MPI'
exit $failed
