// SPDX-License-Identifier: MIT
// Control groups that the tests replay.
//
// CGROUP_ROW(name, self_cgroup, mountinfo, files, limit)
//   self_cgroup  text of /proc/self/cgroup
//   mountinfo    text of /proc/self/mountinfo; NULL: not readable
//   files        "path=content;..." below the replayed root; '|' stands for a newline
//   limit        CPUs' worth of time; 0: none
#define V2_MOUNT                                                                                   \
    "22 1 8:1 / / rw - ext4 /dev/root rw\n"                                                        \
    "30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
#define V1_MOUNT                                                                                   \
    "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                                   \
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:10 - cgroup cgroup rw,cpu,cpuacct\n"        \
    "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
CGROUP_ROW("nothing", "", "", "", 0)
CGROUP_ROW("v2 without limit", "0::/user.slice\n", V2_MOUNT,
           "/sys/fs/cgroup/user.slice/cpu.max=max 100000|", 0)
CGROUP_ROW("v2, half a CPU", "0::/box\n", V2_MOUNT, "/sys/fs/cgroup/box/cpu.max=50000 100000|", 0.5)
CGROUP_ROW("v2, two CPUs of another period", "0::/box\n", V2_MOUNT,
           "/sys/fs/cgroup/box/cpu.max=20000 10000|", 2)
CGROUP_ROW("v2, 7.65 CPUs set by an ancestor", "0::/pod/box/worker\n", V2_MOUNT,
           "/sys/fs/cgroup/pod/cpu.max=765000 100000|;/sys/fs/cgroup/pod/box/cpu.max=max 100000|;"
           "/sys/fs/cgroup/pod/box/worker/cpu.max=1600000 100000|", 7.65)
CGROUP_ROW("v2 in a namespace: the limit stands at the mount point", "0::/\n", V2_MOUNT,
           "/sys/fs/cgroup/cpu.max=300000 100000|", 3)
CGROUP_ROW("v2, outside of the namespace's root", "0::/../../box\n", V2_MOUNT,
           "/sys/fs/cgroup/cpu.max=300000 100000|;/box/cpu.max=100000 100000|", 3)
CGROUP_ROW("v2 mounted from a subtree", "0::/docker/abc/inner\n",
           "30 22 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup2 rw\n",
           "/sys/fs/cgroup/inner/cpu.max=400000 100000|;/sys/fs/cgroup/cpu.max=250000 100000|", 2.5)
CGROUP_ROW("v2 at the usual place when mounts can't be read", "0::/box\n", NULL,
           "/sys/fs/cgroup/box/cpu.max=150000 100000|", 1.5)
CGROUP_ROW("v2 mounted at a place with a blank", "0::/box\n",
           "30 22 0:26 / /my\\040groups rw - cgroup2 cgroup2 rw\n",
           "/my groups/box/cpu.max=100000 100000|", 1)
CGROUP_ROW("v1 without limit", "4:cpu,cpuacct:/box\n3:cpuset:/box\n", V1_MOUNT,
           "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us=-1|;"
           "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us=100000|", 0)
CGROUP_ROW("v1, an ancestor is tighter", "4:cpuacct,cpu:/pod/box\n3:cpuset:/\n", V1_MOUNT,
           "/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_quota_us=800000|;"
           "/sys/fs/cgroup/cpu,cpuacct/pod/box/cpu.cfs_period_us=100000|;"
           "/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us=125000|;"
           "/sys/fs/cgroup/cpu,cpuacct/pod/cpu.cfs_period_us=50000|", 2.5)
CGROUP_ROW("v1 and v2 side by side", "1:cpu:/box\n0::/box\n",
           "32 31 0:29 / /v1 rw - cgroup cgroup rw,cpu\n33 31 0:30 / /v2 rw - cgroup2 none rw\n",
           "/v1/box/cpu.cfs_quota_us=600000|;/v1/box/cpu.cfs_period_us=100000|;"
           "/v2/box/cpu.max=400000 100000|", 4)
CGROUP_ROW("v1: cpuset and cpuacct are not cpu", "5:cpuset:/box\n6:cpuacct:/box\n", V1_MOUNT,
           "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us=100000|;"
           "/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us=100000|", 0)
CGROUP_ROW("rubbish in the files", "0::/box\n", V2_MOUNT,
           "/sys/fs/cgroup/box/cpu.max=lots of|;/sys/fs/cgroup/cpu.max=100000 0|", 0)
CGROUP_ROW("rubbish in /proc", "0:\n::\n:::::\n0::/box", "a b c\n- - -\n1 2 3 4 5 6 - cgroup2\n",
           "/sys/fs/cgroup/box/cpu.max=100000 100000|", 1)
#undef V1_MOUNT
#undef V2_MOUNT
#undef CGROUP_ROW
