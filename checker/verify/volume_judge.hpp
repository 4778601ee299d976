// Opens the images of a volume, and judges them.
#pragma once

#include "checker/verify/image_judge.hpp"
#include "checker/verify/volume_model.hpp"
#include <pmlab/blocks/buffer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::verify {

class volume_judge final : public image_judge {
 public:
  explicit volume_judge(const volume_kind& kind);

  // The history of the run that begins.
  void begin(volume_model* history) noexcept { history_ = history; }
  // The numbers of all blocks of the volume. Sets `wrong` if a block holds no write's content.
  [[nodiscard]] std::vector<std::uint32_t> numbers_in(volume_target& volume, std::string& wrong, bool together = true);
  // The numbers of the volume that is opened on the image.
  [[nodiscard]] std::vector<std::uint32_t> contents_of(crash_image& image);

  // Fills the volume, half of it again (nearly_full.hpp), and compares. `watched`: on the machine. "" or the violation.
  [[nodiscard]] std::string fill_again(volume_target& volume, bool watched);

  [[nodiscard]] bool opens_images() const override { return true; }
  std::string judge(crash_image& image, const crash_options& options, splitmix64& random) override;
  std::string judge_here(const crash_options& options, splitmix64& random) override;
  std::string judge_on_machine(const crash_options& options, splitmix64& random) override;
  void recover_on_machine(const std::function<void()>& opened) override;
  [[nodiscard]] std::uint64_t history_version() const override { return history_->version(); }
  [[nodiscard]] std::string under_way() const override { return history_->under_way(); }

 private:
  // `medium`: the medium of its blocks; null: unknown.
  std::string judge(const std::function<std::unique_ptr<volume_target>()>& open, const image_medium* medium,
                    const crash_options& options, splitmix64& random);
  std::string work_on(volume_target& volume, std::size_t operations, splitmix64& random);
  std::string write_some(volume_target& volume, std::uint64_t first, std::uint32_t count);
  std::string compare(volume_target& volume);

  const volume_kind& kind_;
  bool counts_steps_ = false;
  volume_model* history_ = nullptr;
  blocks::buffer buffer_;
  std::vector<std::uint32_t> numbers_;
  std::uint32_t unique_ = 0;
};

}  // namespace pmlab::verify
