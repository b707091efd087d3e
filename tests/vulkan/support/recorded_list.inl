// SPDX-License-Identifier: MIT
// RECORDED(name, usable, reason, type, id, members of struct recorded ...)
RECORDED(nvidia_rtx_4090, true, "", GPU, "0000:01:00.0", .device = "NVIDIA GeForce RTX 4090",
         .driver = "NVIDIA", .info = "535.183.01",
         .device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 3, 242), .subgroup = 32, .groups_x = 2147483647,
         .shared = 49152, .alignment = 16, .range = UINT32_MAX, .fp16 = true, .storage8 = true,
         .storage16 = true, .int_dot = true, .coopmat = true, .pci = true, .queue = true,
         .pci_bus = 1)
RECORDED(amd_rx_6800, true, "", GPU, "0000:0b:00.0", .device = "AMD Radeon RX 6800 (RADV NAVI21)",
         .driver = "radv", .info = "Mesa 22.3.6",
         .device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 3, 230), .subgroup = 64, .groups_x = UINT32_MAX,
         .shared = 65536, .alignment = 4, .range = UINT32_MAX, .fp16 = true, .storage8 = true,
         .storage16 = true, .int_dot = true, .pci = true, .queue = true, .pci_bus = 0x0b)
RECORDED(intel_uhd_620, true, "", IGPU, "0000:00:02.0",
         .device = "Intel(R) UHD Graphics 620 (KBL GT2)", .driver = "Intel open-source Mesa driver",
         .info = "Mesa 22.3.6", .device_type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 3, 230), .subgroup = 32, .groups_x = 65535,
         .shared = 65536, .alignment = 4, .range = 1073741820, .fp16 = true, .storage8 = true,
         .storage16 = true, .pci = true, .queue = true, .pci_device = 2)
RECORDED(llvmpipe, true, "", CPU, "6d657361-3232-2e33-2e36-000000000000",
         .device = "llvmpipe (LLVM 15.0.6, 256 bits)", .driver = "llvmpipe",
         .info = "Mesa 22.3.6 (LLVM 15.0.6)", .device_type = VK_PHYSICAL_DEVICE_TYPE_CPU,
         .version = VK_MAKE_API_VERSION(0, 1, 3, 230), .subgroup = 8, .groups_x = 65535,
         .shared = 32768, .alignment = 16, .range = 134217728, .fp16 = true, .storage8 = true,
         .storage16 = true, .queue = true, .uuid = "mesa22.3.6")
RECORDED(arm_mali_g71, false, "storageBuffer8BitAccess", IGPU, NULL, .device = "Mali-G71",
         .driver = "Mali-G71", .info = "r20p0",
         .device_type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 2, 131), .subgroup = 4, .groups_x = 65535,
         .shared = 32768, .alignment = 256, .range = 134217728, .storage16 = true, .queue = true)
RECORDED(nvidia_gtx_680, false, "storageBuffer16BitAccess", GPU, NULL,
         .device = "NVIDIA GeForce GTX 680", .driver = "NVIDIA", .info = "470.256.02",
         .device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 2, 175), .subgroup = 32, .groups_x = 2147483647,
         .shared = 49152, .alignment = 32, .range = UINT32_MAX, .storage8 = true, .queue = true)
RECORDED(old_radeon, false, "1.2", GPU, NULL, .device = "AMD Radeon HD 7700", .driver = "amdvlk",
         .info = "2018", .device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 0, 65), .subgroup = 64, .groups_x = 65535,
         .shared = 32768, .alignment = 4, .range = UINT32_MAX, .queue = true)
RECORDED(display_only, false, "queue", GPU, NULL, .device = "NVIDIA GeForce RTX 4090",
         .driver = "NVIDIA", .info = "535.183.01",
         .device_type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
         .version = VK_MAKE_API_VERSION(0, 1, 3, 242), .subgroup = 32, .groups_x = 2147483647,
         .shared = 49152, .alignment = 16, .range = UINT32_MAX, .fp16 = true, .storage8 = true,
         .storage16 = true, .int_dot = true, .coopmat = true, .pci = true, .pci_bus = 1)
#undef RECORDED
