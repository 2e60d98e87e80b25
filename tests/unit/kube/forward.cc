#include "forward.h"

#include <unistd.h>

#include <format>

namespace bsp::kube_test {
namespace {

using std::chrono::seconds;
using Steady = std::chrono::steady_clock;

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

}  // namespace

Forward::Forward(const std::string& kubeconfig) {
  static std::atomic<int> count = 0;
  name_space_ = std::format("t{}-{}-{}", ::getpid(), Steady::now().time_since_epoch().count() / 1000, count++);
  const kube::Config config = kube::kubeconfig({kubeconfig}).value();
  http_ = kube::Http::create(config).value();
  auto client = kube::ApiClient::create(config).value();
  check(
      client->create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name_space_}}}}).has_value(),
      "a namespace on the real API server");
}

std::string Forward::inward(std::string text) const {
  replace_all(text, "/namespaces/default/", "/namespaces/" + name_space_ + "/");
  replace_all(text, R"("namespace":"default")", R"("namespace":")" + name_space_ + "\"");
  return text;
}

std::string Forward::outward(std::string text) const {
  replace_all(text, R"("namespace":")" + name_space_ + "\"", R"("namespace":"default")");
  return text;
}

void Forward::handle(const Request& request, Reply& reply) {
  kube::HttpRequest passed{.method = request.method, .target = inward(request.target), .body = inward(request.body)};
  if (const auto type = request.headers.find("content-type"); type != request.headers.end())
    passed.content_type = type->second;
  if (request.target.find("watch=1") != std::string::npos) return watch(passed, reply);
  const auto answer = http_->send(passed, Steady::now() + seconds(30));
  if (!answer) return;  // the connection breaks
  std::string headers;
  if (answer->head.retry_after)
    headers = std::format("Retry-After: {}\r\n", std::chrono::ceil<seconds>(*answer->head.retry_after).count());
  reply.whole(answer->head.status, outward(answer->body), headers);
}

void Forward::watch(const kube::HttpRequest& request, Reply& reply) {
  kube::HttpRequest passed = request;
  if (old_.exchange(false)) {
    const std::size_t from = passed.target.find("resourceVersion=") + 16;
    passed.target.replace(from, passed.target.find('&', from) - from, "1");
  }
  kube::HttpStream stream = http_->stream(passed);
  const auto head = stream.head(Steady::now() + seconds(30));
  if (!head || !reply.begin(head->status)) return;
  ++watches_;
  std::string rest;
  for (bool good = true; good;) {
    const auto piece = stream.read(Steady::now());
    if (!piece && piece.error().error.code != ErrorCode::kTimeout) break;
    if (piece && piece->empty()) break;
    if (piece) rest += *piece;
    // A line at a time, so that faults can tell them apart.
    for (std::size_t to; good && (to = rest.find('\n')) != std::string::npos; rest.erase(0, to + 1))
      good = reply.piece(outward(rest.substr(0, to + 1)));
    if (good && !piece) good = reply.alive();
  }
  --watches_;
  if (!rest.empty()) reply.piece(outward(rest));
  reply.end();
}

}  // namespace bsp::kube_test
