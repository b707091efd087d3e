// SPDX-License-Identifier: MIT
// The functions of hwloc that the core calls.
//
// HWLOC_ROW(name)
//   name  without hwloc_, as in struct hwloc_calls
HWLOC_ROW(bitmap_alloc)
HWLOC_ROW(bitmap_and)
HWLOC_ROW(bitmap_first)
HWLOC_ROW(bitmap_free)
HWLOC_ROW(bitmap_isset)
HWLOC_ROW(bitmap_iszero)
HWLOC_ROW(bitmap_last)
HWLOC_ROW(bitmap_set)
HWLOC_ROW(cpukinds_get_info)
HWLOC_ROW(cpukinds_get_nr)
HWLOC_ROW(get_api_version)
HWLOC_ROW(get_cpubind)
HWLOC_ROW(get_nbobjs_by_depth)
HWLOC_ROW(get_obj_by_depth)
HWLOC_ROW(get_type_depth)
HWLOC_ROW(set_cpubind)
HWLOC_ROW(topology_destroy)
HWLOC_ROW(topology_get_allowed_cpuset)
HWLOC_ROW(topology_init)
HWLOC_ROW(topology_load)
HWLOC_ROW(topology_set_flags)
HWLOC_ROW(topology_set_io_types_filter)
#undef HWLOC_ROW
