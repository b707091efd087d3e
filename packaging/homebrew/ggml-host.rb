# SPDX-License-Identifier: MIT
# A formula of Homebrew, for a tap of one's own: the archive and its sum are those that tools/release writes; fill in where the archive
# is. The project's tests check its syntax and run what it runs; Homebrew itself has not run it.
class GgmlHost < Formula
  desc "Plugin host for ggml: one thin library that picks up device plugins"
  homepage "https://example.invalid/ggml-host"
  url "https://example.invalid/ggml-host-0.27.0.tar.xz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "scdoc" => :build
  depends_on "hwloc"
  depends_on "jansson"

  def install
    options = %w[-Dtests=false -Dbindings= -Dplugin_vulkan=disabled -Dplugin_cuda=disabled -Dplugin_foreign=disabled
                 -Dmpi=disabled]
    system "meson", "setup", "build", *options, *std_meson_args
    system "meson", "compile", "-C", "build", "--verbose"
    system "meson", "install", "-C", "build"
  end

  test do
    (testpath/"main.c").write <<~C
      #include <ggml-host.h>
      int main(void) { return ggml_backend_dev_count() > 0 ? 0 : 1; }
    C
    flags = shell_output("pkg-config --cflags --libs ggml").chomp.split
    system ENV.cc, "main.c", "-o", "main", *flags
    system "./main"
    assert_match "CPU", shell_output("#{bin}/ggml-devices --names")
  end
end
