#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The recipes of package managers: what they would run is run as far as to the configured build, with stand-ins for the managers
themselves; the release's archive is used by a sample project as a Meson wrap; the AppDir is built and started. Speaks TAP.

Usage: check_recipes.py SOURCE_ROOT STATIC_LIBRARY PLUGIN COMPILER..."""
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import check, finish, skip  # noqa: E402

SOURCE, LIBRARY, PLUGIN = (os.path.abspath(path) for path in sys.argv[1:4])
COMPILER = sys.argv[4:]


def run(command, folder, **environment):
    return subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=1200,
                          env={**os.environ, "CC": " ".join(COMPILER), **environment})


class Configured:
    """One folder for all recipes, as what was found out of the compiler is known the second time. Options that the recipe before had
    set are the default again."""
    def __init__(self, folder):
        self.folder, self.changed = folder, set()
        listed = subprocess.run(["meson", "introspect", "--buildoptions", os.path.join(SOURCE, "meson.build")], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        self.defaults = {option["name"]: self.text(option["value"]) for option in json.loads(listed)}

    @staticmethod
    def text(value):
        return str(value).lower() if isinstance(value, bool) else ",".join(value) if isinstance(value, list) else str(value)

    def configure(self, name, options):
        """The tree configures with these options, and the build has the library and nothing for developers."""
        given = {re.sub("^-D|^--", "", option).split("=")[0] for option in options}
        reset = [f"-D{option}={self.defaults[option]}" for option in sorted(self.changed - given)]
        again = ["--reconfigure"] if self.changed else []
        self.changed |= given
        self.check(name, self.folder, [*again, *reset, *options])

    def configure_by_file(self, name, machine_file):
        """The same with a file in place of options; it can be given to a new folder only."""
        self.check(name, self.folder + "-by-file", ["--native-file", machine_file])

    @staticmethod
    def check(name, folder, arguments):
        done = run(["meson", "setup", *arguments, folder, SOURCE], ".")
        check(f"{name}: the tree configures with its options", done.returncode == 0, done.stdout)
        targets = os.path.join(folder, "meson-info", "intro-targets.json")
        names = {target["name"] for target in json.load(open(targets, encoding="utf-8"))} if done.returncode == 0 else set()
        check(f"{name}: the library is built, and no tests", "ggml" in names and not any(n.startswith("test-") for n in names), sorted(names)[:40])


def check_vcpkg(folder, configured):
    port = os.path.join(SOURCE, "packaging", "vcpkg", "ggml-host")
    with open(os.path.join(port, "vcpkg.json"), encoding="utf-8") as stream:
        manifest = json.load(stream)
    check("vcpkg: the manifest has a name and a version", manifest["name"] == "ggml-host" and manifest["version"], manifest)
    if not shutil.which("cmake"):
        skip("vcpkg: the port runs", "no cmake")
        return
    runner = os.path.join(folder, "run.cmake")
    with open(runner, "w", encoding="utf-8") as stream:
        stream.write("""function(vcpkg_configure_meson)
  cmake_parse_arguments(PARSE_ARGV 0 a "" "SOURCE_PATH" "OPTIONS")
  message(STATUS "SOURCE=${a_SOURCE_PATH}")
  foreach(option IN LISTS a_OPTIONS)
    message(STATUS "OPTION=${option}")
  endforeach()
  if(a_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${a_UNPARSED_ARGUMENTS}")
  endif()
endfunction()
function(vcpkg_install_meson)
  file(WRITE "${CURRENT_PACKAGES_DIR}/lib/libggml.so.1" "")
  file(WRITE "${CURRENT_PACKAGES_DIR}/lib/libggml.a" "")
  file(WRITE "${CURRENT_PACKAGES_DIR}/debug/include/ggml.h" "")
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 a "" "" "FILE_LIST")
  file(INSTALL ${a_FILE_LIST} DESTINATION "${CURRENT_PACKAGES_DIR}/share/ggml-host")
endfunction()
include("${PORT}/portfile.cmake")
""")
    packages = os.path.join(folder, "packages")
    done = run(["cmake", f"-DPORT={port}", f"-DCURRENT_PACKAGES_DIR={packages}", "-DVCPKG_LIBRARY_LINKAGE=static", "-P", runner], folder)
    options = re.findall(r"OPTION=(.*)", done.stdout)
    left = sorted(os.path.relpath(os.path.join(top, name), packages) for top, _, files in os.walk(packages) for name in files)
    check("vcpkg: the port runs and leaves what vcpkg wants of a static library", done.returncode == 0 and
          left == ["lib/libggml.a", "share/ggml-host/LICENSE"], (done.stdout, left))
    check("vcpkg: it builds this tree", f"SOURCE={SOURCE}" in done.stdout and options, done.stdout)
    # What vcpkg_configure_meson adds for a static library.
    configured.configure("vcpkg", ["--wrap-mode=nodownload", "-Doptimization=plain", "-Ddebug=false", "--libdir=lib", f"--prefix={packages}",
                                   "-Dpkgconfig.relocatable=true", "-Ddefault_library=static", *options])


def conan_stand_ins(calls):
    """Modules with the names and signatures of those that the recipe imports."""
    class Toolchain:
        def __init__(self, recipe):
            self.project_options = {}
            calls["toolchain"] = self

        def generate(self):
            calls["generated"] = dict(self.project_options)

    class Meson:
        def __init__(self, recipe):
            pass

        configure = build = install = lambda self: calls.setdefault("meson", []).append(1)

    def copy(recipe, pattern, src, dst):
        calls.setdefault("copied", []).append((pattern, os.path.realpath(src)))

    modules = {"conan": {"ConanFile": type("ConanFile", (), {})}, "conan.tools": {},
               "conan.tools.files": {"copy": copy, "rm": lambda recipe, pattern, folder: calls.setdefault("removed", []).append(pattern)},
               "conan.tools.layout": {"basic_layout": lambda recipe: None},
               "conan.tools.meson": {"Meson": Meson, "MesonToolchain": Toolchain}}
    for name, members in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(members)
        sys.modules[name] = module


def meson_value(value):
    """As Conan writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else f"[{', '.join(map(meson_value, value))}]"


class Properties(types.SimpleNamespace):
    def set_property(self, name, value):
        setattr(self, name, value)

    def rm_safe(self, name):
        pass


def check_conan(folder, version, configured):
    calls = {}
    conan_stand_ins(calls)
    sys.dont_write_bytecode = True
    spec = importlib.util.spec_from_file_location("recipe", os.path.join(SOURCE, "packaging", "conan", "conanfile.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recipe = module.GgmlHost()
    recipe.options = types.SimpleNamespace(**recipe.default_options)
    recipe.settings = Properties(os="Linux")
    recipe.cpp_info = Properties()
    recipe.export_sources_folder = recipe.package_folder = recipe.source_folder = folder
    for method in ("set_version", "export_sources", "layout", "configure", "generate", "build", "package", "package_info"):
        getattr(recipe, method)()
    check("conan: the version is the tree's", recipe.version == version, recipe.version)
    parts = {pattern.split("/")[0] for pattern, src in calls["copied"] if src == os.path.realpath(SOURCE)}
    needed = set(re.findall(r"^ *subdir\('(\w+)", open(os.path.join(SOURCE, "meson.build"), encoding="utf-8").read(), re.M))
    check("conan: it exports every folder that the build names", needed <= parts, (needed - parts))
    # The file that Conan's MesonToolchain writes of a release for GCC, with its own options.
    native = os.path.join(folder, "conan_meson_native.ini")
    with open(native, "w", encoding="utf-8") as stream:
        stream.write("[project options]\n")
        stream.writelines(f"{key} = {meson_value(value)}\n" for key, value in {
            "wrap_mode": "nofallback", "bindir": "bin", "sbindir": "bin", "libexecdir": "bin", "includedir": "include", "libdir": "lib",
            **calls["generated"]}.items())
        stream.write("[built-in options]\nbuildtype = 'release'\ndefault_library = 'static'\nb_ndebug = 'true'\nbackend = 'ninja'\n")
        if os.uname().machine == "x86_64":
            stream.write("c_args = ['-m64']\nc_link_args = ['-m64']\n")
    configured.configure_by_file("conan", native)
    check("conan: the library and what it needs are told", recipe.cpp_info.libs == ["ggml"] and calls["removed"] == ["libggml.so*"], calls)


def check_homebrew(folder, version, configured):
    path = os.path.join(SOURCE, "packaging", "homebrew", "ggml-host.rb")
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    if shutil.which("ruby"):
        done = run(["ruby", "-c", path], folder)
        check("homebrew: the formula is Ruby", done.returncode == 0, done.stdout)
    else:
        skip("homebrew: the formula is Ruby", "no ruby")
    options = re.search(r"options = %w\[(.*?)\]", text, re.S).group(1).split()
    check("homebrew: the archive is this version's", f"ggml-host-{version}.tar.xz" in text)
    # std_meson_args
    configured.configure("homebrew", [*options, f"--prefix={folder}/Cellar", "--libdir=lib", "--buildtype=release", "--wrap-mode=nofallback"])


def check_release(folder):
    """Its archive as a wrap of a project that has nothing else."""
    if run(["git", "rev-parse", "HEAD"], SOURCE).returncode != 0:
        skip("release", "not a checkout")
        return
    out = os.path.join(folder, "release")
    done = run([os.path.join(SOURCE, "tools", "release"), "--draft", out], folder)
    check("release: the archive is the same twice, and the tag's command is told", done.returncode == 0 and "the same twice" in done.stdout and
          re.search(r"git tag -s v[\d.]+ -F ", done.stdout), done.stdout)
    check("release: the sums are right", run(["sha256sum", "-c", "SHA256SUMS"], out).returncode == 0)
    sums = dict(reversed(line.split()) for line in open(os.path.join(out, "SHA256SUMS"), encoding="utf-8"))
    formula = open(os.path.join(out, "ggml-host.rb"), encoding="utf-8").read()
    check("release: the formula has the archive's name and sum", any(name in formula and f'sha256 "{sums[name]}"' in formula
          for name in sums if name.endswith(".tar.xz")), (sums, formula))
    app = os.path.join(folder, "app")
    os.makedirs(os.path.join(app, "subprojects", "packagefiles"))
    for name in ("main.c", "meson.build"):
        shutil.copy(os.path.join(SOURCE, "tests", "clients", "one-binary", name), app)
    shutil.copy(os.path.join(out, "ggml-host.wrap"), os.path.join(app, "subprojects"))
    archive = [name for name in os.listdir(out) if name.endswith(".tar.xz")][0]
    shutil.copy(os.path.join(out, archive), os.path.join(app, "subprojects", "packagefiles"))
    # Without optimisation and without the CPU plugin, which takes minutes to compile; the program loads the one that is built.
    done = run(["meson", "setup", "out", "--wrap-mode=forcefallback", "--buildtype=plain", "-Dggml-host:builtin_plugins=",
                *(f"-Dggml-host:plugin_{name}=disabled" for name in ("cpu", "null", "vulkan", "cuda", "foreign")),
                "-Dggml-host:mpi=disabled", "-Dggml-host:dropin=false"], app)
    check("wrap: a project that has the wrap and the archive alone configures", done.returncode == 0, done.stdout)
    done = run(["ninja", "-C", "out", "one-binary"], app)
    check("wrap: it builds, without a warning", done.returncode == 0 and "warning" not in done.stdout, done.stdout)
    done = run([os.path.join(app, "out", "one-binary")], app, GGML_PLUGIN_PATH=os.path.dirname(PLUGIN), GGML_ALLOW_UNSAFE_PLUGINS="1")
    check("wrap: the program runs, with a plugin of another build", done.returncode == 0 and "computed [9, 4]" in done.stdout, done.stdout)
    check_rebuilt(os.path.join(folder, "rebuilt"), os.path.join(out, archive))
    with open(os.path.join(app, "subprojects", "packagefiles", archive), "ab") as stream:
        stream.write(b"x")
    shutil.rmtree(os.path.join(app, "subprojects", archive[:-len(".tar.xz")]))
    done = run(["meson", "setup", "again", "--wrap-mode=forcefallback"], app)
    check("wrap: another archive than the sum says is refused", done.returncode != 0 and "hash" in done.stdout.lower(), done.stdout)


def check_rebuilt(folder, archive):
    """Two builds of the archive in folders of other names, by other users: a library, a plugin and a tool, to the byte."""
    name, built = os.path.basename(archive)[:-len(".tar.xz")], []
    targets = ["core/sdk/libggml-sdk.a", "plugins/null/ggml-null.so", "tools/ggml-exec"]
    for place, settings in (("one", {"TZ": "UTC", "LC_ALL": "C"}), ("another of another name", {"TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8", "HOME": "/"})):
        top = os.path.join(folder, place)
        os.makedirs(top)
        run(["tar", "-xJf", archive], top)
        settings.update({"CCACHE_DISABLE": "1", "SOURCE_DATE_EPOCH": "1700000000"})
        build = os.path.join(top, name, "build")
        done = run(["meson", "setup", build, os.path.join(top, name), "-Dtests=false", "-Ddocs=false", "-Dbindings=", "-Dbuiltin_plugins=", "-Dmpi=disabled",
                    *(f"-Dplugin_{plugin}=disabled" for plugin in ("cpu", "vulkan", "cuda", "foreign"))], top, **settings)
        done = run(["ninja", "-C", build, *targets], top, **settings) if done.returncode == 0 else done
        if done.returncode != 0:
            check("rebuilt: it builds", False, done.stdout)
            return
        built.append([open(os.path.join(build, target), "rb").read() for target in targets])
    for target, one, other in zip(targets, *built):
        check(f"rebuilt: {target} is the same in another folder", one == other, (len(one), len(other)))


def check_appimage(folder):
    program = os.path.join(folder, "one-binary")
    done = run([*COMPILER, "-std=c11", "-I", os.path.join(SOURCE, "abi"), os.path.join(SOURCE, "tests/clients/one-binary/main.c"), LIBRARY,
                "-lm", "-ldl", "-pthread", "-o", program], folder)
    check("appimage: the sample application links", done.returncode == 0, done.stdout)
    done = run([os.path.join(SOURCE, "packaging/appimage/build"), program, folder, PLUGIN], folder)
    place = os.path.join(folder, "one-binary.AppDir")
    check("appimage: the AppDir is made", done.returncode == 0 and os.path.exists(os.path.join(place, "one-binary.desktop")), done.stdout)
    moved = os.path.join(folder, "somewhere else")
    os.rename(place, moved)
    # Temporary folders may be anybody's to write, and what others could change is refused.
    done = run([os.path.join(moved, "AppRun")], "/", GGML_ALLOW_UNSAFE_PLUGINS="1")
    check("appimage: it runs wherever it lies, with the plugin beside it", done.returncode == 0 and "computed [9, 4]" in done.stdout and
          os.path.join(moved, "usr/bin/ggml-plugins", os.path.basename(PLUGIN)) + ": in use" in done.stdout, done.stdout)


def main():
    with open(os.path.join(SOURCE, "meson.build"), encoding="utf-8") as stream:
        version = re.search(r"version: '([\d.]+)'", stream.read()).group(1)
    with tempfile.TemporaryDirectory(prefix="ggml-recipes-") as folder:
        configured = Configured(os.path.join(folder, "configured"))
        check_vcpkg(folder, configured)
        check_conan(folder, version, configured)
        check_homebrew(folder, version, configured)
        check_release(folder)
        check_appimage(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
