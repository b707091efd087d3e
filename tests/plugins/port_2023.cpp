// SPDX-License-Identifier: MIT
// The same sources as C++.
#include "port_2023.c"
#include "port_2023_device.c"
