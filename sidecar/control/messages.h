// The messages between the sidecar and bsp-init, as types. control.h has the packets.
//
// Unknown keys are ignored, and so is a message with an unknown verb: either end may be newer.
//
// bsp-init owns the program's state and reports all of it in each `hello`, so a restarted sidecar needs no saved
// copy. Every request is idempotent.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/core/fields.h"
#include "sidecar/control/control.h"

namespace bsp::control {

using bsp::to_string;

enum class ProgramState {
  kWaiting,  // no program yet: --restore, or with kEnvCpu before Start
  kRunning,
  kStopped,  // stopped here, by itself (gate)
  kDumping,  // stopped, criu is dumping
  kDumped,   // stopped; the last named migration was dumped
  kRestoring,
  kRestored,  // stopped, never continued here
  kExited,
};
constexpr auto names_of(Of<ProgramState>) {
  return std::to_array<std::string_view>(
      {"waiting", "running", "stopped", "dumping", "dumped", "restoring", "restored", "exited"});
}

enum class Mode { kRun, kRestore };
constexpr auto names_of(Of<Mode>) { return std::to_array<std::string_view>({"run", "restore"}); }

// Raised when a message gets another meaning. Either end may be one version newer, as an upgrade of the runtime image makes it;
// further ones aren't tried, since what they say may mean something else.
inline constexpr std::uint32_t kProtocol = 1;
constexpr bool is_understood(std::uint32_t protocol) {
  return protocol > 0 && (protocol > kProtocol ? protocol - kProtocol : kProtocol - protocol) <= 1;
}

// --- bsp-init -> sidecar ---------------------------------------------------------------------------
// The first packet after each connect: the complete state.
struct Hello {
  static constexpr std::string_view kVerb = "hello";
  std::uint32_t protocol = kProtocol;
  Mode mode = Mode::kRun;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::int64_t pid = 0;  // 0: no program
  std::optional<ProgramState> state{};
  int code = -1;  // this and the next two as in Exited
  int signal = 0;
  std::string message{};
  std::string migration{};     // of the last dump or restore, pending or done
  std::uint64_t features = 0;  // that the program has seen (RankStatus::program_features); 0: no program, or not known
  int ahead = 0;               // as in Restored
};
constexpr void fields_of(Of<Hello>, auto&& v) {
  v("protocol", &Hello::protocol);
  v("mode", &Hello::mode);
  v("uid", &Hello::uid);
  v("gid", &Hello::gid);
  v("pid", &Hello::pid);
  v("state", &Hello::state);
  v("code", &Hello::code);
  v("signal", &Hello::signal);
  v("message", &Hello::message);
  v("migration", &Hello::migration);
  v("features", &Hello::features, kRare);
  v("ahead", &Hello::ahead, kRare);
}

// The program was started or continued.
struct Running {
  static constexpr std::string_view kVerb = "running";
  std::int64_t pid = 0;
};
constexpr void fields_of(Of<Running>, auto&& v) { v("pid", &Running::pid); }

// The program's main process stopped (SIGSTOP); its output is drained.
struct Stopped {
  static constexpr std::string_view kVerb = "stopped";
  std::int64_t pid = 0;
};
constexpr void fields_of(Of<Stopped>, auto&& v) { v("pid", &Stopped::pid); }

// The program ended. The sidecar answers with Bye or Stay.
struct Exited {
  static constexpr std::string_view kVerb = "exited";
  int code = -1;
  int signal = 0;         // not 0: the signal that killed it
  std::string message{};  // why it could not be started, or what is unusual about its end
};
constexpr void fields_of(Of<Exited>, auto&& v) {
  v("code", &Exited::code);
  v("signal", &Exited::signal);
  v("message", &Exited::message);
}

// criu was started.
struct Dumping {
  static constexpr std::string_view kVerb = "dumping";
  std::string migration{};
  std::int64_t pid = 0;  // of criu
};
constexpr void fields_of(Of<Dumping>, auto&& v) {
  v("migration", &Dumping::migration);
  v("pid", &Dumping::pid);
}

// criu succeeded; all files were written to the capture socket.
struct Dumped {
  static constexpr std::string_view kVerb = "dumped";
  std::string migration{};
  std::uint64_t ns = 0;
};
constexpr void fields_of(Of<Dumped>, auto&& v) {
  v("migration", &Dumped::migration);
  v("ns", &Dumped::ns);
}

// The program still exists, stopped.
struct DumpFailed {
  static constexpr std::string_view kVerb = "dump-failed";
  std::string migration{};
  std::string message{};
};
constexpr void fields_of(Of<DumpFailed>, auto&& v) {
  v("migration", &DumpFailed::migration);
  v("message", &DumpFailed::message);
}

// The process exists, stopped.
struct Restored {
  static constexpr std::string_view kVerb = "restored";
  std::string migration{};
  std::int64_t pid = 0;
  std::uint64_t ns = 0;
  std::uint64_t features = 0;  // as in Hello
  std::string note{};          // what was done to files on shared volumes
  int ahead = 0;               // 1: some of them have grown since the dump, and are to be cut off before it continues
};
constexpr void fields_of(Of<Restored>, auto&& v) {
  v("features", &Restored::features, kRare);
  v("note", &Restored::note, kRare);
  v("ahead", &Restored::ahead, kRare);
  v("migration", &Restored::migration);
  v("pid", &Restored::pid);
  v("ns", &Restored::ns);
}

// What a restore has failed by: perhaps the image, or else this node; or that what the image needs is for certain not as it was, wherever
// it is restored.
enum class RestoreCause { kImage, kRefused };
constexpr auto names_of(Of<RestoreCause>) { return std::to_array<std::string_view>({"image", "refused"}); }

// Nothing of the process is left; bsp-init waits again.
struct RestoreFailed {
  static constexpr std::string_view kVerb = "restore-failed";
  std::string migration{};
  std::string message{};
  std::optional<RestoreCause> cause{};  // not set: something that happened here and now
};
constexpr void fields_of(Of<RestoreFailed>, auto&& v) {
  v("cause", &RestoreFailed::cause, kRare);
  v("migration", &RestoreFailed::migration);
  v("message", &RestoreFailed::message);
}

// Answers Discard: no copy of the process is left here.
struct Discarded {
  static constexpr std::string_view kVerb = "discarded";
  std::string migration{};
};
constexpr void fields_of(Of<Discarded>, auto&& v) { v("migration", &Discarded::migration); }

// For how long in total the CPU limit has throttled the container. Sent when it grows, at most once a second.
struct Throttled {
  static constexpr std::string_view kVerb = "throttled";
  std::uint64_t ns = 0;
};
constexpr void fields_of(Of<Throttled>, auto&& v) { v("ns", &Throttled::ns); }

// The program whose copy runs elsewhere is gone, and this container waits for another.
struct Vacated {
  static constexpr std::string_view kVerb = "vacated";
};
constexpr void fields_of(Of<Vacated>, auto&&) {}

using FromInit = std::variant<Hello, Running, Stopped, Exited, Dumping, Dumped, DumpFailed, Restored, RestoreFailed,
                              Vacated, Discarded, Throttled>;

// --- sidecar -> bsp-init ---------------------------------------------------------------------------
// Which files on shared volumes a dump notes, since they run ahead of it (sidecar/init/shared_files.h): those that the rank has open,
// or all that the program has written too.
enum class NotedFiles { kOpen, kWritten };
constexpr auto names_of(Of<NotedFiles>) { return std::to_array<std::string_view>({"open", "written"}); }

// The capture socket is open: dump the stopped program into it.
struct Dump {
  static constexpr std::string_view kVerb = "dump";
  std::string migration{};
  std::optional<NotedFiles> notes{};  // not set: none, as in a move, after which the program goes on at once
};
constexpr void fields_of(Of<Dump>, auto&& v) {
  v("migration", &Dump::migration);
  v("notes", &Dump::notes, kRare);
}

// Abandon a pending dump or restore: kill criu. Answered by DumpFailed or RestoreFailed.
struct Abandon {
  static constexpr std::string_view kVerb = "abandon";
  std::string migration{};
};
constexpr void fields_of(Of<Abandon>, auto&& v) { v("migration", &Abandon::migration); }

// Restore names::kImagesDir/<migration> and leave the process stopped.
struct Restore {
  static constexpr std::string_view kVerb = "restore";
  std::string migration{};
  int ignore_files = 0;  // 1: files that the dump has noted may have changed (spec.checkpoint.sharedFiles)
  int cut = 0;           // 1: of a process that is restored: cut off those that are ahead of it
};
constexpr void fields_of(Of<Restore>, auto&& v) {
  v("migration", &Restore::migration);
  v("ignore_files", &Restore::ignore_files, kRare);
  v("cut", &Restore::cut, kRare);
}

// Start the program, which waits for it (kEnvCpu), with these CPU features. Without effect on one that has been started.
struct Start {
  static constexpr std::string_view kVerb = "start";
  std::uint64_t features = 0;
};
constexpr void fields_of(Of<Start>, auto&& v) { v("features", &Start::features); }

// SIGCONT. The ONLY way to continue a stopped or restored program.
struct Continue {
  static constexpr std::string_view kVerb = "continue";
  std::uint64_t epoch = 0;
};
constexpr void fields_of(Of<Continue>, auto&& v) { v("epoch", &Continue::epoch); }

// Kill a restored copy that was never continued and wait for another.
struct Discard {
  static constexpr std::string_view kVerb = "discard";
  std::string migration{};
};
constexpr void fields_of(Of<Discard>, auto&& v) { v("migration", &Discard::migration); }

// SIGKILL the program. Answered by Exited, whose message then ends with the reason.
struct Kill {
  static constexpr std::string_view kVerb = "kill";
  std::string reason{};
};
constexpr void fields_of(Of<Kill>, auto&& v) { v("reason", &Kill::reason, kRare); }

// SIGKILL the program, which was dumped and runs elsewhere, and wait for another. Answered by Vacated, or as Kill: by Exited, if the
// program has left files behind that another one must not find.
struct Vacate {
  static constexpr std::string_view kVerb = "vacate";
};
constexpr void fields_of(Of<Vacate>, auto&&) {}

// `exited` was recorded: bsp-init may exit.
struct Bye {
  static constexpr std::string_view kVerb = "bye";
};
constexpr void fields_of(Of<Bye>, auto&&) {}

// `exited` was recorded, but the pod is still needed: wait for Bye for the same time again.
struct Stay {
  static constexpr std::string_view kVerb = "stay";
};
constexpr void fields_of(Of<Stay>, auto&&) {}

// Exit now: kill whatever is left (job end, unused target).
struct Quit {
  static constexpr std::string_view kVerb = "quit";
  int code = 0;
};
constexpr void fields_of(Of<Quit>, auto&& v) { v("code", &Quit::code); }

// A moment at which this pod was certainly not cut off, on the machine's steady clock (crds/fencing.h).
struct Fresh {
  static constexpr std::string_view kVerb = "fresh";
  std::uint64_t ns = 0;
};
constexpr void fields_of(Of<Fresh>, auto&& v) { v("ns", &Fresh::ns); }

using ToInit = std::variant<Dump, Abandon, Restore, Start, Continue, Discard, Kill, Vacate, Bye, Stay, Quit, Fresh>;

// --- Packets ---------------------------------------------------------------------------------------
namespace detail {

inline std::string text_of(const std::string& value) { return value; }
template <std::integral T>
std::string text_of(T value) {
  return std::to_string(value);
}
template <NamedEnum E>
std::string text_of(E value) {
  return std::string(to_string(value));
}
template <class T>
std::string text_of(const std::optional<T>& value) {
  return value ? text_of(*value) : std::string();
}

// A value that can't be parsed leaves the default, as if the field were absent.
inline void take(std::string_view text, std::string& into) { into = text; }
template <std::integral T>
void take(std::string_view text, T& into) {
  T value{};
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && at == text.data() + text.size()) into = value;
}
template <NamedEnum E>
void take(std::string_view text, E& into) {
  into = enum_named<E>(text).value_or(into);
}
template <NamedEnum E>
void take(std::string_view text, std::optional<E>& into) {
  into = enum_named<E>(text);
}

}  // namespace detail

template <HasFields T>
Message packet_of(const T& message) {
  Message packet{std::string(T::kVerb), {}};
  visit_fields(message, [&](const char* name, const auto& member, const Field& field) {
    std::string text = detail::text_of(member);
    if (!field.rare || (!text.empty() && text != "0")) packet.fields.emplace(name, std::move(text));
  });
  return packet;
}

template <HasFields T>
T from_packet(const Message& packet) {
  T message;
  visit_fields(message, [&](const char* name, auto& member) {
    if (const auto it = packet.fields.find(std::string_view(name)); it != packet.fields.end())
      detail::take(it->second, member);
  });
  return message;
}

namespace detail {

template <class Variant, std::size_t i = 0>
std::optional<Variant> read(const Message& packet) {
  if constexpr (i == std::variant_size_v<Variant>) {
    return std::nullopt;
  } else {
    using T = std::variant_alternative_t<i, Variant>;
    return packet.verb == T::kVerb ? std::optional<Variant>(from_packet<T>(packet)) : read<Variant, i + 1>(packet);
  }
}

}  // namespace detail

template <class... T>
Message packet_of(const std::variant<T...>& message) {
  return std::visit([](const auto& one) { return packet_of(one); }, message);
}

// nullopt: a verb that this version doesn't know.
inline std::optional<FromInit> from_init(const Message& packet) { return detail::read<FromInit>(packet); }
inline std::optional<ToInit> to_init(const Message& packet) { return detail::read<ToInit>(packet); }

// Dispatches on a message's type: std::visit(Handlers{…}, message).
template <class... F>
struct Handlers : F... {
  using F::operator()...;
};

}  // namespace bsp::control
