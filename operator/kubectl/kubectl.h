// kubectl as a subprocess, so that authentication, contexts and proxies are kubectl's. No shell takes part.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "operator/cli/command.h"

namespace bsp::kubectl {

inline constexpr int kPollMs = 1000;  // between two looks of a command that waits

// Passed on to kubectl; "": kubectl's own default.
struct Access {
  std::string name_space, context, kubeconfig;
};
// Declares -n/--namespace, --context and --kubeconfig.
void declare_access(cli::Command& command, Access& access);

class Kubectl {
 public:
  // `quiet`: kubectl's messages become part of the errors; otherwise kubectl prints them itself, and may ask the user.
  explicit Kubectl(Access access, bool quiet = false) : access_(std::move(access)), quiet_(quiet) {}

  // kubectl get WORDS… -o json
  Result<nlohmann::json> get(const std::vector<std::string>& words) const;
  // kubectl create -f -; what kubectl printed.
  Result<std::string> create(const nlohmann::json& object) const;
  // kubectl annotate WORDS… --overwrite KEY=VALUE; what kubectl printed.
  Result<std::string> annotate(const std::vector<std::string>& words, std::string_view key,
                               const std::string& value) const;

 private:
  [[nodiscard]] Result<std::string> run(std::vector<std::string> words, const std::string& input) const;

  Access access_;
  bool quiet_;
};

// The items of a list, or the one object.
std::vector<nlohmann::json> items_of(const nlohmann::json& answer);

// kInvalid unless kubectl can't take it for an option, a list or another kind of object.
Result<void> check_name(const char* what, const std::string& name);

}  // namespace bsp::kubectl
