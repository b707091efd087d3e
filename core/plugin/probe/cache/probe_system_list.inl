// SPDX-License-Identifier: MIT
// What a probe's result depends on besides the plugin: a change of any of it makes cached results
// worthless. Entries that don't exist on a system don't count.
//
// PROBE_CONTENT(path)    the first bytes of a file
// PROBE_IDENTITY(path)   which file or directory it is and when it was changed last
// PROBE_NAMES(path)      the names in a directory
// PROBE_VARIABLES(text)  environment variables whose name begins so
// PROBE_EXCEPT(text)     but not those that begin so: the library reads them itself, and what a
// helper
//                        finds doesn't depend on them
PROBE_CONTENT("/proc/sys/kernel/random/boot_id")
PROBE_CONTENT("/proc/sys/kernel/osrelease")
PROBE_CONTENT("/proc/driver/nvidia/version")
PROBE_CONTENT("/sys/module/nvidia/version")
PROBE_CONTENT("/sys/module/nvidia/srcversion")
PROBE_CONTENT("/sys/module/nvidia_uvm/srcversion")
PROBE_CONTENT("/sys/module/amdgpu/srcversion")
PROBE_CONTENT("/sys/module/i915/srcversion")
PROBE_CONTENT("/sys/module/xe/srcversion")
PROBE_CONTENT("/sys/module/nouveau/srcversion")
PROBE_CONTENT("/sys/module/amdxdna/srcversion")
PROBE_CONTENT("/sys/module/intel_vpu/srcversion")
PROBE_IDENTITY("/etc/ld.so.cache")
PROBE_IDENTITY("/etc/vulkan/icd.d")
PROBE_IDENTITY("/usr/share/vulkan/icd.d")
PROBE_IDENTITY("/usr/local/share/vulkan/icd.d")
PROBE_IDENTITY("/etc/OpenCL/vendors")
PROBE_NAMES("/sys/bus/pci/devices")
PROBE_NAMES("/sys/class/drm")
PROBE_NAMES("/sys/class/accel")
PROBE_VARIABLES("CUDA_")
PROBE_VARIABLES("NVIDIA_")
PROBE_VARIABLES("HIP_")
PROBE_VARIABLES("HSA_")
PROBE_VARIABLES("ROCR_")
PROBE_VARIABLES("GPU_")
PROBE_VARIABLES("VK_")
PROBE_VARIABLES("MESA_")
PROBE_VARIABLES("LIBGL_")
PROBE_VARIABLES("ZE_")
PROBE_VARIABLES("ONEAPI_")
PROBE_VARIABLES("SYCL_")
PROBE_VARIABLES("LD_")
PROBE_VARIABLES("GGML_") // of whatever plugin: GGML_<NAME>_*
PROBE_EXCEPT("GGML_BACKEND_PATH=")
PROBE_EXCEPT("GGML_DEVICES=")
PROBE_EXCEPT("GGML_NO_BACKTRACE=")
PROBE_EXCEPT("GGML_PLUGIN_PATH=")
PROBE_EXCEPT("GGML_PLUGIN_SHA256=")
PROBE_EXCEPT("GGML_PROBE_")
PROBE_EXCEPT("GGML_SCHED_")
PROBE_VARIABLES("OMPI_COMM_WORLD_RANK")
PROBE_VARIABLES("OMPI_COMM_WORLD_SIZE")
PROBE_VARIABLES("OMPI_NUM_APP_CTX")
PROBE_VARIABLES("PMI_RANK")
PROBE_VARIABLES("PMI_SIZE")
#undef PROBE_CONTENT
#undef PROBE_IDENTITY
#undef PROBE_NAMES
#undef PROBE_VARIABLES
#undef PROBE_EXCEPT
