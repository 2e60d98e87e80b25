#include "operator/local/podman.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <format>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json/fields.h"

namespace bsp::local::podman {
namespace {

using nlohmann::json;

std::vector<std::string> base_command() {
  // Podman 4 warns about cgroup v1 on every call.
  static const bool quiet = ::setenv("PODMAN_IGNORE_CGROUPSV1_WARNING", "1", 0) == 0;
  (void)quiet;
  // We don't read events: pidfds report exits. Without a journal, writing events would make every call fail.
  std::vector<std::string> argv{"podman", "--events-backend", "none"};
  if (!std::filesystem::exists("/run/systemd/system")) argv.insert(argv.end(), {"--cgroup-manager", "cgroupfs"});
  return argv;
}

// The error is the last line that isn't of the form "time=… level=warning msg=…".
std::string last_line(const std::string& text) {
  std::string last;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!line.empty() && !line.starts_with("time=")) last = line;
    begin = end + 1;
  }
  return last.starts_with("Error: ") ? last.substr(7) : last;
}

bool contains_any(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::any_of(parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

Result<json> call_json(const std::vector<std::string>& args) {
  BSP_TRY(const std::string out, call(args));
  json parsed = json::parse(out, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return fail(ErrorCode::kFailed, "podman's output is not valid JSON");
  return parsed;
}

std::vector<std::string> texts(const json& j, const char* field) {
  const auto it = j.find(field);
  return it != j.end() && it->is_array() ? it->get<std::vector<std::string>>() : std::vector<std::string>{};
}

}  // namespace

Result<void> check_usable() {
  if (::geteuid() != 0)
    return fail(ErrorCode::kRefused,
                "local mode creates network namespaces and containers and must run as root; use sudo");
  auto answer = call({"version", "--format", "{{.Client.Version}}"});
  if (!answer && answer.error().code == ErrorCode::kNotFound)
    return fail(ErrorCode::kNotFound, "podman is not installed; on Debian: apt-get install podman runc catatonit");
  if (!answer) return std::unexpected(answer.error().in("podman doesn't work on this machine"));
  return {};
}

Result<std::string> call(const std::vector<std::string>& args) {
  std::vector<std::string> argv = base_command();
  argv.insert(argv.end(), args.begin(), args.end());
  BSP_TRY(CommandResult done, run_command(argv));
  if (!done.ok()) return std::unexpected(translate(done.err, "", ""));
  return std::move(done.out);
}

// Podman's default limits are higher than a machine without CAP_SYS_RESOURCE may set. Podman lowers its own nproc
// before it starts the runtime (here 96365 was refused as a hard limit, 30000 wasn't), hence the maximum.
void add_limits(std::vector<std::string>& args) {
  struct Limit {
    const char* name;
    __rlimit_resource resource;
    rlim_t most;
  };
  for (const Limit& l : {Limit{"nofile", RLIMIT_NOFILE, 1'048'576}, Limit{"nproc", RLIMIT_NPROC, 30'000}}) {
    rlimit limit{};
    if (::getrlimit(l.resource, &limit) != 0) continue;
    const rlim_t value = std::min(limit.rlim_max, l.most);
    args.insert(args.end(), {"--ulimit", std::format("{}={}:{}", l.name, value, value)});
  }
}

Error translate(const std::string& stderr_text, const std::string& image, const std::string& command) {
  const std::string line = last_line(stderr_text);
  if (contains_any(line, {"image not known", "did not resolve to an alias", "no such image", "initializing source",
                          "reading manifest"}))
    return {ErrorCode::kNotFound,
            std::format("image {} does not exist in Podman's store; build it, or fetch it with: podman pull {}", image,
                        image)};
  if (contains_any(line, {"invalid reference format"}))
    return {ErrorCode::kInvalid, std::format("image \"{}\" is not a valid image name", image)};
  if (contains_any(line, {"command that was not found", "executable file not found", "no such file or directory: OCI"}))
    return {ErrorCode::kNotFound, std::format("command {} not found in image {}", command, image)};
  if (contains_any(line, {"permission denied: OCI"}) && contains_any(line, {"exec"}))
    return {ErrorCode::kRefused, std::format("command {} in image {} may not be executed", command, image)};
  if (contains_any(line, {"is already in use"})) return {ErrorCode::kConflict, line};
  if (contains_any(line, {"no such container", "no container with"})) return {ErrorCode::kNotFound, line};
  if (contains_any(line, {"no space left on device"})) return {ErrorCode::kNoSpace, "no space left on device: " + line};
  return {ErrorCode::kFailed, "podman: " + (line.empty() ? "failed without a message" : line)};
}

Result<std::optional<ContainerState>> inspect(const std::string& name) {
  auto state = call_json({"container", "inspect", "--format", "{{json .State}}", name});
  if (!state && state.error().code == ErrorCode::kNotFound) return std::nullopt;
  if (!state) return std::unexpected(state.error());
  return ContainerState{.status = text_at(*state, "Status"),
                        .pid = count_at<int>(*state, "Pid"),
                        .exit_code = whole_number<int>(part_at(*state, "ExitCode")).value_or(0),
                        .out_of_memory = flag_at(*state, "OOMKilled", false),
                        .started_at = text_at(*state, "StartedAt"),
                        .finished_at = text_at(*state, "FinishedAt")};
}

std::string image_of_container(const std::string& name) {
  auto id = call({"container", "inspect", "--format", "{{.Image}}", name});
  if (!id) return "";
  while (id->ends_with('\n')) id->pop_back();
  return *std::move(id);
}

Result<ImageConfig> image_config(const std::string& image) {
  BSP_TRY(const CommandResult done, [&] {
    std::vector<std::string> argv = base_command();
    argv.insert(argv.end(), {"image", "inspect", "--format", "{{json .Config}}", image});
    return run_command(argv);
  }());
  if (!done.ok()) return std::unexpected(translate(done.err, image, ""));
  const json config = json::parse(done.out, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return ImageConfig{};
  return ImageConfig{.entrypoint = texts(config, "Entrypoint"),
                     .command = texts(config, "Cmd"),
                     .user = text_at(config, "User"),
                     .working_dir = text_at(config, "WorkingDir"),
                     .env = texts(config, "Env")};
}

Result<std::vector<std::string>> image_layers(const std::string& image) {
  std::vector<std::string> argv = base_command();
  argv.insert(argv.end(),
              {"image", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}:{{.GraphDriver.Data.LowerDir}}", image});
  BSP_TRY(const CommandResult done, run_command(argv));
  if (!done.ok()) return std::unexpected(translate(done.err, image, ""));
  std::vector<std::string> layers;
  for (std::size_t begin = 0; begin < done.out.size();) {
    const std::size_t end = std::min(done.out.find_first_of(":\n", begin), done.out.size());
    // Podman prints "<no value>" for a missing key.
    if (const std::string layer = done.out.substr(begin, end - begin); layer.starts_with('/')) layers.push_back(layer);
    begin = end + 1;
  }
  if (layers.empty())
    return fail(ErrorCode::kFailed,
                std::format("Podman doesn't store image {} with its overlay driver, which local mode requires", image));
  return layers;
}

Result<std::vector<std::string>> containers_with(const std::string& label) {
  BSP_TRY(const std::string out, call({"ps", "-a", "--filter", "label=" + label, "--format", "{{.Names}}"}));
  std::vector<std::string> names;
  std::size_t begin = 0;
  for (std::size_t end; (end = out.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (end > begin) names.push_back(out.substr(begin, end - begin));
  return names;
}

Result<void> remove_containers(const std::vector<std::string>& names, int grace_seconds) {
  if (names.empty()) return {};
  std::vector<std::string> args{"rm", "-f", "-v", "--ignore", "-t", std::to_string(grace_seconds)};
  args.insert(args.end(), names.begin(), names.end());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30 + grace_seconds);
  for (;;) {
    auto done = call(args);
    if (done) return {};
    // Transient: "container is being removed by another process", or a busy mount.
    if (std::chrono::steady_clock::now() > deadline) return std::unexpected(done.error());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

}  // namespace bsp::local::podman
