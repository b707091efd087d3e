// SPDX-License-Identifier: MIT
// Functions in the place of the driver's that can be made to fail, and that count what is created
// and destroyed.
#ifndef VULKAN_FAULTS_H
#define VULKAN_FAULTS_H

#include "device/loader.h"

// Puts them in place from the next start of the plugin on.
void vulkan_faults_install(void);
// The call with this number (0: the next) returns the result, once; -1: none does.
void vulkan_faults_arm(long n, VkResult result);
// Until the next call of this, every call of the Vulkan function returns the result; NULL: of none.
void vulkan_faults_arm_function(const char *name, VkResult result);
// Whether the armed call was reached; its name, for messages.
bool vulkan_faults_reached(const char **out_name);
// Objects and allocations that are left.
long vulkan_faults_n_live(void);

#endif
