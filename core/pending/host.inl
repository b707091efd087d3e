// SPDX-License-Identifier: MIT
// Public functions of this area that are declared but not implemented yet: each answers `failure` and
// leaves a message. Rows only ever leave this list.
//
// GGML_PENDING(type, name, (parameters), failure)    GGML_PENDING_VOID(name, (parameters))
GGML_PENDING(const char *, ggml_backend_reg_name, (ggml_backend_reg_t reg), NULL)
GGML_PENDING(size_t, ggml_backend_reg_dev_count, (ggml_backend_reg_t reg), 0)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_reg_dev_get, (ggml_backend_reg_t reg, size_t index),
             NULL)
GGML_PENDING(void *, ggml_backend_reg_get_proc_address, (ggml_backend_reg_t reg, const char *name),
             NULL)
GGML_PENDING_VOID(ggml_backend_register, (ggml_backend_reg_t reg))
GGML_PENDING_VOID(ggml_backend_device_register, (ggml_backend_dev_t device))
GGML_PENDING(size_t, ggml_backend_reg_count, (void), 0)
GGML_PENDING(ggml_backend_reg_t, ggml_backend_reg_get, (size_t index), NULL)
GGML_PENDING(ggml_backend_reg_t, ggml_backend_reg_by_name, (const char *name), NULL)
GGML_PENDING(size_t, ggml_backend_dev_count, (void), 0)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_dev_get, (size_t index), NULL)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_dev_by_name, (const char *name), NULL)
GGML_PENDING(ggml_backend_dev_t, ggml_backend_dev_by_type, (enum ggml_backend_dev_type type), NULL)
GGML_PENDING(ggml_backend_t, ggml_backend_init_by_name, (const char *name, const char *params),
             NULL)
GGML_PENDING(ggml_backend_t, ggml_backend_init_by_type, (enum ggml_backend_dev_type type, const char
             *params), NULL)
GGML_PENDING(ggml_backend_t, ggml_backend_init_best, (void), NULL)
GGML_PENDING(ggml_backend_reg_t, ggml_backend_load, (const char *path), NULL)
GGML_PENDING_VOID(ggml_backend_unload, (ggml_backend_reg_t reg))
GGML_PENDING_VOID(ggml_backend_load_all, (void))
GGML_PENDING_VOID(ggml_backend_load_all_from_path, (const char *dir_path))
GGML_PENDING(enum ggml_host_status, ggml_plugin_load, (const char *path, ggml_backend_reg_t
             *out_reg), GGML_HOST_NOT_IMPLEMENTED)
GGML_PENDING(enum ggml_host_status, ggml_plugin_load_all, (const char *dir, size_t *out_loaded),
             GGML_HOST_NOT_IMPLEMENTED)
GGML_PENDING(enum ggml_host_status, ggml_plugin_unload, (ggml_backend_reg_t reg),
             GGML_HOST_NOT_IMPLEMENTED)
GGML_PENDING(const char *, ggml_plugin_stage_text, (enum ggml_plugin_stage stage), NULL)
GGML_PENDING(ggml_plugin_report_t, ggml_plugin_report_new, (void), NULL)
GGML_PENDING_VOID(ggml_plugin_report_free, (ggml_plugin_report_t report))
GGML_PENDING(size_t, ggml_plugin_report_count, (ggml_plugin_report_t report), 0)
GGML_PENDING(const struct ggml_plugin_record *, ggml_plugin_report_get, (ggml_plugin_report_t
             report, size_t i), NULL)
GGML_PENDING(size_t, ggml_plugin_report_directory_count, (ggml_plugin_report_t report), 0)
GGML_PENDING(const struct ggml_plugin_directory *, ggml_plugin_report_directory_get,
             (ggml_plugin_report_t report, size_t i), NULL)
GGML_PENDING(enum ggml_host_status, ggml_backend_dev_info, (ggml_backend_dev_t device, struct
             ggml_device_info *out_info), GGML_HOST_NOT_IMPLEMENTED)
