// What criu's list of files loses, and that anything else is refused.
#include "sidecar/transfer/file_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstring>

namespace bsp::transfer {
namespace {

std::string entry(const std::string& message) {
  const auto size = static_cast<std::uint32_t>(message.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + message;
}
std::string bytes(char field, const std::string& content) {
  return std::string{static_cast<char>(field << 3 | 2), static_cast<char>(content.size())} + content;
}

const std::string kHead = "\x19\x43\x56\x54\x38\x31\x30\x56";
// id 5, flags, position 300, name, size 1000, mode: as in criu's images/regfile.proto.
const std::string kBefore = "\x08\x05\x10\x02\x18\xac\x02" + bytes(6, "/data/log") + "\x38\x03";
const std::string kSizeOfIt = "\x40\xe8\x07";
const std::string kAfter = std::string("\x50\xa4\x03");
const Paths kLog = {"/data/log"};

TEST(FileSizes, AreForgotten) {
  // type 1, id 5; another kind of file, whose eighth field is none of a regular file's
  const std::string kind("\x08\x01\x10\x05");
  const std::string pipe = entry("\x08\x02\x10\x06" + bytes(4, "\x40\x01"));
  const auto changed = without_file_sizes(kHead + entry(kind + bytes(3, kBefore + kSizeOfIt + kAfter)) + pipe, kLog);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_EQ(*changed, kHead + entry(kind + bytes(3, kBefore + kAfter)) + pipe);
  EXPECT_EQ(without_file_sizes(*changed, kLog).value(), *changed);
}

// As of a library in the image, or of another file on the volume: criu must see that it is not as it was.
TEST(FileSizes, OfOtherFilesAreKept) {
  const std::string image = kHead + entry("\x08\x01\x10\x05" + bytes(3, kBefore + kSizeOfIt + kAfter));
  for (const Paths& of : {Paths{}, Paths{"/data", "/data/log2", "/data/lo", "data/log"}})
    EXPECT_EQ(without_file_sizes(image, of).value(), image);
}

TEST(FileSizes, OfAnotherContentAreRefused) {
  const std::string image = kHead + entry("\x08\x01\x10\x05" + bytes(3, kBefore + kSizeOfIt));
  EXPECT_TRUE(without_file_sizes(image, kLog));
  for (std::size_t length = 0; length < image.size(); ++length)
    EXPECT_EQ(without_file_sizes(image.substr(0, length), kLog).has_value(), length == kHead.size()) << length;
  EXPECT_FALSE(forget_file_sizes("/nonexistent", kLog));
}

RC_GTEST_PROP(FileSizes, SurviveAnything, (const std::string& text)) {
  if (const auto changed = without_file_sizes(kHead + text, kLog))
    RC_ASSERT(changed->size() <= kHead.size() + text.size() + 16);
}

}  // namespace
}  // namespace bsp::transfer
