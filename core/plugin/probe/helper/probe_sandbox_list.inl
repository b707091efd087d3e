// SPDX-License-Identifier: MIT
// Exceptions and prohibitions of the helper's sandbox.
//
// SANDBOX_WRITE(path)         a file or folder whose files may be written to
// SANDBOX_MAKE(path)          a folder in which files may also be created and removed
// SANDBOX_DEVICES(dir, text)  what is in dir and begins with text may be written to
// SANDBOX_FORBID(name)        a system call that fails with EPERM
//
// The folders are listed with their reasons in docs/security.md.
#ifdef SANDBOX_WRITE
SANDBOX_WRITE("/dev/null")
SANDBOX_WRITE("/dev/zero")
SANDBOX_WRITE("/dev/full")
SANDBOX_WRITE("/dev/random")
SANDBOX_WRITE("/dev/urandom")
SANDBOX_WRITE("/dev/dri")      // GPUs in the kernel's graphics subsystem
SANDBOX_WRITE("/dev/accel")    // accelerators in the kernel's own subsystem
SANDBOX_WRITE("/dev/kfd")      // AMD, computing
SANDBOX_WRITE("/dev/dxg")      // GPUs in Windows' subsystem for Linux
SANDBOX_WRITE("/dev/dma_heap") // memory that devices share
SANDBOX_WRITE("/dev/udmabuf")
SANDBOX_WRITE("/dev/ion")
SANDBOX_WRITE("/proc/self")      // names of threads
SANDBOX_WRITE("/tmp/nvidia-mps") // NVIDIA's server, where it runs
SANDBOX_MAKE("/dev/shm")         // semaphores and shared memory by name: AMD's and Intel's drivers
SANDBOX_DEVICES("/dev", "nvidia")
SANDBOX_DEVICES("/dev", "nvhost") // NVIDIA's systems on a chip
SANDBOX_DEVICES("/dev", "nvmap")
SANDBOX_DEVICES("/dev", "mali")
SANDBOX_DEVICES("/dev", "kgsl") // Qualcomm
SANDBOX_DEVICES("/dev", "fastrpc")
SANDBOX_DEVICES("/dev", "adsprpc")
SANDBOX_DEVICES("/dev", "galcore") // Vivante
SANDBOX_DEVICES("/dev", "rga")     // Rockchip
SANDBOX_DEVICES("/dev", "rknpu")
SANDBOX_DEVICES("/dev", "mpp_service")
SANDBOX_DEVICES("/dev", "davinci") // Huawei
SANDBOX_DEVICES("/dev", "devmm_svm")
SANDBOX_DEVICES("/dev", "hisi_hdc")
SANDBOX_DEVICES("/dev", "cambricon")
SANDBOX_DEVICES("/dev", "mtgpu") // Moore Threads
SANDBOX_DEVICES("/dev", "mxcd")  // MetaX
SANDBOX_DEVICES("/dev", "iluvatar")
SANDBOX_DEVICES("/dev", "apex_") // Coral
SANDBOX_DEVICES("/dev", "tenstorrent")
#endif
#ifdef SANDBOX_FORBID
// Other processes.
#if !GGML_SANITIZED // looks for leaks as a tracer of its own process
SANDBOX_FORBID(SYS_ptrace)
#endif
SANDBOX_FORBID(SYS_process_vm_readv)
SANDBOX_FORBID(SYS_process_vm_writev)
SANDBOX_FORBID(SYS_kcmp)
SANDBOX_FORBID(SYS_pidfd_getfd)
// Whose and which a file is: Landlock does not look at these.
#ifdef SYS_chmod
SANDBOX_FORBID(SYS_chmod)
SANDBOX_FORBID(SYS_chown)
SANDBOX_FORBID(SYS_lchown)
#endif
SANDBOX_FORBID(SYS_fchmod)
SANDBOX_FORBID(SYS_fchmodat)
SANDBOX_FORBID(SYS_fchmodat2)
SANDBOX_FORBID(SYS_fchown)
SANDBOX_FORBID(SYS_fchownat)
SANDBOX_FORBID(SYS_setxattr)
SANDBOX_FORBID(SYS_lsetxattr)
SANDBOX_FORBID(SYS_fsetxattr)
SANDBOX_FORBID(SYS_setxattrat)
SANDBOX_FORBID(SYS_removexattr)
SANDBOX_FORBID(SYS_lremovexattr)
SANDBOX_FORBID(SYS_fremovexattr)
SANDBOX_FORBID(SYS_removexattrat)
SANDBOX_FORBID(SYS_file_setattr)
SANDBOX_FORBID(SYS_open_by_handle_at)
// The file system and other views of the system.
SANDBOX_FORBID(SYS_mount)
SANDBOX_FORBID(SYS_umount2)
SANDBOX_FORBID(SYS_pivot_root)
SANDBOX_FORBID(SYS_chroot)
SANDBOX_FORBID(SYS_open_tree)
SANDBOX_FORBID(SYS_move_mount)
SANDBOX_FORBID(SYS_fsopen)
SANDBOX_FORBID(SYS_fsconfig)
SANDBOX_FORBID(SYS_fsmount)
SANDBOX_FORBID(SYS_fspick)
SANDBOX_FORBID(SYS_mount_setattr)
SANDBOX_FORBID(SYS_unshare)
SANDBOX_FORBID(SYS_setns)
SANDBOX_FORBID(SYS_quotactl)
SANDBOX_FORBID(SYS_quotactl_fd)
// The machine and its kernel.
SANDBOX_FORBID(SYS_bpf)
SANDBOX_FORBID(SYS_perf_event_open)
SANDBOX_FORBID(SYS_userfaultfd)
SANDBOX_FORBID(SYS_io_uring_setup) // would open sockets past the filter
SANDBOX_FORBID(SYS_kexec_load)
SANDBOX_FORBID(SYS_kexec_file_load)
SANDBOX_FORBID(SYS_init_module)
SANDBOX_FORBID(SYS_finit_module)
SANDBOX_FORBID(SYS_delete_module)
SANDBOX_FORBID(SYS_reboot)
SANDBOX_FORBID(SYS_swapon)
SANDBOX_FORBID(SYS_swapoff)
SANDBOX_FORBID(SYS_acct)
SANDBOX_FORBID(SYS_syslog)
SANDBOX_FORBID(SYS_vhangup)
SANDBOX_FORBID(SYS_sethostname)
SANDBOX_FORBID(SYS_setdomainname)
SANDBOX_FORBID(SYS_settimeofday)
SANDBOX_FORBID(SYS_clock_settime)
SANDBOX_FORBID(SYS_clock_adjtime)
SANDBOX_FORBID(SYS_adjtimex)
#ifdef SYS_iopl
SANDBOX_FORBID(SYS_iopl)
SANDBOX_FORBID(SYS_ioperm)
#endif
// Keys of the user.
SANDBOX_FORBID(SYS_add_key)
SANDBOX_FORBID(SYS_request_key)
SANDBOX_FORBID(SYS_keyctl)
#endif
#undef SANDBOX_WRITE
#undef SANDBOX_MAKE
#undef SANDBOX_DEVICES
#undef SANDBOX_FORBID
