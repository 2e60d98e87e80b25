#include "operator/kube/api.h"

#include <algorithm>
#include <format>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/core/backoff.h"
#include "base/core/metric.h"
#include "base/json/bounded.h"
#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

double random_between(double from, double to) {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return std::uniform_real_distribution<double>(from, to)(generator);
}

bool is_transient(int status) { return status == 429 || status == 500 || (status >= 502 && status <= 504); }
bool was_not_processed(int status) { return status == 429 || status == 503; }

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

Metric requests_sent(Metric::Type::kCounter, "bsp_api_requests_total",
                     "Requests to the API server by method and status; status 0: no answer.", {"method", "code"});
Metric requests_repeated(Metric::Type::kCounter, "bsp_api_retries_total",
                         "Requests to the API server that were repeated.", {"method"});

// No field of Kubernetes lies deeper; in a field without a schema a tenant may nest 10,000 levels.
constexpr int kMaxObjectDepth = 100;

}  // namespace

milliseconds backoff(unsigned failures, milliseconds first, milliseconds last) {
  const std::chrono::duration<double, std::milli> pause = Backoff(first, last).after(failures);
  return milliseconds(static_cast<std::int64_t>(pause.count() * random_between(0.5, 1.5)));
}

milliseconds jittered(milliseconds pause) {
  return milliseconds(static_cast<std::int64_t>(static_cast<double>(pause.count()) * random_between(1.0, 1.5)));
}

Error error_of(int status, const std::string& body) {
  // A tenant's webhook or a proxy may have written it, so parse it with the tight default limits.
  const json answer = parse_bounded(body, {}).value_or(json());
  std::string message = text_at(answer, "message");
  Error error{code_for(status), "", status == 408 || status == 410 || status == 429 || status >= 500};
  if (status == 409) error.retryable = text_at(answer, "reason") != "AlreadyExists";
  // Retry after an exceeded quota: capacity may become free.
  if (status == 403 && message.find("exceeded quota") != std::string::npos) error.retryable = true;
  if (message.empty()) {
    // Most likely a proxy's answer: its first line is enough.
    message = body.substr(0, std::min<std::size_t>(body.find('\n'), 200));
    if (message.empty()) message = "no reason given";
    message = std::format("the server answered {}: {}", status, message);
  } else if (status == 401) {
    message = "the server rejected our credentials: " + message;
  }
  error.message = std::move(message);
  return error;
}

Result<Answer> Api::send(const HttpRequest& request, bool repeatable) {
  const auto deadline = Steady::now() + options_.call;
  bool repeated = false;
  std::optional<Answer> last;
  for (unsigned failures = 0;; ++failures) {
    count_request();
    auto response = http_.send(request, std::min(deadline, Steady::now() + options_.attempt));
    requests_sent.add({request.method, std::to_string(response ? response->head.status : 0)});
    if (failures > 0) requests_repeated.add({request.method});
    milliseconds pause = backoff(failures, options_.first_pause, options_.last_pause);
    if (response) {
      const HttpHead& head = response->head;
      repeated = repeated || head.repeated;
      const bool again = is_transient(head.status) && (repeatable || was_not_processed(head.status));
      if (head.retry_after) pause = std::max(pause, jittered(*head.retry_after));
      last = Answer{head.status, std::move(response->body), repeated};
      if (!again || Steady::now() + pause >= deadline) return std::move(*last);
      repeated = repeated || !was_not_processed(head.status);
    } else {
      const HttpFailure& failure = response.error();
      if (failure.error.code == ErrorCode::kTimeout && request.method == "GET") {
        if (last && Steady::now() + pause >= deadline) return std::move(*last);  // there was no time for another one
        // A server that doesn't answer a read is most likely silent on the watches' connections too. An unanswered
        // write shows no such thing: it waits for admission webhooks, which may be slow for one tenant only.
        http_.end_streams();
      }
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
    // Copying, packing and printing an object recurse; parsing doesn't. A reader of the field finds a string, of the
    // wrong type.
    if ((event == object_end || event == array_end) && depth >= kMaxObjectDepth) parsed = "(nested too deeply)";
    return event != json::parse_event_t::key || parsed != "managedFields";
  };
  json object = json::parse(text, keep, /*allow_exceptions=*/false);
  if (!object.is_object()) return fail(ErrorCode::kFailed, what + ": the answer is not a JSON object", true);
  return object;
}

}  // namespace bsp::kube
