// SPDX-License-Identifier: MIT
// A library that the fixture "needy" links and that is then not there.
__attribute__((visibility("default"))) int fixture_helper(void);
int fixture_helper(void) {
    return 0;
}
