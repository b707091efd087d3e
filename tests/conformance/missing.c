// SPDX-License-Identifier: MIT
#include "table.h"

#define CONFORMANCE_MISSING(NAME) CONFORMANCE_OP(NAME, NULL, NULL, 0, NULL, PLAIN);
#include "missing_list.inl"
