// The parts of the study's document that don't need the solver's runs.
#pragma once

#include <format>
#include <string>
#include <utility>

#include "sim/exchange/study.h"

namespace bsp::sim::exchange {

struct Text {
  void line(const std::string& more) { text += more + "\n"; }
  template <class... Args>
  void say(std::format_string<Args...> format, Args&&... args) {
    line(std::format(format, std::forward<Args>(args)...));
  }
  std::string text;
};

std::string pools_section(const StudyParams& params);
std::string gathering_section(const StudyParams& params);

}  // namespace bsp::sim::exchange
