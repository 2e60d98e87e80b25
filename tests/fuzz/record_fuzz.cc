// Arbitrary input for the parser of recorded calls. What it accepts is a call that can be replayed, explained, and
// written unchanged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "operator/decide/explain.h"
#include "operator/decide/model/strategy.h"
#include "operator/record/line.h"
#include "operator/record/replay.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace bsp;
  const auto call = record::from_line({reinterpret_cast<const char*>(data), size});
  if (!call) {
    check(call.error().code == ErrorCode::kInvalid && !call.error().message.empty(), "a refusal says why");
    return 0;
  }
  const std::string line = record::to_line(*call);
  const auto again = record::from_line(line);
  check(again.has_value(), "what was written is read");
  check(record::to_line(*again) == line, "what was read is written as it was");
  decide::explain(call->plan, call->snapshot);
  for (const decide::Strategy& strategy : decide::strategies()) {
    decide::Params params = call->params;
    params.heuristic = strategy.heuristic;
    const auto plan = record::replay(*call, params);
    check(plan.has_value(), "a valid call is decided again");
    decide::explain(*plan, call->snapshot);
    const auto second = record::replay(*again, params);
    check(second && record::difference(*plan, *second).empty(), "and always the same way");
  }
  decide::Params other = call->params;
  other.alpha0 = 1 + size % 3;
  record::Rerun rerun(other);
  check(rerun.add(*call).has_value() && rerun.add(*again).has_value(), "a run is decided again");
  return 0;
}
