// Images in a bucket of any server that speaks S3: AWS, MinIO, Ceph, Garage, versitygw and others.
//
//   <prefix>/<job uid>/set-<set>/rank-<rank>
//
// rclone does the talking (README.md says why): parts, checksums, retries and TLS are its business. It is a program that runs as
// long as one image is stored or read. It gets the credentials in its environment, from files that the kubelet keeps current, so
// they are in no command line, no log, and no memory of this process for longer than a start takes. What it says is passed on
// without them.
//
// An object appears when it is complete, or never. No request asks for more than to put, get, list and delete objects.
#pragma once

#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include "sidecar/storage/client.h"
#include "sidecar/storage/storage.h"

namespace bsp::storage {

inline constexpr std::string_view kBucketScheme = "s3://";
inline constexpr std::string_view kRemote = ":s3:";  // to rclone, whose variables say where
// rclone's exit code: there is no such bucket, for a prefix without objects is an empty directory.
inline constexpr int kNoDirectory = 3;

class Bucket final : public Storage {
 public:
  explicit Bucket(Location location);

  [[nodiscard]] Result<std::unique_ptr<NewImage>> create(const ImageName& name, std::uint64_t bytes,
                                                         GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<std::unique_ptr<StoredImage>> open(const ImageName& name,
                                                          GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<std::unique_ptr<StoredImage>> open_base(const ImageName& name,
                                                               GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<void> mark_whole(const ImageName& name, GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> remove_sets(const std::string& job_uid, std::uint64_t below,
                                                               const std::vector<std::uint64_t>& keep,
                                                               GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<void> mark_job(const std::string& job_uid, const std::string& owner,
                                      GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<std::vector<std::string>> remove_orphans(const std::string& job_uid, const Orphans& orphans,
                                                                GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<void> remove_job(const std::string& job_uid, GivenUp given_up = nullptr) const override;

  // A run of rclone, and what has to be kept out of its messages.
  struct Run;

 private:
  class Seat;
  class NewObject;
  class StoredObject;
  struct Answer {
    int status = 0;
    std::string out, said;
  };

  // So many clients run at once; each takes some 80 MiB.
  static constexpr int kAtOnce = 3;
  using Seats = std::counting_semaphore<kAtOnce>;

  [[nodiscard]] Result<std::unique_ptr<Run>> start(Seats& seats, std::vector<std::string> words, GivenUp given_up,
                                                   std::uint64_t part = 0) const;
  [[nodiscard]] Result<Answer> ask(std::vector<std::string> words, GivenUp given_up, Seats* seats = nullptr) const;
  [[nodiscard]] std::unexpected<Error> failed(const Answer& answer) const;
  [[nodiscard]] Result<void> put_mark(const std::string& path, GivenUp given_up) const;
  [[nodiscard]] Result<bool> exists(Seats& seats, const std::string& path, GivenUp given_up) const;
  [[nodiscard]] Result<std::unique_ptr<StoredImage>> open_by(Seats& seats, const ImageName& name,
                                                             GivenUp given_up) const;
  // As rclone's command line has them; kInvalid: the uid is no name.
  [[nodiscard]] Result<std::string> path_of(const std::string& job_uid) const;
  [[nodiscard]] Result<std::string> path_of(const ImageName& name) const;
  [[nodiscard]] std::string where() const;  // for messages
  [[nodiscard]] std::unexpected<Error> unusable(const Run& run, const Error& error) const;

  Location location_;
  std::string bucket_;  // with the prefix
  mutable Seats seats_{kAtOnce};
  // Who waits for one of these holds one of those, so the two can't be the same.
  mutable Seats seats_of_bases_{kAtOnce - 1};
};

// What a person can do about a failure of rclone, by its own words. `where`: "s3://sets at https://…".
Error explain_failure(const std::string& where, std::string_view said);

}  // namespace bsp::storage
