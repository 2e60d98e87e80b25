// Drops duplicates among one sender's messages, which may arrive in any order and repeatedly.
//
// The sender numbers its messages to each receiver 1, 2, …. Once stores the numbers that arrived ahead of a gap.
#pragma once

#include <cstdint>
#include <set>

namespace bsp::exchange {

class Once {
 public:
  // True the first time that `number` arrives.
  bool take(std::uint64_t number) {
    if (number <= whole_ || !beyond_.insert(number).second) return false;
    while (!beyond_.empty() && *beyond_.begin() == whole_ + 1) {
      ++whole_;
      beyond_.erase(beyond_.begin());
    }
    return true;
  }
  [[nodiscard]] std::uint64_t whole() const { return whole_; }  // all up to this one have arrived

 private:
  std::uint64_t whole_ = 0;
  std::set<std::uint64_t> beyond_;
};

}  // namespace bsp::exchange
