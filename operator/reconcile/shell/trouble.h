#pragma once

#include <string>
#include <utility>

namespace bsp::reconcile {

// Why something fails: reported once, although it is retried again and again.
class Trouble {
 public:
  bool is_news(const std::string& why) { return std::exchange(last_, why) != why; }
  void clear() { last_.clear(); }

 private:
  std::string last_;
};

}  // namespace bsp::reconcile
