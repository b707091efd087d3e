// SPDX-License-Identifier: MIT
// A machine as Linux shows it in /sys, written from hwloc's description of one.
#ifndef TESTS_TOPOLOGY_SYSTEM_FILES_H
#define TESTS_TOPOLOGY_SYSTEM_FILES_H

#include <hwloc.h>

// Writes ROOT/sys with the CPUs, caches and NUMA nodes of a topology; `fast` are the CPUs of the
// performance cores, NULL where all are alike. Fails the test if it can't.
void system_files_write(const char *root, hwloc_topology_t topology, hwloc_const_bitmap_t fast);

// Gives a CPU of such a machine a highest frequency.
void system_files_write_frequency(const char *root, unsigned cpu, unsigned mhz);

#endif
