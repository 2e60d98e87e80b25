// Which decisions of the operator this pod has followed (crds/wire.h), also over a restart of the sidecar.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/core/error.h"
#include "crds/wire.h"

namespace bsp::sidecar {

class Followed {
 public:
  // What the previous sidecar of this pod saved in that file.
  explicit Followed(std::string file);

  // Call it with the fields of each verb that acts, before it acts. kConflict if a later decision has been followed already, or
  // if the verb sets a gate whose gate is over: such a message has been under way for long, and the rank would wait for a verdict
  // that nobody gives. Attempts number the gates of a wave, and are compared for the verbs of gates only: seats have separate
  // connections, so that the preparation of one may come after the gate of another.
  Result<void> follow(std::string_view verb, const nlohmann::json& fields);
  // At the verb's seat the gate of its token, and of every lower one, is cancelled, dropped or has served its purpose.
  void end_gate(const nlohmann::json& fields);
  [[nodiscard]] const wire::Token& highest() const { return highest_; }

 private:
  void save() const;

  const std::string file_;
  wire::Token highest_;
  std::map<std::uint64_t, wire::Token> gate_over_;  // by seat: each has a gate of its own
};

}  // namespace bsp::sidecar
