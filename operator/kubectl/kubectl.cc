#include "operator/kubectl/kubectl.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "operator/local/command.h"
#include "operator/screens/printable.h"

namespace bsp::kubectl {
namespace {

using nlohmann::json;

std::string first_line(const std::string& text) {
  return screens::cut(screens::printable(text.substr(0, text.find('\n'))), 200);
}

}  // namespace

void declare_access(cli::Command& command, Access& access) {
  command.text("-n,--namespace", "NAMESPACE", "namespace (default: kubectl's)", access.name_space);
  command.text("--context", "NAME", "context of the kubeconfig (default: kubectl's)", access.context);
  command.text("--kubeconfig", "FILE", "kubeconfig (default: kubectl's)", access.kubeconfig);
}

Result<std::string> Kubectl::run(std::vector<std::string> words, const std::string& input) const {
  const std::string name = words.size() > 1 ? words[0] + " " + words[1] : words[0];
  words.insert(words.begin(), "kubectl");
  for (const auto& [option, value] : {std::pair{"--namespace", &access_.name_space},
                                      {"--context", &access_.context},
                                      {"--kubeconfig", &access_.kubeconfig}})
    if (!value->empty()) words.push_back(std::format("{}={}", option, *value));
  BSP_TRY(const local::CommandResult done, local::run_command(words, input, {.terminal = true, .errors = !quiet_}));
  if (done.ok()) return done.out;
  if (!quiet_)
    return fail(ErrorCode::kFailed,
                std::format("kubectl {} failed (exit status {}); its message is above", name, done.exit_code));
  const bool gone = done.err.contains("(NotFound)");
  return fail(gone ? ErrorCode::kNotFound : ErrorCode::kFailed,
              first_line(done.err.empty() ? std::format("kubectl {} failed", name) : done.err));
}

Result<json> Kubectl::get(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"get"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"-o", "json"});
  BSP_TRY(const std::string out, run(std::move(all), ""));
  json answer = json::parse(out, nullptr, false);
  if (!answer.is_object())
    return fail(ErrorCode::kFailed,
                std::format("kubectl get {} printed no JSON object, but \"{}\"", words[0], first_line(out)));
  return answer;
}

Result<std::string> Kubectl::create(const json& object) const {
  return run({"create", "-f", "-"}, object.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<std::string> Kubectl::annotate(const std::vector<std::string>& words, std::string_view key,
                                      const std::string& value) const {
  std::vector<std::string> all{"annotate"};
  all.insert(all.end(), words.begin(), words.end());
  all.insert(all.end(), {"--overwrite", std::format("{}={}", key, value)});
  return run(std::move(all), "");
}

std::vector<json> items_of(const json& answer) {
  const json& items = part_at(answer, "items");
  if (!items.is_array()) return {answer};
  return {items.begin(), items.end()};
}

Result<void> check_name(const char* what, const std::string& name) {
  const bool good =
      !name.empty() && name.front() != '-' && name.front() != '.' && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  if (good) return {};
  return fail(ErrorCode::kInvalid,
              std::format("{} \"{}\": must consist of a-z, 0-9, '-' and '.'", what, screens::printable(name)));
}

}  // namespace bsp::kubectl
