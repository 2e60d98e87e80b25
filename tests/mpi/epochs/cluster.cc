#include "tests/mpi/epochs/cluster.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "crds/names.h"

namespace bsp::test {

using namespace std::chrono_literals;

namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Process::Process(std::vector<std::string> command, std::vector<std::string> environment, std::string log, uid_t uid) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  out_ = Fd(ends[0]);
  Fd writing(ends[1]);
  for (char** item = environ; *item; ++item) environment.emplace_back(*item);
  auto arguments = pointers(command);
  auto variables = pointers(environment);
  Fd log_file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(writing.get(), STDOUT_FILENO);
    ::dup2(log_file.get(), STDERR_FILENO);
    if (uid != 0 && (::setgid(uid) != 0 || ::setuid(uid) != 0)) ::_exit(126);
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), out_(std::move(other.out_)), buffer_(std::move(other.buffer_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(out_, other.out_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) {
  if (pid_ > 0) ::kill(pid_, number);
}

std::string Process::read_line(std::chrono::milliseconds limit) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    if (auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd entry{.fd = out_.get(), .events = POLLIN, .revents = 0};
    if (left <= 0ms || ::poll(&entry, 1, static_cast<int>(left.count())) <= 0) return "";
    char piece[4096];
    ssize_t n = ::read(out_.get(), piece, sizeof piece);
    if (n <= 0) return "";
    buffer_.append(piece, static_cast<std::size_t>(n));
  }
}

int Process::wait(std::chrono::milliseconds limit) {
  auto deadline = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) return -1;
    ::poll(nullptr, 0, 2);
  }
  pid_ = -1;
  return status;
}

int Process::open_descriptors() const {
  int n = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd"))
    ++n;
  return n;
}

long Process::resident_kib() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  return -1;
}

Cluster::Cluster(std::uint32_t ranks, std::uint32_t seats)
    : sidecars((ranks + seats - 1) / seats),
      seats_(sidecars.size()),
      first_pods_(pods()),
      links_(ranks),
      pod_links_(sidecars.size()) {
  for (std::uint32_t r = 0; r < ranks; ++r) {
    places_.push_back({.pod = r / seats, .seat = r % seats});
    seats_[r / seats].push_back(r);
  }
  planned_ = places_;
  static unsigned clusters = 0;
  number_ = clusters++ % 12;
  char name[] = "/tmp/bsp-epochs-XXXXXX";
  directory_ = ::mkdtemp(name);
  ::chmod(directory_.c_str(), 0755);
  Time now = SystemClock{}.now();
  ca_ = net::create_ca("test-job", now - 1h, now + 24h).value();
  for (std::uint32_t r = 0; r < ranks; ++r) std::filesystem::create_directory_symlink(run_dir(r), home(r));
}

Cluster::~Cluster() {
  sidecars.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

std::vector<std::uint32_t> Cluster::ranks_of(std::uint32_t pod) const {
  std::vector<std::uint32_t> here;
  for (std::uint32_t r = 0; r < ranks(); ++r)
    if (places_[r].pod == pod) here.push_back(r);
  return here;
}

std::uint32_t Cluster::add_pod(std::vector<std::uint32_t> seats) {
  seats_.push_back(std::move(seats));
  sidecars.emplace_back();
  pod_links_.emplace_back();
  return pods() - 1;
}

void Cluster::plan_move(std::uint32_t rank, std::uint32_t pod) {
  const auto seat = std::ranges::find(seats_.at(pod), rank) - seats_[pod].begin();
  planned_[rank] = {.pod = pod, .seat = static_cast<std::uint32_t>(seat)};
}

std::vector<std::uint32_t> Cluster::arrive() {
  std::vector<std::uint32_t> moved;
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    if (places_[r] == planned_[r]) continue;
    places_[r] = planned_[r];
    connect(links_[r], places_[r].pod);
    std::filesystem::remove(home(r));
    std::filesystem::create_directory_symlink(run_dir(r), home(r));
    moved.push_back(r);
  }
  return moved;
}

std::string Cluster::directory_of(std::uint32_t pod) const { return std::format("{}/pod{}", directory_, pod); }
std::string Cluster::identity_of(std::uint32_t pod) const {
  return std::format("job-r{}-g{}", seats_[pod].front(), pod < first_pods_ ? 1 : pod + 1);
}
std::string Cluster::address_of(std::uint32_t pod) const {
  // Loopback addresses unique to this process and cluster, so that test programs can run in parallel.
  unsigned own = static_cast<unsigned>(::getpid());
  return std::format("127.{}.{}.{}:7600", 1 + own / 250 % 250, own % 250, 20 * number_ + pod + 1);
}
std::string Cluster::run_dir(std::uint32_t rank) const {
  const auto [pod, seat] = places_[rank];
  return seats_[pod].size() == 1 ? directory_of(pod) : std::format("{}/seat-{}", directory_of(pod), seat);
}
std::string Cluster::pod(std::uint32_t rank) const { return identity_of(pod_of(rank)); }
std::string Cluster::address(std::uint32_t rank) const { return address_of(pod_of(rank)); }
std::string Cluster::log(std::uint32_t rank) const { return log_of(pod_of(rank)); }
std::string Cluster::log_of(std::uint32_t pod) const {
  std::ifstream file(directory_of(pod) + ".log");
  return {std::istreambuf_iterator<char>(file), {}};
}

net::TlsContext Cluster::identity(const std::string& name) const {
  Time now = SystemClock{}.now();
  auto pair =
      net::issue_certificate(
          ca_, {.identity = name, .dns_names = {}, .addresses = {}, .not_before = now - 1h, .not_after = now + 1h})
          .value();
  return net::TlsContext::create({ca_.certificate, pair.certificate, pair.key}).value();
}

void Cluster::start_sidecar(std::uint32_t pod, std::vector<std::string> environment) {
  std::string tls = directory_of(pod) + ".tls";
  if (::mkdir(tls.c_str(), 0755) == 0) {
    Time now = SystemClock{}.now();
    auto pair = net::issue_certificate(ca_, {.identity = identity_of(pod),
                                             .dns_names = {},
                                             .addresses = {},
                                             .not_before = now - 1h,
                                             .not_after = now + 1h})
                    .value();
    std::ofstream(tls + "/ca.pem") << ca_.certificate;
    std::ofstream(tls + "/cert.pem") << pair.certificate;
    std::ofstream(tls + "/key.pem") << pair.key;
  }
  auto set = [&](std::string_view name, const std::string& value) {
    environment.push_back(std::format("{}={}", name, value));
  };
  std::string here;
  for (const std::uint32_t rank : seats_[pod]) here += std::format("{}{}", here.empty() ? "" : ",", rank);
  set(names::kEnvRank, here);
  set(names::kEnvRanks, std::to_string(ranks()));
  set(names::kEnvPod, identity_of(pod));
  set(names::kEnvListen, address_of(pod));
  set(names::kEnvTlsDir, tls);
  set(names::kEnvRunDir, directory_of(pod));
  if (without_init) set(names::kEnvWithoutInit, "1");
  sidecars[pod] = Process({BSP_BINARY_DIR "/bin/bsp-sidecar"}, environment, directory_of(pod) + ".log");
  connect(pod_links_[pod], pod);
  for (const std::uint32_t rank : ranks_of(pod)) connect(links_[rank], pod);
}

void Cluster::connect(std::unique_ptr<net::Link>& link, std::uint32_t pod) {
  link = std::make_unique<net::Link>(identity(std::string(names::kOperatorIdentity)),
                                     net::Peer{address_of(pod), identity_of(pod)});
  auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!link->connect(1s)) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("the sidecar does not answer:\n" + log_of(pod));
    ::poll(nullptr, 0, 5);
  }
}

Result<net::Answer> Cluster::try_call(std::uint32_t rank, const char* verb, nlohmann::json fields) {
  if (const std::uint32_t seat = places_[rank].seat; seat != 0) fields[wire::kSeat] = seat;
  return links_[rank]->call(verb, std::move(fields), 60s);
}

net::Answer Cluster::call(std::uint32_t rank, const char* verb, nlohmann::json fields) {
  auto answer = try_call(rank, verb, std::move(fields));
  if (!answer) throw std::runtime_error(answer.error().message + "\n" + log(rank));
  return std::move(*answer);
}

wire::EpochPlan Cluster::plan(std::uint64_t epoch) const {
  // MPI's files in /dev/shm are named by it, and all tests share that directory.
  const std::string job = std::format("uid-{}-{}", ::getpid(), number_);
  wire::EpochPlan plan{
      .epoch = epoch, .pmix_namespace = std::format("{}-e{}", job, epoch), .sets = {"one"}, .members = {}};
  for (std::uint32_t r = 0; r < ranks(); ++r) {
    const auto [pod, seat] = planned_[r];
    plan.members.push_back(
        {.rank = r, .pod = identity_of(pod), .pod_uid = "u", .address = address_of(pod), .set = 0, .seat = seat});
  }
  return plan;
}

void Cluster::prepare(std::uint64_t epoch) {
  for (std::uint32_t pod = 0; pod < pods(); ++pod)
    if (auto answer = pod_links_[pod]->call(wire::kPrepareEpoch, plan(epoch), 60s); !answer)
      throw std::runtime_error(answer.error().message + "\n" + log_of(pod));
}

void Cluster::open(std::uint64_t epoch) {
  for (std::uint32_t r = 0; r < ranks(); ++r) call(r, wire::kOpenEpoch, {{"epoch", epoch}});
}

}  // namespace bsp::test
