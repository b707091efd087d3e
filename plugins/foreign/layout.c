// SPDX-License-Identifier: MIT
// One row of offsets for each generation of ggml's interface.
#include "layout.h"

static const struct foreign_layout layouts[] = {
    {
        .api_version = 2,
        .text = "ggml's backend interface 2",
#define LAYOUT_ROW(member, version_2, version_3) .member = version_2,
#include "layout_list.inl"
    },
    {
        .api_version = 3,
        .text = "ggml's backend interface 3",
#define LAYOUT_ROW(member, version_2, version_3) .member = version_3,
#include "layout_list.inl"
    },
};

const struct foreign_layout *foreign_layout_of(int api_version) {
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        if (layouts[i].api_version == api_version) return &layouts[i];
    }
    return NULL;
}
