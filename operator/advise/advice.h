// What the parameters of one's choice would have made of recorded calls, beside what was made of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operator/advise/options.h"
#include "operator/record/replay.h"

namespace bsp::advise {

// One heuristic's answer to one record.
struct Answer {
  decide::Params params;
  std::vector<decide::Plan> plans;  // one; or those of the calls that come due among the record's supersteps
  bool as_recorded = false;         // nothing was changed …
  std::string difference;           // … and yet the plan is another one: in what
};

struct Advice {
  std::string where;  // "record.jsonl:3"
  record::Call call;
  bool rerun = false;  // calls are made at other times than recorded
  std::vector<Answer> answers;
};

class Adviser {
 public:
  explicit Adviser(const Options& options) : options_(options) {}
  // Records of one job in their order.
  Result<Advice> advise(record::Call call, std::string where);

 private:
  struct Run {
    Superstep last{};                     // after which the call that was read last was made
    std::vector<record::Rerun> reruns{};  // for each heuristic
  };

  const Options& options_;
  std::map<std::string, Run> runs_;  // by record::run_of()
};

// Over all calls of a heuristic, or of what was recorded. Means are over calls, of which each is judged where the run
// had its ranks: they say how the heuristics compare, not how a run by them would have ended.
struct Total {
  std::string name;
  std::size_t calls = 0, moving = 0, moves = 0;
  std::size_t forecasts = 0;  // calls that predicted anything
  double relative = 0;        // sum of the predicted superstep after / before
  double cost = 0;            // s, sum over the calls of their longest move
  void add(const decide::Plan& plan);
  [[nodiscard]] double mean_change() const { return forecasts ? relative / static_cast<double>(forecasts) - 1 : 0; }
  [[nodiscard]] double mean_cost() const { return moving ? cost / static_cast<double>(moving) : 0; }
};

class Totals {
 public:
  void add(const Advice& advice);
  [[nodiscard]] const std::vector<Total>& all() const { return all_; }  // [0]: as recorded

 private:
  std::vector<Total> all_;
};

// s, the longest of a plan's moves: they happen at once.
double cost_of(const decide::Plan& plan);

}  // namespace bsp::advise
