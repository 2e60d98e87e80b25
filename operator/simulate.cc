#include "operator/simulate.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <format>
#include <vector>

namespace bsp {

Result<int> simulate(std::span<const std::string> words) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::string program = (self.parent_path() / "bsp-simulate").string();
  std::vector<std::string> all{program};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(program.c_str(), argv.data());
  const int number = errno;
  if (number == ENOENT)
    return fail(ErrorCode::kNotFound,
                std::format("the simulator {} doesn't exist; build it with ./dev build, which puts it "
                            "beside bsp-operator (the operator's image has none)",
                            program));
  return fail(ErrorCode::kFailed, std::format("starting {}: {}", program, std::strerror(number)));
}

}  // namespace bsp
