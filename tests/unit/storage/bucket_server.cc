#include "tests/unit/storage/bucket_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <format>
#include <fstream>
#include <sstream>
#include <vector>

#include "tests/unit/controller/http_get.h"

extern char** environ;

namespace bsp::storage {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

std::string server_program() { return std::string(BSP_SOURCE_DIR) + "/build/cluster/bin/versitygw"; }
constexpr const char* kClient = "/usr/bin/rclone";

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Fd listening(std::uint16_t& port) {
  Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener.get(), 64) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    std::abort();
  port = ntohs(address.sin_port);
  return listener;
}

Fd connected(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) socket.reset();
  return socket;
}

// Within the time; a pause between the looks is no wait for an event, but nobody says when another program listens.
bool listens(std::uint16_t port, pid_t pid) {
  for (const auto limit = std::chrono::steady_clock::now() + 60s; std::chrono::steady_clock::now() < limit;) {
    if (connected(port)) return true;
    if (::waitpid(pid, nullptr, WNOHANG) != 0) return false;
    std::this_thread::sleep_for(50ms);
  }
  return false;
}

bool readable(const Fd& fd, const std::atomic<bool>& ends) {
  while (!ends) {
    pollfd entry{fd.get(), POLLIN, 0};
    if (::poll(&entry, 1, 50) > 0) return true;
  }
  return false;
}

bool send_all(const Fd& to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::uint64_t body_bytes(std::string head) {
  for (char& c : head) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t at = head.find("\r\ncontent-length:");
  return at == std::string::npos ? 0 : std::strtoull(head.c_str() + at + 17, nullptr, 10);
}

// The answer to HEAD has no body.
std::string refusal(const char* status, const char* code, bool is_head) {
  const std::string body = std::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Error><Code>{}</Code><Message>not today</Message></Error>", code);
  return std::format("HTTP/1.1 {}\r\nContent-Type: application/xml\r\nContent-Length: {}\r\n\r\n{}", status,
                     body.size(), is_head ? "" : body);
}

// A head, and what of the body came with it. False: the connection has ended.
bool read_head(const Fd& from, const std::atomic<bool>& ends, std::string& head, std::string& rest) {
  std::string text = std::move(rest);
  rest.clear();
  std::vector<char> buffer(16 << 10);
  for (;;) {
    if (const std::size_t end = text.find("\r\n\r\n"); end != std::string::npos) {
      head = text.substr(0, end + 4);
      rest = text.substr(end + 4);
      return true;
    }
    if (!readable(from, ends)) return false;
    const ssize_t n = ::recv(from.get(), buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

bool BucketServer::can_run() { return ::access(server_program().c_str(), X_OK) == 0 && ::access(kClient, X_OK) == 0; }

BucketServer::BucketServer() {
  char name[] = "/tmp/bsp-bucket-XXXXXX";
  directory_ = ::mkdtemp(name);
  fs::create_directories(directory_ / "data" / "sets");
  fs::create_directories(directory_ / "keys");
  fs::create_directories(directory_ / "meta");
  std::ofstream(directory_ / "keys" / "AWS_ACCESS_KEY_ID") << kAccessKey << "\n";  // as people make Secrets
  std::ofstream(directory_ / "keys" / "AWS_SECRET_ACCESS_KEY") << kSecretKey;
  port_ = static_cast<std::uint16_t>(controller::free_port());
  const std::vector<std::string> words = {
      server_program(),    "--port",           std::format("127.0.0.1:{}", port_), "--quiet", "posix", "--sidecar",
      directory_ / "meta", directory_ / "data"};
  std::vector<char*> raw;
  for (const std::string& word : words) raw.push_back(const_cast<char*>(word.c_str()));
  raw.push_back(nullptr);
  ::setenv("ROOT_ACCESS_KEY", kAccessKey, 1);
  ::setenv("ROOT_SECRET_KEY", kSecretKey, 1);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, (directory_ / "log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (::posix_spawn(&pid_, raw[0], &actions, nullptr, raw.data(), environ) != 0) pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  const bool up = pid_ > 0 && listens(port_, pid_);
  std::stringstream log;
  log << std::ifstream(directory_ / "log").rdbuf();
  EXPECT_TRUE(up) << log.str();
}

void BucketServer::stop() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

BucketServer::~BucketServer() {
  stop();
  fs::remove_all(directory_);
}

Location BucketServer::location(std::uint16_t port, const std::string& prefix) const {
  return {.place = "s3://sets" + (prefix.empty() ? "" : "/" + prefix),
          .endpoint = std::format("http://127.0.0.1:{}", port == 0 ? port_ : port),
          .region = "us-east-1",
          .credentials = directory_ / "keys",
          .client = kClient};
}

FaultyProxy::FaultyProxy(std::uint16_t to) : listener_(listening(port_)) {
  thread_ = std::thread([this, to] {
    std::vector<std::thread> connections;
    while (readable(listener_, state_->ends)) {
      Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client) continue;
      connections.emplace_back(
          [state = state_, client = std::move(client), to]() mutable { serve(state, std::move(client), to); });
    }
    for (std::thread& connection : connections) connection.join();
  });
}

FaultyProxy::~FaultyProxy() {
  state_->ends = true;
  thread_.join();
}

void FaultyProxy::serve(const std::shared_ptr<State>& state, Fd client, std::uint16_t to) {
  const Fd server = connected(to);
  if (!server) return;
  std::string head, rest, answer, more;
  std::vector<char> buffer(4 << 10);
  while (read_head(client, state->ends, head, rest)) {
    ++state->requests;
    const Fault fault = state->passed > 0 && state->passed-- > 0 ? Fault::kNone : state->fault.load();
    const std::uint64_t asked = body_bytes(head);
    if (fault == Fault::kHangs) {
      while (readable(client, state->ends))
        if (::recv(client.get(), buffer.data(), buffer.size(), 0) <= 0) return;
      return;
    }
    const bool is_head = head.starts_with("HEAD ");
    const std::string refused = fault == Fault::kAnswers503   ? refusal("503 Service Unavailable", "SlowDown", is_head)
                                : fault == Fault::kAnswers403 ? refusal("403 Forbidden", "AccessDenied", is_head)
                                : fault == Fault::kAnswers507
                                    ? refusal("507 Insufficient Storage", "InsufficientStorage", is_head)
                                    : "";
    if (!refused.empty()) {
      // All of the request is read, or the client might see a reset instead of the answer.
      for (std::uint64_t left = asked - std::min<std::uint64_t>(rest.size(), asked); left > 0;) {
        if (!readable(client, state->ends)) return;
        const ssize_t n = ::recv(client.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), left), 0);
        if (n <= 0) return;
        left -= static_cast<std::uint64_t>(n);
      }
      rest.clear();
      if (!send_all(client, refused)) return;
      continue;
    }
    const auto pass = [&](const Fd& from, const Fd& into, std::string first, std::uint64_t bytes, bool damages) {
      std::uint64_t left = bytes, done = 0;
      while (left > 0) {
        if (first.empty()) {
          if (!readable(from, state->ends)) return false;
          const ssize_t n = ::recv(from.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), left), 0);
          if (n <= 0) return false;
          first.assign(buffer.data(), static_cast<std::size_t>(n));
        }
        const std::uint64_t middle = bytes / 2;
        if (damages && fault == Fault::kCutsBodies && done + first.size() > middle) {
          send_all(into, std::string_view(first).substr(0, middle - done));
          return false;
        }
        if (damages && fault == Fault::kFlipsBodies && done <= middle && done + first.size() > middle)
          first[static_cast<std::size_t>(middle - done)] ^= 1;
        if (!send_all(into, first)) return false;
        if (fault == Fault::kSlow) std::this_thread::sleep_for(10ms);
        done += first.size();
        left -= first.size();
        first.clear();
      }
      return true;
    };
    std::string body = rest.substr(0, std::min<std::uint64_t>(rest.size(), asked));
    rest.erase(0, body.size());
    if (!send_all(server, head) || !pass(client, server, std::move(body), asked, false)) return;
    more.clear();
    do {
      if (!read_head(server, state->ends, answer, more) || !send_all(client, answer)) return;
    } while (answer.starts_with("HTTP/1.1 100"));
    const std::uint64_t bytes = is_head ? 0 : body_bytes(answer);
    // Large bodies are images; listings stay whole.
    if (!pass(server, client, std::move(more), bytes, bytes > 100'000)) return;
  }
}

}  // namespace bsp::storage
