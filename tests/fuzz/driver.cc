// Runs a fuzz target without libFuzzer: every file of a corpus unchanged, then a fixed number of mutations of them, the
// same ones for the same seed.
//
//   record_fuzz CORPUS INPUTS [SEED]      as in ctest
//   record_fuzz FILE                      one input, such as a crash file of this program or libFuzzer
//
// Saves an input that ends the process to crash-<target> in the working directory.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <ranges>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

const std::string* current = nullptr;  // the current input
std::string crash_file;

void keep_input(int signal) {
  if (current != nullptr) {
    const int fd = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    std::size_t written = 0;
    while (fd >= 0 && written < current->size()) {
      const ssize_t n = ::write(fd, current->data() + written, current->size() - written);
      if (n <= 0) break;
      written += static_cast<std::size_t>(n);
    }
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const std::string& input) {
  current = &input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  current = nullptr;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Small changes keep most of an input valid, so that it passes the first check.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, std::uint64_t seed) : corpus_(corpus), random_(seed) {}

  std::string next() {
    std::string text = any(corpus_);
    for (std::size_t n = 1 + below(4); n > 0; --n) change(text);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  template <class List>
  const std::ranges::range_value_t<const List>& any(const List& list) {
    return list[below(std::size(list))];
  }

  void change(std::string& text) {
    static const std::string kTokens[] = {"0",
                                          "-1",
                                          "1e308",
                                          "-0.0",
                                          "18446744073709551615",
                                          "9007199254740993",
                                          "1e-320",
                                          "null",
                                          "true",
                                          "[]",
                                          "{}",
                                          "\"\"",
                                          "\"NaN\"",
                                          "\"Infinity\"",
                                          "\"",
                                          "\\",
                                          "\\ud800",
                                          "\xff",
                                          "\xc3",
                                          ",",
                                          ":",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "\n",
                                          " ",
                                          "- ",
                                          "? ",
                                          "&a ",
                                          "*a",
                                          "<<: *a",
                                          "!!int ",
                                          "!!binary ",
                                          "---\n",
                                          "|\n",
                                          ">\n",
                                          "#",
                                          "'",
                                          "%YAML 9.9\n",
                                          ".inf",
                                          "0x7fffffffffffffff",
                                          "\t",
                                          std::string(1, '\0')};
    if (text.empty()) return void(text = any(kTokens));
    const std::size_t at = below(text.size()), length = std::min(text.size() - at, 1 + below(below(8) ? 8 : 200));
    switch (below(9)) {
      case 0:
        text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, any(kTokens));
        break;
      case 4:
        text.insert(at, text.substr(below(text.size()), 1 + below(64)));
        break;
      case 5:
        text.insert(at, any(corpus_).substr(0, length));
        break;
      case 6:
        replace_number(text, at, any(kTokens));
        break;
      case 7:
        replace_number(text, at, std::to_string(std::int64_t(below(7)) - 1));
        break;
      case 8:
        text.replace(at, length, std::string(below(4) ? 3 : 700, any("[{(- a\"&")));
        break;
    }
  }

  // The first number from `at` on.
  static void replace_number(std::string& text, std::size_t at, const std::string& by) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    text.replace(begin, std::min(text.find_first_not_of("0123456789.e+-", begin), text.size()) - begin, by);
  }

  const std::vector<std::string>& corpus_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "usage: %s CORPUS INPUTS [SEED] | FILE\n", argv[0]), 2;
  crash_file = "crash-" + std::filesystem::path(argv[0]).filename().string();
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) ::signal(signal, keep_input);
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(argv[1])) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  } else {
    files.emplace_back(argv[1]);
  }
  std::ranges::sort(files);
  std::vector<std::string> corpus;
  for (const auto& file : files) corpus.push_back(content_of(file));
  if (corpus.empty()) return std::fprintf(stderr, "%s: no input\n", argv[1]), 2;
  const std::uint64_t inputs = argc > 2 ? std::stoull(argv[2]) : 0, seed = argc > 3 ? std::stoull(argv[3]) : 20261121;
  for (const std::string& input : corpus) run(input);
  Mutator mutator(corpus, seed);
  for (std::uint64_t n = 0; n < inputs; ++n) run(mutator.next());
  std::printf("%zu files and %llu inputs made of them with seed %llu: nothing to report\n", corpus.size(),
              static_cast<unsigned long long>(inputs), static_cast<unsigned long long>(seed));
  return 0;
}
