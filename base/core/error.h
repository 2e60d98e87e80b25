// Failures of the environment are values; a broken invariant ends the process, or the unit of work (guard.h) it is in.
//
// Whatever depends on the world outside this process (files, sockets, CRIU, Podman, user input) returns a Result, and
// an Error on failure. check() is for what only a bug in our own code can cause.
#pragma once

#include <expected>
#include <format>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace bsp {

enum class ErrorCode {
  kInvalid,      // the input is wrong; the message names the field and the remedy
  kNotFound,     // the named object or file doesn't exist
  kConflict,     // the object has changed since it was read (optimistic locking), or already exists
  kUnavailable,  // the peer can't be reached right now
  kTimeout,      // no answer before the deadline
  kRefused,      // the peer or the system refused
  kUntrusted,    // one end of a link rejects the other's certificate; a renewed one may be accepted
  kNoSpace,      // disk, tmpfs or memory is full
  kFailed,       // a tool or system call failed
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;     // one sentence, ready for a user
  bool retryable = false;  // the same call may succeed later

  // The same error with context in front: "restoring rank 3: no space left on /run/bsp".
  [[nodiscard]] Error in(std::string_view context) const {
    return {code, std::format("{}: {}", context, message), retryable};
  }
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message, bool retryable = false) {
  return std::unexpected(Error{code, std::move(message), retryable});
}

// Maps errno to a code (kNoSpace, kNotFound, …; otherwise kFailed) and appends strerror(errno).
std::unexpected<Error> fail_errno(std::string_view what);
std::unexpected<Error> fail_errno(std::string_view what, int error_number);

// The name used on the wire and in logs: "Invalid", "NotFound", …
std::string_view to_string(ErrorCode code);
ErrorCode error_code_from(std::string_view name);  // kFailed if unknown

// Ends the process, or throws while a ChecksThrow exists (guard.h).
[[noreturn]] void break_invariant(std::string_view what, std::source_location where);

inline void check(bool ok, std::string_view what, std::source_location where = std::source_location::current()) {
  if (ok) [[likely]]
    return;
  break_invariant(what, where);
}

}  // namespace bsp

// Unwraps a Result into a new variable, or makes the enclosing function return its error.
#define BSP_TRY_CONCAT_(a, b) a##b
#define BSP_TRY_NAME_(a, b) BSP_TRY_CONCAT_(a, b)
#define BSP_TRY(decl, expr)                                                                                           \
  auto BSP_TRY_NAME_(result_, __LINE__) = (expr);                                                                     \
  if (!BSP_TRY_NAME_(result_, __LINE__)) return std::unexpected(std::move(BSP_TRY_NAME_(result_, __LINE__)).error()); \
  decl = std::move(*BSP_TRY_NAME_(result_, __LINE__))

// The same for Result<void>.
#define BSP_CHECK_OK(expr)                                                                   \
  do {                                                                                       \
    if (auto result_ = (expr); !result_) return std::unexpected(std::move(result_).error()); \
  } while (0)
