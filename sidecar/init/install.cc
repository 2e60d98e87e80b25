#include "sidecar/init/install.h"

#include <array>
#include <filesystem>
#include <string_view>

namespace bsp::init {
namespace {

// Without the sidecar, which runs in the image itself.
constexpr std::array<std::string_view, 4> kInstalled{"bsp-init", "libbspmpi.so", "bin", "lib"};

}  // namespace

Result<void> install(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  constexpr auto kCopyOptions =
      fs::copy_options::recursive | fs::copy_options::copy_symlinks | fs::copy_options::overwrite_existing;
  for (const std::string_view name : kInstalled) {
    const fs::path source = fs::path(from) / name, target = fs::path(to) / name;
    std::error_code error;
    fs::remove_all(target, error);  // existing links can't be overwritten
    fs::copy(source, target, kCopyOptions, error);
    if (error) return fail_errno("copying " + source.string() + " to " + target.string(), error.value());
  }
  return {};
}

}  // namespace bsp::init
