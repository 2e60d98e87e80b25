#include "sidecar/storage/bucket.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <format>

#include "base/core/fault.h"
#include "base/core/log.h"
#include "base/core/read_file.h"

namespace bsp::storage {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kLeastPart = 8 << 20;
constexpr std::uint64_t kMostParts = 9000;  // S3 takes 10,000
constexpr std::size_t kMostListed = 16 << 20;

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Its last message, without time and level: "ERROR : rank-0: Failed to copy: AccessDenied: Access Denied status code: 403".
std::string last_message(std::string_view said) {
  std::string text;
  for (const char c : said) text += c == '\n' || c == '\t' || c == '\r' ? ' ' : (c < ' ' || c > '~' ? '?' : c);
  while (text.ends_with(' ')) text.pop_back();
  std::size_t begin = 0;
  for (const std::string_view level : {"ERROR : ", "CRITICAL: "})
    if (const auto at = text.rfind(level); at != std::string::npos) begin = std::max(begin, at + level.size());
  // "Failed to rcat: "
  if (const auto at = text.rfind("Failed to "); at != std::string::npos)
    if (const auto end = text.find(": ", at); end != std::string::npos) begin = std::max(begin, end + 2);
  text.erase(0, begin);
  constexpr std::size_t kMost = 300;
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return text.empty() ? "rclone says nothing" : text;
}

void replace_all(std::string& text, const std::string& what) {
  for (std::size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos;)
    text.replace(at, what.size(), "***");
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.erase(0, 1);
  return text;
}

struct Cause {
  std::string_view sign, remedy;
  ErrorCode code;
};
// The first that fits.
constexpr std::array kCauses = {
    Cause{"InvalidAccessKeyId", "put a valid key into the Secret that credentialsSecret names", ErrorCode::kFailed},
    Cause{"SignatureDoesNotMatch",
          "put the key's secret into the Secret that credentialsSecret names, and check region", ErrorCode::kFailed},
    Cause{"ExpiredToken", "renew the keys in the Secret that credentialsSecret names", ErrorCode::kFailed},
    Cause{"AuthorizationHeaderMalformed", "set spec.checkpoint.storage.s3.region to the bucket's", ErrorCode::kFailed},
    Cause{"PermanentRedirect", "set spec.checkpoint.storage.s3.region and endpoint to the bucket's",
          ErrorCode::kFailed},
    Cause{"NoSuchBucket", "create the bucket, or correct spec.checkpoint.storage.s3.bucket", ErrorCode::kFailed},
    Cause{"InsufficientStorage", "enlarge it, or lower spec.checkpoint.keep", ErrorCode::kNoSpace},
    Cause{"StorageFull", "enlarge it, or lower spec.checkpoint.keep", ErrorCode::kNoSpace},
    Cause{"Quota", "enlarge it, or lower spec.checkpoint.keep", ErrorCode::kNoSpace},
    Cause{"no space left", "enlarge it, or lower spec.checkpoint.keep", ErrorCode::kNoSpace},
    Cause{"status code: 507", "enlarge it, or lower spec.checkpoint.keep", ErrorCode::kNoSpace},
    Cause{"AccessDenied", "allow the key to put, get, list and delete objects below the prefix", ErrorCode::kFailed},
    Cause{"Forbidden", "allow the key to put, get, list and delete objects below the prefix", ErrorCode::kFailed},
    Cause{"status code: 403", "allow the key to put, get, list and delete objects below the prefix",
          ErrorCode::kFailed},
    Cause{"x509", "name a Secret with the server's ca.crt in spec.checkpoint.storage.s3.caSecret", ErrorCode::kFailed},
    Cause{"server gave HTTP response to HTTPS client", "begin spec.checkpoint.storage.s3.endpoint with http://",
          ErrorCode::kFailed},
    Cause{"no such host", "correct spec.checkpoint.storage.s3.endpoint, which pods have to resolve",
          ErrorCode::kUnavailable},
    Cause{"connection refused", "start the server, or correct spec.checkpoint.storage.s3.endpoint",
          ErrorCode::kUnavailable},
    Cause{"SlowDown", "the server is overloaded: lengthen spec.checkpoint.interval", ErrorCode::kUnavailable},
    Cause{"status code: 50", "the server is out of order or overloaded: see its log", ErrorCode::kUnavailable},
};
constexpr std::string_view kUnreachable = "see whether pods reach the server, and whether it is in order";

}  // namespace

Error explain_failure(const std::string& where, std::string_view said) {
  const std::string message = last_message(said);
  const auto cause = std::ranges::find_if(kCauses, [&](const Cause& c) { return has(said, c.sign); });
  const bool known = cause != kCauses.end();
  return {known ? cause->code : ErrorCode::kUnavailable,
          std::format("the checkpoint storage {}: {}; {}", where, message, known ? cause->remedy : kUnreachable)};
}

// --- Runs of rclone ------------------------------------------------------------------------------------

class Bucket::Seat {
 public:
  static Result<Seat> wait_for(Seats& seats, GivenUp given_up) {
    while (!seats.try_acquire_for(100ms))
      if (given_up && *given_up) return fail(ErrorCode::kUnavailable, "it was given up");
    return Seat(&seats);
  }
  Seat(Seat&& other) noexcept : seats_(std::exchange(other.seats_, nullptr)) {}
  Seat& operator=(Seat&&) = delete;
  ~Seat() {
    if (seats_) seats_->release();
  }

 private:
  explicit Seat(Seats* seats) : seats_(seats) {}
  Seats* seats_;
};

struct Bucket::Run {
  Seat seat;
  Client client;
  std::vector<std::string> secrets;

  ~Run() {
    for (std::string& secret : secrets) OPENSSL_cleanse(secret.data(), secret.size());
  }
  [[nodiscard]] std::string said() const {
    std::string text = client.said();
    for (const std::string& secret : secrets) replace_all(text, secret);
    return text;
  }
};

Bucket::Bucket(Location location)
    : location_(std::move(location)), bucket_(location_.place.substr(kBucketScheme.size())) {
  while (bucket_.ends_with('/')) bucket_.pop_back();
}

Result<std::string> Bucket::path_of(const std::string& job_uid) const {
  if (!is_name(job_uid)) return fail(ErrorCode::kInvalid, "the job's uid is unusable as an object's name");
  return std::format("{}{}/{}", kRemote, bucket_, job_uid);
}
Result<std::string> Bucket::path_of(const ImageName& name) const {
  BSP_TRY(const std::string of_job, path_of(name.job_uid));
  return std::format("{}/{}/{}", of_job, set_name(name.set), file_name(name));
}

std::string Bucket::where() const { return std::format("{} at {}", location_.place, location_.endpoint); }

std::unexpected<Error> Bucket::unusable(const Run& run, const Error& error) const {
  const std::string said = run.said();
  if (said.empty() || error.code == ErrorCode::kUnavailable)
    return fail(error.code, std::format("the checkpoint storage {}: {}; {}", where(), error.message, kUnreachable));
  Error explained = explain_failure(where(), said);
  if (error.code == ErrorCode::kTimeout) explained.message = error.message + ": " + explained.message;
  return std::unexpected(std::move(explained));
}

Result<std::unique_ptr<Bucket::Run>> Bucket::start(Seats& seats, std::vector<std::string> words, GivenUp given_up,
                                                   std::uint64_t part) const {
  BSP_TRY(Seat seat, Seat::wait_for(seats, given_up));
  std::vector<std::string> secrets;
  // HOME: rclone looks for its own files there, and has none.
  std::vector<std::string> environment = {"HOME=/nonexistent",
                                          "GOMAXPROCS=2",
                                          "TZ=UTC",
                                          "GODEBUG=netdns=go",  // the C library's way needs files that its image lacks
                                          "RCLONE_S3_PROVIDER=Other",
                                          "RCLONE_S3_ENDPOINT=" + location_.endpoint,
                                          "RCLONE_S3_REGION=" + location_.region,
                                          "RCLONE_S3_FORCE_PATH_STYLE=true",
                                          "RCLONE_S3_NO_CHECK_BUCKET=true",
                                          "RCLONE_S3_UPLOAD_CONCURRENCY=2",
                                          std::format("RCLONE_S3_CHUNK_SIZE={}B", std::max(part, kLeastPart)),
                                          "RCLONE_BUFFER_SIZE=0",
                                          "RCLONE_CONTIMEOUT=10s",
                                          "RCLONE_TIMEOUT=30s",
                                          "RCLONE_LOW_LEVEL_RETRIES=5",
                                          "RCLONE_RETRIES=1"};
  if (!location_.ca.empty()) environment.push_back("RCLONE_CA_CERT=" + location_.ca);
  struct Credential {
    const char *file, *variable;
    bool required;
  };
  for (const Credential& c : {Credential{"AWS_ACCESS_KEY_ID", "RCLONE_S3_ACCESS_KEY_ID", true},
                              Credential{"AWS_SECRET_ACCESS_KEY", "RCLONE_S3_SECRET_ACCESS_KEY", true},
                              Credential{"AWS_SESSION_TOKEN", "RCLONE_S3_SESSION_TOKEN", false}}) {
    auto text = read_file(std::format("{}/{}", location_.credentials, c.file));
    if (!text && !c.required) continue;
    std::string value = text ? trimmed(std::move(*text)) : "";
    if (value.empty())
      return fail(
          ErrorCode::kFailed,
          std::format("the checkpoint storage {}: the Secret that credentialsSecret names has no {}", where(), c.file));
    environment.push_back(std::format("{}={}", c.variable, value));
    secrets.push_back(std::move(value));
  }
  words.insert(words.begin(), {location_.client, "--config="});
  auto client = Client::start(words, environment, {.patience = location_.patience, .given_up = given_up});
  for (std::string& variable : environment) OPENSSL_cleanse(variable.data(), variable.size());
  if (!client) return std::unexpected(client.error());
  return std::make_unique<Run>(std::move(seat), std::move(*client), std::move(secrets));
}

// A run whose whole output is wanted.
Result<Bucket::Answer> Bucket::ask(std::vector<std::string> words, GivenUp given_up, Seats* seats) const {
  BSP_TRY(const auto run, start(seats ? *seats : seats_, std::move(words), given_up));
  Answer answer;
  std::vector<std::byte> buffer(64 << 10);
  for (;;) {
    const auto n = run->client.read(buffer);
    if (!n) return unusable(*run, n.error());
    if (*n == 0) break;
    answer.out.append(reinterpret_cast<const char*>(buffer.data()), *n);
    if (answer.out.size() > kMostListed)
      return fail(ErrorCode::kFailed,
                  std::format("the checkpoint storage {}: its listing has no end", location_.place));
  }
  const auto status = run->client.finish();
  if (!status) return unusable(*run, status.error());
  answer.status = *status;
  answer.said = run->said();
  return answer;
}

std::unexpected<Error> Bucket::failed(const Answer& answer) const {
  return std::unexpected(
      explain_failure(where(), answer.status == kNoDirectory ? "NoSuchBucket: " + answer.said : answer.said));
}

Result<bool> Bucket::exists(Seats& seats, const std::string& path, GivenUp given_up) const {
  BSP_TRY(const Answer answer, ask({"lsjson", "--stat", "--no-modtime", "--no-mimetype", path}, given_up, &seats));
  if (answer.status == 0) return has(answer.out, "\"IsDir\":false") || has(answer.out, "\"IsDir\": false");
  return failed(answer);
}

// --- New images ----------------------------------------------------------------------------------------

class Bucket::NewObject final : public NewImage {
 public:
  NewObject(const Bucket& bucket, std::unique_ptr<Run> run) : bucket_(bucket), run_(std::move(run)) {}
  ~NewObject() override {
    // Its input must not end, or it would complete what it has.
    if (run_) run_->client.stop();
  }

  Result<void> write(std::span<const std::byte> bytes) override {
    fault_point("storage.write");
    if (auto written = run_->client.write(bytes); !written) return failed(written.error());
    return {};
  }

  Result<void> publish() override {
    fault_point("storage.written");
    const auto status = run_->client.finish();
    if (!status) return failed(status.error());
    if (*status != 0) return failed({ErrorCode::kFailed, std::format("rclone ended with status {}", *status)});
    run_.reset();
    return {};
  }

  [[nodiscard]] std::chrono::nanoseconds cpu_time() const override {
    return run_ ? run_->client.cpu_time() : std::chrono::nanoseconds{};
  }

 private:
  // Once it has ended it has said all.
  std::unexpected<Error> failed(const Error& error) {
    const std::unique_ptr<Run> run = std::move(run_);
    if (error.code != ErrorCode::kFailed || !run->client.await_end()) run->client.stop();
    return bucket_.unusable(*run, error);
  }

  const Bucket& bucket_;
  std::unique_ptr<Run> run_;
};

Result<std::unique_ptr<NewImage>> Bucket::create(const ImageName& name, std::uint64_t bytes, GivenUp given_up) const {
  BSP_TRY(const std::string path, path_of(name));
  BSP_TRY(const bool taken, exists(seats_, path, given_up));
  if (taken) return fail(ErrorCode::kConflict, file_name(name) + " is stored already");
  BSP_TRY(auto run, start(seats_, {"rcat", path}, given_up, bytes / kMostParts));
  return std::make_unique<NewObject>(*this, std::move(run));
}

// --- Stored images -------------------------------------------------------------------------------------

class Bucket::StoredObject final : public StoredImage {
 public:
  StoredObject(const Bucket& bucket, std::unique_ptr<Run> run) : bucket_(bucket), run_(std::move(run)) {}

  Result<std::size_t> read(std::span<std::byte> into) override {
    if (!run_) return 0;
    const auto n = run_->client.read(into);
    if (!n) return bucket_.unusable(*run_, n.error());
    if (*n > 0) return n;
    // Only its exit says whether that was all of the object.
    const auto status = run_->client.finish();
    if (!status) return bucket_.unusable(*run_, status.error());
    if (*status != 0)
      return bucket_.unusable(*run_, {ErrorCode::kFailed, std::format("rclone ended with status {}", *status)});
    run_.reset();
    return 0;
  }

 private:
  const Bucket& bucket_;
  std::unique_ptr<Run> run_;
};

Result<std::unique_ptr<StoredImage>> Bucket::open(const ImageName& name, GivenUp given_up) const {
  return open_by(seats_, name, given_up);
}

Result<std::unique_ptr<StoredImage>> Bucket::open_base(const ImageName& name, GivenUp given_up) const {
  return open_by(seats_of_bases_, name, given_up);
}

Result<std::unique_ptr<StoredImage>> Bucket::open_by(Seats& seats, const ImageName& name, GivenUp given_up) const {
  BSP_TRY(const std::string path, path_of(name));
  BSP_TRY(const bool there, exists(seats, path, given_up));
  if (!there) {
    // To rclone, an object that it may not look at isn't there. Only a listing tells the two apart.
    BSP_TRY(const Answer listed,
            ask({"lsf", "--files-only", "--include", "/" + file_name(name), path.substr(0, path.rfind('/'))}, given_up,
                &seats));
    if (listed.status != 0) return failed(listed);
    if (!listed.out.empty())
      return fail(
          ErrorCode::kUnavailable,
          std::format("the checkpoint storage {}: it lists {} and doesn't let it be read; allow the key to get objects "
                      "below the prefix",
                      where(), file_name(name)));
    return fail(ErrorCode::kNotFound,
                std::format("there is no {} at {}", path.substr(kRemote.size()), location_.endpoint));
  }
  BSP_TRY(auto run, start(seats, {"cat", path}, given_up));
  return std::make_unique<StoredObject>(*this, std::move(run));
}

Result<void> Bucket::mark_whole(const ImageName& name, GivenUp given_up) const {
  BSP_TRY(const std::string path, path_of(name));
  return put_mark(path.substr(0, path.rfind('/') + 1) + mark_name(name), given_up);
}

Result<void> Bucket::put_mark(const std::string& path, GivenUp given_up) const {
  BSP_TRY(auto run, start(seats_, {"rcat", path}, given_up));
  NewObject mark(*this, std::move(run));
  // Not every server takes an object of no bytes that comes as a stream.
  BSP_CHECK_OK(mark.write(std::as_bytes(std::span("\n", 1))));
  return mark.publish();
}

}  // namespace bsp::storage
