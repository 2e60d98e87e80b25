// Decides recorded calls again with other parameters, beside the recorded plans.
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
  std::vector<decide::Plan> plans;  // one, or those of all calls that fall due in the record's supersteps
  bool as_recorded = false;         // with unchanged parameters …
  std::string difference;           // … the plan nevertheless differs; in what
};

struct Advice {
  std::string where;  // "record.jsonl:3"
  record::Call call;
  bool rerun = false;  // calls fall due at other times than recorded
  std::vector<Answer> answers;
};

class Adviser {
 public:
  explicit Adviser(const Options& options) : options_(options) {}
  // Pass the records of a job in order.
  Result<Advice> advise(record::Call call, std::string where);

 private:
  struct Run {
    Superstep last{};                     // of the last call read
    std::vector<record::Rerun> reruns{};  // for each heuristic
  };

  const Options& options_;
  std::map<std::string, Run> runs_;  // by record::run_of()
};

// Over all calls of a heuristic, or of the record. Means are over calls, each judged with the ranks where the run had
// them: they compare heuristics, and don't predict a whole run.
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

// s, a plan's longest move, because moves happen at the same time.
double cost_of(const decide::Plan& plan);

}  // namespace bsp::advise
