#include "operator/kube/api.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <random>

#include "base/json/bounded.h"
#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

double dice(double from, double to) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(from, to)(generator);
}

bool worth_another_try(int status) { return status == 429 || status == 500 || (status >= 502 && status <= 504); }
bool did_nothing(int status) { return status == 429 || status == 503; }

ErrorCode code_for(int status) {
  switch (status) {
    case 401:
    case 403:
      return ErrorCode::kRefused;
    case 404:
      return ErrorCode::kNotFound;
    case 408:
    case 504:
      return ErrorCode::kTimeout;
    case 409:
      return ErrorCode::kConflict;
    case 410:
      return ErrorCode::kUnavailable;
    case 429:
    case 502:
    case 503:
      return ErrorCode::kUnavailable;
    case 507:
      return ErrorCode::kNoSpace;
    default:
      return status >= 500 || status < 400 ? ErrorCode::kFailed : ErrorCode::kInvalid;
  }
}

// Below that no field of Kubernetes lies; a tenant may nest 10,000 levels in what no schema describes.
constexpr int kDeepest = 100;

}  // namespace

milliseconds backoff(unsigned failures, milliseconds first, milliseconds last) {
  const double pause = static_cast<double>(first.count()) * std::pow(2.0, std::min(failures, 40u));
  const double bounded = std::min(pause, static_cast<double>(last.count()));
  return milliseconds(static_cast<std::int64_t>(bounded * dice(0.5, 1.5)));
}

milliseconds jittered(milliseconds pause) {
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * dice(1.0, 1.5)));
}

Error error_of(int status, const std::string& body) {
  // A webhook of a tenant's or a proxy may have written it: what is beyond an answer that says why is not read.
  const json answer = parse_bounded(body, {}).value_or(json());
  std::string message = text_at(answer, "message");
  Error error{code_for(status), "", status == 408 || status == 410 || status == 429 || status >= 500};
  if (status == 409) error.retryable = text_at(answer, "reason") != "AlreadyExists";
  // Another field manager owns what we apply: reading again does not help.
  const json& causes = part_at(part_at(answer, "details"), "causes");
  if (status == 409 && causes.is_array() && !causes.empty() &&
      text_at(causes.front(), "reason") == "FieldManagerConflict")
    error.retryable = false;
  // A quota is no final answer: room may come free.
  if (status == 403 && message.find("exceeded quota") != std::string::npos) error.retryable = true;
  if (message.empty()) {
    // Of a proxy in between, mostly: its first line is enough.
    message = body.substr(0, std::min<std::size_t>(body.find('\n'), 200));
    if (message.empty()) message = "no reason given";
    message = std::format("the server answered {}: {}", status, message);
  } else if (status == 401) {
    message = "our credentials are not accepted: " + message;
  }
  error.message = std::move(message);
  return error;
}

Result<Answer> Api::send(const HttpRequest& request, bool repeatable) {
  const auto deadline = Steady::now() + options_.call;
  bool repeated = false;
  for (unsigned failures = 0;; ++failures) {
    count_request();
    const auto response = http_.send(request, std::min(deadline, Steady::now() + options_.attempt));
    milliseconds pause = backoff(failures, options_.first_pause, options_.last_pause);
    if (response) {
      const HttpHead& head = response->head;
      repeated = repeated || head.repeated;
      const bool again = worth_another_try(head.status) && (repeatable || did_nothing(head.status));
      if (head.retry_after) pause = std::max(pause, jittered(*head.retry_after));
      if (!again || Steady::now() + pause >= deadline) return Answer{head.status, std::move(response->body), repeated};
      repeated = repeated || !did_nothing(head.status);
    } else {
      const HttpFailure& failure = response.error();
      // Whatever is silent to a read is most likely silent on the watches' connection too. A write that is not answered says
      // nothing of the kind: it waits for admission webhooks, which may be slow for one tenant and belong to another.
      if (failure.error.code == ErrorCode::kTimeout && request.method == "GET") http_.end_streams();
      const bool again = failure.error.retryable && (repeatable || !failure.sent);
      if (!again || Steady::now() + pause >= deadline) return std::unexpected(failure.error);
      repeated = repeated || failure.sent;
    }
    if (!http_.sleep_until(Steady::now() + pause)) return fail(ErrorCode::kUnavailable, "the API client is closed");
  }
}

Result<Answer> Api::call(const HttpRequest& request, bool repeatable) {
  BSP_TRY(Answer answer, send(request, repeatable));
  if (!answer.ok()) return std::unexpected(error_of(answer.status, answer.body));
  return answer;
}

Result<json> parse_object(std::string_view text, const std::string& what) {
  const json::parser_callback_t keep = [](int depth, json::parse_event_t event, json& parsed) {
    using enum json::parse_event_t;
    // Copies, packing and texts recurse; parsing does not. Whoever reads the field finds a text where it wants none.
    if ((event == object_end || event == array_end) && depth >= kDeepest) parsed = "(nested too deeply)";
    return event != json::parse_event_t::key || parsed != "managedFields";
  };
  json object = json::parse(text, keep, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorCode::kFailed, what + ": the answer is not an object in JSON", true);
  return object;
}

}  // namespace bsp::kube
