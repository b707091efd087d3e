// SPDX-License-Identifier: MIT
// Machines that the topology tests replay.
//
// MACHINE_ROW(name, synthetic, removed, slow, allowed, affinity, quota, expected...)
//   synthetic  hwloc's synthetic description
//   removed    logical CPUs that this machine does not have
//   slow       logical CPUs of its efficiency cores; "": all cores are of one kind
//   allowed    what the cpuset control group leaves; "": everything
//   affinity   what taskset leaves; "": everything
//   quota      CPUs' worth of time that control groups grant; 0: no limit
//   expected   packages, cores, performance cores, logical CPUs, NUMA nodes, threads, bound by,
//              L1d, L2 and L3 of a performance core in KiB
MACHINE_ROW("desktop with SMT",
            "pack:1 l3:1(size=32MiB) l2:8(size=512KiB) l1d:1(size=32KiB) core:1 pu:2", "", "", "",
            "", 0,
            1, 8, 8, 16, 1, 8, CORES, 32, 512, 32768)
MACHINE_ROW("hybrid laptop, 8 performance and 8 efficiency cores",
            "pack:1 l3:1(size=30MiB) l2:16(size=1280KiB) l1d:1(size=48KiB) core:1 pu:2",
            "17,19,21,23,25,27,29,31", "16,18,20,22,24,26,28,30", "", "", 0,
            1, 16, 8, 24, 1, 8, CORES, 48, 1280, 30720)
MACHINE_ROW("hybrid laptop, held on its efficiency cores",
            "pack:1 l3:1(size=30MiB) l2:16(size=1280KiB) l1d:1(size=48KiB) core:1 pu:2",
            "17,19,21,23,25,27,29,31", "16,18,20,22,24,26,28,30", "", "16,18,20,22", 0,
            1, 4, 4, 4, 1, 4, AFFINITY, 48, 1280, 30720)
MACHINE_ROW("hybrid laptop, held on some of both kinds",
            "pack:1 l3:1(size=30MiB) l2:16(size=1280KiB) l1d:1(size=48KiB) core:1 pu:2",
            "17,19,21,23,25,27,29,31", "16,18,20,22,24,26,28,30", "", "0-3,16,18", 0,
            1, 4, 2, 6, 1, 2, AFFINITY, 48, 1280, 30720)
MACHINE_ROW("server with two sockets, two NUMA nodes each",
            "pack:2 numa:2 l3:1(size=36MiB) l2:12(size=2MiB) l1d:1(size=48KiB) core:1 pu:2", "",
            "", "",
            "", 0, 2, 48, 48, 96, 4, 48, CORES, 48, 2048, 36864)
MACHINE_ROW("server that numbers CPUs across its two sockets",
            "pack:2 core:4 pu:1(indexes=0,2,4,6,1,3,5,7)", "", "", "", "", 0,
            2, 8, 8, 8, 1, 8, CORES, 0, 0, 0)
MACHINE_ROW("server bound to one NUMA node",
            "pack:2 numa:2 l3:1(size=36MiB) l2:12(size=2MiB) l1d:1(size=48KiB) core:1 pu:2", "",
            "", "",
            "24-47", 0, 1, 12, 12, 24, 1, 12, AFFINITY, 48, 2048, 36864)
MACHINE_ROW("SMT off", "pack:1 l3:1(size=16MiB) l2:6(size=256KiB) l1d:1(size=32KiB) core:1 pu:1",
            "", "",
            "", "", 0, 1, 6, 6, 6, 1, 6, CORES, 32, 256, 16384)
MACHINE_ROW("one core without known caches", "pack:1 core:1 pu:1", "", "", "", "", 0,
            1, 1, 1, 1, 1, 1, CORES, 0, 0, 0)
MACHINE_ROW("container with half a CPU", "pack:1 core:16 pu:2", "", "", "", "", 0.5,
            1, 16, 16, 32, 1, 1, MINIMUM, 0, 0, 0)
MACHINE_ROW("container with two CPUs", "pack:1 core:16 pu:2", "", "", "", "", 2,
            1, 16, 16, 32, 1, 2, QUOTA, 0, 0, 0)
MACHINE_ROW("container with 7.65 CPUs", "pack:1 core:16 pu:2", "", "", "", "", 7.65,
            1, 16, 16, 32, 1, 7, QUOTA, 0, 0, 0)
MACHINE_ROW("container with more quota than cores", "pack:1 core:4 pu:2", "", "", "", "", 6,
            1, 4, 4, 8, 1, 4, CORES, 0, 0, 0)
MACHINE_ROW("cpuset of three cores, one of them half", "pack:1 core:8 pu:2", "", "", "4-8", "", 0,
            1, 3, 3, 5, 1, 3, AFFINITY, 0, 0, 0)
MACHINE_ROW("cpuset, affinity and quota together", "pack:1 core:8 pu:2", "", "", "0-11", "8-15",
            1.5,
            1, 2, 2, 4, 1, 1, QUOTA, 0, 0, 0)
MACHINE_ROW("256 logical CPUs", "pack:2 numa:1 core:64 pu:2", "", "", "", "", 0,
            2, 128, 128, 256, 2, 128, CORES, 0, 0, 0)
MACHINE_ROW("only CPUs above 64", "pack:2 numa:1 core:64 pu:2", "", "", "", "200-207", 0,
            1, 4, 4, 8, 1, 4, AFFINITY, 0, 0, 0)
#undef MACHINE_ROW
