// Names the first of many things: "rank 1 is Running, rank 7 is Closing, and 90 more". A message that names every rank would
// outgrow a job's status.
#pragma once

#include <cstddef>
#include <format>
#include <string>
#include <string_view>

namespace bsp {

class FirstFew {
 public:
  explicit FirstFew(std::string_view between = ", ") : between_(between) {}
  void add(std::string_view text) {
    if (++count_ <= kNamed) text_.append(text_.empty() ? "" : between_).append(text);
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    return count_ > kNamed ? std::format("{}{}and {} more", text_, between_, count_ - kNamed) : text_;
  }
  // With what they are: "rank 3", "ranks 0, 3".
  [[nodiscard]] std::string text(std::string_view one) const {
    return std::format("{}{} {}", one, count_ == 1 ? "" : "s", text());
  }

 private:
  static constexpr std::size_t kNamed = 8;
  std::string_view between_;
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace bsp
