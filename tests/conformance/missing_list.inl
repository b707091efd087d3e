// SPDX-License-Identifier: MIT
// Rows of the operation lists whose oracle and cases are not written yet; it only gets shorter.
//
// CONFORMANCE_MISSING(NAME)
#undef CONFORMANCE_MISSING
