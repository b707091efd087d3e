# SPDX-License-Identifier: MIT
"""A recipe for Conan 2: conan create packaging/conan

It exports the tree that it lies in. The project's tests run its methods with stand-ins for Conan's classes; Conan itself has not run it."""
import os
import re

from conan import ConanFile
from conan.tools.files import copy, rm
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PARTS = ("abi", "bindings", "core", "docs", "packaging", "plugins", "tests", "tools")


class GgmlHost(ConanFile):
    name = "ggml-host"
    license = "MIT"
    description = "ggml's backend system as a plugin host: one thin library that picks up device plugins at run time"
    settings = "os", "arch", "compiler", "build_type"
    package_type = "library"
    options = {"shared": [True, False], "tools": [True, False], "vulkan": [True, False]}
    default_options = {"shared": False, "tools": False, "vulkan": False}

    def set_version(self):
        with open(os.path.join(TREE, "meson.build"), encoding="utf-8") as stream:
            self.version = re.search(r"version: '([\d.]+)'", stream.read()).group(1)

    def export_sources(self):
        for part in PARTS:
            copy(self, part + "/*", TREE, self.export_sources_folder)
        for name in ("meson.build", "meson_options.txt", "LICENSE"):
            copy(self, name, TREE, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def configure(self):
        for setting in ("compiler.cppstd", "compiler.libcxx"):
            self.settings.rm_safe(setting)

    def generate(self):
        toolchain = MesonToolchain(self)
        toolchain.project_options.update({
            "tests": False, "docs": False, "dropin": False, "tools": bool(self.options.tools), "bindings": [],
            "plugin_vulkan": "enabled" if self.options.vulkan else "disabled", "plugin_cuda": "disabled",
            "plugin_foreign": "disabled", "plugin_null": "disabled", "mpi": "disabled", "hwloc": "disabled"})
        toolchain.generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        Meson(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        if self.options.shared:
            rm(self, "libggml.a", os.path.join(self.package_folder, "lib"))
        else:
            rm(self, "libggml.so*", os.path.join(self.package_folder, "lib"))

    def package_info(self):
        self.cpp_info.set_property("pkg_config_name", "ggml" if self.options.shared else "ggml-static")
        self.cpp_info.set_property("cmake_file_name", "ggml")
        self.cpp_info.set_property("cmake_target_name", "ggml::ggml")
        self.cpp_info.includedirs = ["include/ggml-host"]
        self.cpp_info.libs = ["ggml"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["m", "dl", "pthread"]
