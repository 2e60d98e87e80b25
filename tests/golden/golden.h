// Compares output with files. UPDATE_GOLDEN=1 rewrites the files; review the difference before committing it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace bsp::golden {

// `file` is relative to tests/golden.
inline std::string path_of(const std::string& file) { return std::string(BSP_SOURCE_DIR) + "/tests/golden/" + file; }

inline std::string read(const std::string& file) {
  std::ifstream in(path_of(file), std::ios::binary);
  EXPECT_TRUE(in) << "cannot read tests/golden/" << file << "; UPDATE_GOLDEN=1 creates it if it is an expected output";
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void expect_same(const std::string& file, const std::string& text) {
  if (const char* update = std::getenv("UPDATE_GOLDEN"); update && std::string(update) == "1") {
    std::ofstream out(path_of(file), std::ios::binary);
    out << text;
    ASSERT_TRUE(out.flush()) << "cannot write " << path_of(file);
    return;
  }
  EXPECT_EQ(read(file), text) << "tests/golden/" << file
                              << " differs; if the new output is correct: UPDATE_GOLDEN=1 ./dev test -L golden";
}

}  // namespace bsp::golden
