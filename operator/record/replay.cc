#include "operator/record/replay.h"

#include <format>

#include "operator/decide/make_plan.h"
#include "operator/record/writer.h"

namespace bsp::record {
namespace {

// Names the first field in which two values differ; numbers are compared bit by bit.
struct Difference {
  std::string found{};

  template <class T>
  void compare(const std::string& field, const T& a, const T& b) {
    if (!found.empty()) return;
    if constexpr (kIsVector<T>) {
      if (a.size() != b.size()) {
        found = std::format("{}: {} entries and {}", field, a.size(), b.size());
        return;
      }
      using Row = typename T::value_type;
      fields_of(Of<Row>{}, Columns<Row>{*this, field, a, b});
    } else if constexpr (HasFields<T>) {
      fields_of(Of<T>{}, Members<T>{*this, field, a, b});
    } else {
      std::string text_a, text_b;
      Writer(text_a).write(a);
      Writer(text_b).write(b);
      if (text_a != text_b) found = std::format("{}: {} and {}", field, text_a, text_b);
    }
  }

  template <class T>
  struct Members {
    Difference& difference;
    const std::string& field;
    const T& a;
    const T& b;
    template <class M>
    void operator()(const char* name, M member, const Field& = {}) {
      difference.compare(field.empty() ? name : std::format("{}.{}", field, name), a.*member, b.*member);
    }
  };

  template <class Row>
  struct Columns {
    Difference& difference;
    const std::string& field;
    const std::vector<Row>& a;
    const std::vector<Row>& b;
    template <class M>
    void operator()(const char* name, M member, const Field& = {}) {
      for (std::size_t i = 0; i < a.size() && difference.found.empty(); ++i)
        if (!same(a[i].*member, b[i].*member))
          difference.compare(std::format("{}.{}[{}]", field, name, i), a[i].*member, b[i].*member);
    }
    template <class T>
    static bool same(const T& x, const T& y) {
      if constexpr (std::same_as<T, double>)
        return Writer::same_bits(x, y);
      else
        return x == y;
    }
  };
};

std::vector<std::string> mapping_of(const decide::Snapshot& snapshot) {
  std::vector<std::string> places;
  for (const decide::Rank& rank : snapshot.ranks) {
    const decide::Processor& p = snapshot.platform.processor(rank.processor);
    places.push_back(std::format("{}/{}", snapshot.platform.sets[p.set.value].name, p.name));
  }
  return places;
}

}  // namespace

bool keeps_cadence(const decide::Params& recorded, const decide::Params& other) {
  return recorded.alpha0 == other.alpha0 && recorded.d0 == other.d0 && recorded.omega == other.omega &&
         recorded.delta == other.delta && recorded.beta == other.beta && recorded.early_calls == other.early_calls &&
         recorded.first_alpha == other.first_alpha;
}

Result<decide::Plan> replay(const Call& call, const decide::Params& params) {
  if (!keeps_cadence(call.params, params))
    return fail(ErrorCode::kInvalid,
                "with another alpha0, d0, omega, delta or beta the calls of the whole run are other ones");
  decide::Window window(call.state, params, call.snapshot.ranks.size(), call.snapshot.platform.sets.size());
  for (const decide::MeasuredSuperstep& t : call.supersteps) window.add(t);
  return decide::make_plan(call.snapshot, window, params);
}

std::string difference(const decide::Plan& recorded, const decide::Plan& other) {
  Difference d;
  if (recorded.now.elapsed == 0 && other.now.elapsed > 0) {  // an older record does not have it
    decide::Plan without = other;
    for (decide::Cadence* c : {&without.now, &without.next}) c->elapsed = c->owed = 0;
    d.compare("", recorded, without);
    return d.found;
  }
  d.compare("", recorded, other);
  return d.found;
}

// From the first record on: what the run knew then, except what depends on the parameters.
void Rerun::begin(const Call& call) {
  decide::State state = call.state;
  if (window_) {
    const bool same_shape = window_->metrics().PI.size() == call.snapshot.ranks.size() &&
                            window_->metrics().PB.cols() == call.snapshot.platform.sets.size();
    const decide::Cadence now = window_->cadence();
    state = same_shape ? std::move(*window_).close(now) : decide::State{.cadence = now};
  } else {
    if (params_.alpha0 != call.params.alpha0) state.cadence.alpha = 0;
    if (params_.d0 != call.params.d0) state.cadence.d = 0;
    if (params_.omega != call.params.omega) state.cadence.gamma = 0;
  }
  state.cadence.k = call.state.cadence.k;
  window_.emplace(std::move(state), params_, call.snapshot.ranks.size(), call.snapshot.platform.sets.size());
}

Result<std::vector<decide::Plan>> Rerun::add(const Call& call) {
  BSP_CHECK_OK(decide::validate(params_));
  std::vector<std::string> mapping = mapping_of(call.snapshot);
  // A new window begins where the run's own did: after a wave's pause, or after a lost record.
  if (!window_ || mapping != mapping_ || call.state.cadence.k.value != ended_ + 1 ||
      window_->metrics().PB.cols() != call.snapshot.platform.sets.size())
    begin(call);
  mapping_ = std::move(mapping);
  ended_ = call.supersteps.back().superstep.value;
  std::vector<decide::Plan> plans;
  for (const decide::MeasuredSuperstep& t : call.supersteps) {
    if (t.superstep.value <= added_ || t.superstep < window_->cadence().k) continue;
    added_ = t.superstep.value;
    window_->add(t);
    if (!window_->call_due()) continue;
    BSP_TRY(decide::Plan plan, decide::make_plan(call.snapshot, *window_, params_));
    decide::State state = std::move(*window_).close(plan.next);
    window_.emplace(std::move(state), params_, call.snapshot.ranks.size(), call.snapshot.platform.sets.size());
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace bsp::record
