#include "base/core/error.h"

#include <array>
#include <cerrno>
#include <system_error>

namespace bsp {
namespace {

constexpr std::array<std::pair<ErrorCode, std::string_view>, 9> kNames{{
    {ErrorCode::kInvalid, "Invalid"},
    {ErrorCode::kNotFound, "NotFound"},
    {ErrorCode::kConflict, "Conflict"},
    {ErrorCode::kUnavailable, "Unavailable"},
    {ErrorCode::kTimeout, "Timeout"},
    {ErrorCode::kRefused, "Refused"},
    {ErrorCode::kUntrusted, "Untrusted"},
    {ErrorCode::kNoSpace, "NoSpace"},
    {ErrorCode::kFailed, "Failed"},
}};

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ESRCH:
      return ErrorCode::kNotFound;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
      return ErrorCode::kNoSpace;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case EPIPE:
      return ErrorCode::kUnavailable;
    case ETIMEDOUT:
      return ErrorCode::kTimeout;
    case EEXIST:
      return ErrorCode::kConflict;
    case EACCES:
    case EPERM:
      return ErrorCode::kRefused;
    default:
      return ErrorCode::kFailed;
  }
}

}  // namespace

std::unexpected<Error> fail_errno(std::string_view what, int error_number) {
  ErrorCode code = code_of(error_number);
  bool retryable =
      code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout || error_number == EINTR || error_number == EAGAIN;
  return fail(code, std::format("{}: {}", what, std::generic_category().message(error_number)), retryable);
}

std::unexpected<Error> fail_errno(std::string_view what) { return fail_errno(what, errno); }

std::string_view to_string(ErrorCode code) {
  for (const auto& [value, name] : kNames)
    if (value == code) return name;
  return "Failed";
}

ErrorCode error_code_from(std::string_view name) {
  for (const auto& [value, known] : kNames)
    if (known == name) return value;
  return ErrorCode::kFailed;
}

}  // namespace bsp
