#!/bin/sh
# SPDX-License-Identifier: MIT
# usage: run.sh NODES GGML-NODE PROGRAM [ARGUMENT]...
# Runs the program with so many nodes on this machine, with the options in TEST_NODE_OPTIONS and mpirun's in TEST_MPI_OPTIONS. Its
# results alone come out.
nodes=$1 node=$2
shift 2
# A root in a container, more processes than cores, and memory of others that may not be read.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 GGML_MPI_DEADLINE=${GGML_MPI_DEADLINE:-20}
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM GGML_MPI_DEADLINE
exec mpirun --oversubscribe --bind-to none --mca btl_vader_single_copy_mechanism none \
    --mca orte_enable_recovery 1 --mca orte_abort_on_non_zero_status 0 \
    $TEST_MPI_OPTIONS -n 1 "$@" : -n "$nodes" "$node" $TEST_NODE_OPTIONS
