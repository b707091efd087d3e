// SPDX-License-Identifier: MIT
// Control groups that limit memory, which the tests replay.
//
// CGROUP_MEMORY_ROW(name, self_cgroup, mountinfo, files, left)
//   self_cgroup, mountinfo, files
//            as in cgroup_list.inl
//   left     bytes that may still be taken; UINT64_MAX: no limit
#define V2_MOUNT "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define V1_MOUNT                                                                                   \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw shared:10 - cgroup cgroup rw,cpu\n"                        \
    "33 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
CGROUP_MEMORY_ROW("nothing", "", "", "", UINT64_MAX)
CGROUP_MEMORY_ROW("v2 without limit", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=max|;/sys/fs/cgroup/box/memory.current=4096|",
                  UINT64_MAX)
CGROUP_MEMORY_ROW("v2", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=1073741824|;"
                  "/sys/fs/cgroup/box/memory.current=1048576|",
                  1072693248)
CGROUP_MEMORY_ROW("v2, files in caches of which the last two are dropped", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=1000000|;"
                  "/sys/fs/cgroup/box/memory.current=900000|;"
                  "/sys/fs/cgroup/box/memory.stat=anon 50000|file 70000|shmem 10000|"
                  "workingset_refault_inactive_file 7|inactive_file 20000|active_file 40000|",
                  160000)
CGROUP_MEMORY_ROW("v2, an ancestor has less", "0::/pod/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/pod/box/memory.max=max|;"
                  "/sys/fs/cgroup/pod/box/memory.current=300|;"
                  "/sys/fs/cgroup/pod/memory.max=1000|;/sys/fs/cgroup/pod/memory.current=400|;"
                  "/sys/fs/cgroup/memory.max=5000|;/sys/fs/cgroup/memory.current=4300|",
                  600)
CGROUP_MEMORY_ROW("v2 in a namespace: the limit stands at the mount point", "0::/\n", V2_MOUNT,
                  "/sys/fs/cgroup/memory.max=8192|;/sys/fs/cgroup/memory.current=4096|", 4096)
CGROUP_MEMORY_ROW("v2, nothing left: a limit that was lowered", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=4096|;/sys/fs/cgroup/box/memory.current=8192|", 0)
CGROUP_MEMORY_ROW("v2, more in caches than in use: read at different times", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=4096|;/sys/fs/cgroup/box/memory.current=1000|;"
                  "/sys/fs/cgroup/box/memory.stat=inactive_file 2000|",
                  4096)
CGROUP_MEMORY_ROW("v2, usage can't be read", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=4096|", 4096)
CGROUP_MEMORY_ROW("v1 without limit", "4:memory:/box\n1:cpu:/\n0::/\n", V1_MOUNT,
                  "/sys/fs/cgroup/memory/box/memory.limit_in_bytes=9223372036854771712|;"
                  "/sys/fs/cgroup/memory/box/memory.usage_in_bytes=8192|",
                  UINT64_MAX)
CGROUP_MEMORY_ROW("v1, figures with those of groups below", "4:memory:/box\n1:cpu:/\n", V1_MOUNT,
                  "/sys/fs/cgroup/memory/box/memory.limit_in_bytes=1000000|;"
                  "/sys/fs/cgroup/memory/box/memory.usage_in_bytes=900000|;"
                  "/sys/fs/cgroup/memory/box/memory.stat=cache 1|inactive_file 3|active_file 5|"
                  "total_cache 70000|total_inactive_file 10000|total_active_file 20000|",
                  130000)
CGROUP_MEMORY_ROW("v1, an ancestor has less", "4:memory:/pod/box\n", V1_MOUNT,
                  "/sys/fs/cgroup/memory/pod/box/memory.limit_in_bytes=2000|;"
                  "/sys/fs/cgroup/memory/pod/box/memory.usage_in_bytes=100|;"
                  "/sys/fs/cgroup/memory/pod/memory.limit_in_bytes=3000|;"
                  "/sys/fs/cgroup/memory/pod/memory.usage_in_bytes=1500|",
                  1500)
CGROUP_MEMORY_ROW("v1 mounted from a subtree", "4:memory:/docker/abc\n",
                  "33 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
                  "/sys/fs/cgroup/memory/memory.limit_in_bytes=2000|;"
                  "/sys/fs/cgroup/memory/memory.usage_in_bytes=100|",
                  1900)
CGROUP_MEMORY_ROW("v1 at the usual place when mounts can't be read", "4:memory:/box\n", NULL,
                  "/sys/fs/cgroup/memory/box/memory.limit_in_bytes=2000|;"
                  "/sys/fs/cgroup/memory/box/memory.usage_in_bytes=500|",
                  1500)
CGROUP_MEMORY_ROW("v1: the group of another controller", "1:cpu:/box\n4:memory:/\n", V1_MOUNT,
                  "/sys/fs/cgroup/memory/box/memory.limit_in_bytes=2000|;"
                  "/sys/fs/cgroup/cpu/box/memory.limit_in_bytes=2000|",
                  UINT64_MAX)
CGROUP_MEMORY_ROW("rubbish in the files", "0::/box\n", V2_MOUNT,
                  "/sys/fs/cgroup/box/memory.max=lots|;/sys/fs/cgroup/memory.max=5000|;"
                  "/sys/fs/cgroup/memory.current=some|;"
                  "/sys/fs/cgroup/memory.stat=inactive_file|active_file much|inactive_file",
                  5000)
#undef V1_MOUNT
#undef V2_MOUNT
#undef CGROUP_MEMORY_ROW
