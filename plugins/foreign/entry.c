// SPDX-License-Identifier: MIT
// The plugin's note, entry and services. Neither it nor what it opened is ever unmapped.
#include "foreign.h"

void foreign_lock(struct foreign_binary *binary) {
    pthread_mutex_lock(&binary->lock);
}

void foreign_unlock(struct foreign_binary *binary) {
    pthread_mutex_unlock(&binary->lock);
}

GGML_PLUGIN_NOTE("foreign", "", PLUGIN_VERSION, -100, 0,
                 GGML_PLUGIN_FLAG_NO_UNLOAD | GGML_PLUGIN_FLAG_DYNAMIC_DEVICES)
GGML_PLUGIN_ENTRY(foreign_reg_all, NULL, NULL, NULL)
