// Which job a thread works for: every line that it logs says so (job=namespace/name).
#pragma once

#include <string>
#include <string_view>

namespace bsp {

class LogsFor {
 public:
  explicit LogsFor(const std::string& job);  // must outlive this
  ~LogsFor();
  LogsFor(const LogsFor&) = delete;
  LogsFor& operator=(const LogsFor&) = delete;

 private:
  const std::string* former_;
};

}  // namespace bsp
