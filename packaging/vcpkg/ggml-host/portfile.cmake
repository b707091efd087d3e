# SPDX-License-Identifier: MIT
# An overlay port of vcpkg: vcpkg install ggml-host --overlay-ports=packaging/vcpkg
# It builds the tree that it lies in. The project's tests run this file with the functions of vcpkg replaced by ones that do the
# same with Meson; vcpkg itself has not run it.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

# Plugins are always shared; of the library vcpkg wants one form.
vcpkg_configure_meson(
    SOURCE_PATH "${SOURCE_PATH}"
    OPTIONS
        -Dtests=false
        -Dtools=false
        -Ddocs=false
        -Ddropin=false
        -Dbindings=
        -Dplugin_vulkan=disabled
        -Dplugin_cuda=disabled
        -Dplugin_foreign=disabled
        -Dplugin_null=disabled
        -Dmpi=disabled
        -Dhwloc=disabled
)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()

if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    file(GLOB shared "${CURRENT_PACKAGES_DIR}/lib/libggml.so*" "${CURRENT_PACKAGES_DIR}/lib/libggml*.dylib")
    if(shared)
        file(REMOVE ${shared})
    endif()
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
