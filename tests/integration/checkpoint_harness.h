// Real containers for the checkpoint tests: an app container as the operator creates it (bsp-init as PID 1, the six
// capabilities, seccomp unconfined). This process plays the sidecar and reaches the container's own tmpfs through
// /proc/<pid>/root.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "sidecar/control/messages.h"
#include "sidecar/transfer/stream.h"

namespace bsp::test {

struct CommandResult {
  int status = -1;
  std::string output;  // stdout and stderr
};
CommandResult run_command(const std::vector<std::string>& argv);
CommandResult podman(std::vector<std::string> arguments);

// A tiny image with libc, the test programs and /etc/passwd, created once per run. "" if podman can't be used here,
// with the reason in `why`.
std::string test_image(std::string* why = nullptr);

struct PodOptions {
  std::vector<std::string> command{};  // the program; empty: a waiting target
  std::string user = "1000";
  std::string carry_paths{};
  bool seccomp = false;           // with the engine's default profile instead of unconfined
  std::string run_size = "600m";  // of the tmpfs /run/bsp
  std::map<std::string, std::string> env{};
  std::vector<std::string> more{};  // further podman arguments
};

class Pod {
 public:
  explicit Pod(const PodOptions& options);
  Pod(const Pod&) = delete;
  Pod& operator=(const Pod&) = delete;
  ~Pod();

  // The next message with this verb (or one of these); others are dropped. A hello whose state has that name counts
  // too. Fails the test after 30 s, and at an unexpected …-failed.
  std::optional<control::Message> expect(std::string_view verb) { return expect_any({verb}); }
  std::optional<control::Message> expect_any(std::initializer_list<std::string_view> verbs);
  void send(std::string_view verb, std::map<std::string, std::string, std::less<>> fields = {});
  void disconnect();  // as if the sidecar had been killed; expect(hello) waits for the next connection

  [[nodiscard]] std::string path(const std::string& inside) const;  // as seen from this process
  [[nodiscard]] std::string images() const { return path("/run/bsp/images"); }
  std::string logs();    // the container's stdout
  std::string errors();  // and stderr
  // Of a container that runs on: its engine may write what the program has said only a little later.
  std::string logs_with(std::string_view words);
  std::string errors_with(std::string_view words);
  int wait();  // exit status of the container
  std::string exec(const std::vector<std::string>& argv);
  [[nodiscard]] int init_pid() const { return pid_; }  // on the host
  // PIDs on the host of the container's processes with this name.
  [[nodiscard]] std::vector<int> find(const std::string& name) const;
  [[nodiscard]] char program_state();  // of the process `gated`: R S T Z, '-' if there is none
  // The kernel's attributes of `gated`, one per line: identities, capabilities, filters, limits, signals,
  // directories.
  [[nodiscard]] std::vector<std::string> program_identity() const;

 private:
  void accept();
  void open_epoch();  // what the program waits for besides SIGCONT, as at the shim's gate

  std::string name_;
  int pid_ = 0;
  std::string heard_;  // all messages so far, for failure reports
  Fd listener_;
  Fd socket_;
};

struct MoveResult {
  control::Message verdict;       // dumped or dump-failed
  Result<transfer::Totals> sent;  // of the capture session
  std::optional<Error> receive_error;
  double ms = 0;  // from the dump request until everything is verified
};

// Dumps the stopped program of `source` directly into `target`'s tmpfs, as two sidecars would across a network.
// `interfere` sees every piece before it is received; an error ends the capture.
MoveResult dump_into(Pod& source, Pod& target, const std::string& migration, const transfer::Sink& interfere = nullptr);

// A complete move: dump_into, restore, continue; the source is killed before the target continues.
void move(Pod& source, Pod& target, const std::string& migration);

// The program moves to a pod with the options `target`, and from there to another, and exits with 0.
void move_twice(const PodOptions& program, const PodOptions& target);
// Dumps of the program are abandoned half-way and killed; it continues each time, and exits with 0.
void fail_twice(const PodOptions& program);
// The program can't be dumped, for `reason`, and continues.
void stay_for(const std::string& reason, const PodOptions& program, const PodOptions& target);

}  // namespace bsp::test
