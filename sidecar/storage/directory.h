// Images in a directory: a mounted volume, or in local mode a directory of the host.
//
//   <root>/<job uid>/set-<set>/rank-<rank>      a whole image: it gets its name only once it is complete and synced
//   <root>/<job uid>/set-<set>/whole-<rank>     a mark (storage.h)
//   <root>/<job uid>/set-<set>/.rank-<rank>.*   one that is being written, or was when its writer died
//
// Names are opened without following links.
#pragma once

#include <string>

#include "sidecar/storage/storage.h"

namespace bsp::storage {

class Directory final : public Storage {
 public:
  explicit Directory(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] Result<std::unique_ptr<NewImage>> create(const ImageName& name, std::uint64_t bytes = 0,
                                                         GivenUp given_up = nullptr) const override;
  [[nodiscard]] Result<std::unique_ptr<StoredImage>> open(const ImageName& name,
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

 private:
  std::string root_;
};

}  // namespace bsp::storage
