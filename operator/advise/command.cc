#include "operator/advise/command.h"

#include <cstdio>
#include <format>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "crds/names.h"
#include "operator/advise/show.h"
#include "operator/cli/exit_code.h"
#include "operator/record/line.h"

namespace bsp::advise {
namespace {

using nlohmann::json;

// One record at a time, because a line may be large.
class Command {
 public:
  explicit Command(const Options& options) : options_(options), adviser_(options_) {}

  Result<int> operator()() {
    std::ifstream file;
    if (options_.file != "-") {
      file.open(options_.file);
      if (!file) return fail_errno("reading " + options_.file);
    }
    std::istream& in = options_.file == "-" ? std::cin : file;
    const std::string name = options_.file == "-" ? "standard input" : options_.file;
    std::string line;
    for (std::size_t number = 1; unreadable_ < kUnreadable && std::getline(in, line); ++number)
      if (line.find_first_not_of(" \t\r") != std::string::npos) take(line, std::format("{}:{}", name, number));
    if (in.bad()) return fail_errno("reading " + name);
    if (unreadable_ == kUnreadable)
      return fail(ErrorCode::kInvalid,
                  std::format("{}: stopped after {} wrong lines; is it a record of this version?", name, kUnreadable));
    if (read_ == 0 && unreadable_ == 0)
      return fail(ErrorCode::kInvalid,
                  std::format("{} holds no recorded call; local run --record FILE writes one line for each", name));
    if (read_ > 0) finish();
    return unreadable_ > 0 ? cli::kUsage : differs_ ? cli::kFailed : cli::kDone;
  }

 private:
  static constexpr int kUnreadable = 5;  // a file of another kind has nothing but wrong lines

  void take(const std::string& line, const std::string& where) {
    auto advice =
        record::from_line(line).and_then([&](record::Call call) { return adviser_.advise(std::move(call), where); });
    if (!advice) {
      ++unreadable_;
      cli::report_error(advice.error().in(where));
      return;
    }
    ++read_;
    for (const Answer& answer : advice->answers) differs_ |= !answer.difference.empty();
    totals_.add(*advice);
    if (options_.json)
      calls_.push_back(json_of(*advice));
    else
      std::fputs(text_of(*advice, options_.brief).c_str(), stdout);
  }

  void finish() {
    if (!options_.json) {
      std::fputs(text_of(totals_).c_str(), stdout);
      return;
    }
    const json all = {{"schema", names::kAdviceSchema}, {"calls", calls_}, {"summary", json_of(totals_)}};
    std::puts(all.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  }

  const Options& options_;
  Adviser adviser_;
  Totals totals_;
  json calls_ = json::array();
  std::size_t read_ = 0;
  int unreadable_ = 0;    // lines
  bool differs_ = false;  // a plan from the recorded one
};

}  // namespace

Result<int> run(std::span<const std::string> words) {
  BSP_TRY(const auto options, parse_options(words));
  return Command(options)();
}

}  // namespace bsp::advise
