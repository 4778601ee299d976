// Opens the images of a store whose crashes may take the newest changes, and judges them.
#pragma once

#include "checker/verify/image_judge.hpp"
#include "checker/verify/prefix_model.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace pmlab::verify {

// What a store contains, and the sequence of its newest change.
struct prefix_content {
  prefix_state state{};  // empty: nothing is known
  std::uint64_t sequence = 0;
};

class prefix_judge final : public image_judge {
 public:
  explicit prefix_judge(const prefix_kind& kind) : kind_(kind) {}

  // The history of the run that begins.
  void begin(prefix_model* history) noexcept { history_ = history; }
  // The content of the store that is opened on the image.
  [[nodiscard]] prefix_content contents_of(crash_image& image) const;

  // Fills the store, half of it again (nearly_full.hpp), and compares. `watched`: on the machine. "" or the violation.
  [[nodiscard]] std::string fill_again(prefix_target& store, bool watched);

  [[nodiscard]] bool opens_images() const override { return true; }
  std::string judge(crash_image& image, const crash_options& options, splitmix64& random) override;
  std::string judge_here(const crash_options& /*options*/, splitmix64& /*random*/) override { return {}; }
  std::string judge_on_machine(const crash_options& options, splitmix64& random) override;
  void recover_on_machine(const std::function<void()>& opened) override;
  [[nodiscard]] std::uint64_t history_version() const override { return history_->version(); }
  [[nodiscard]] std::string under_way() const override { return history_->under_way(); }

 private:
  std::string judge(const std::function<std::unique_ptr<prefix_target>()>& open, const crash_options& options,
                    splitmix64& random);
  std::string work_on(prefix_target& store, std::size_t operations, splitmix64& random);
  std::string compare(prefix_target& store) const;

  const prefix_kind& kind_;
  bool counts_steps_ = false;
  prefix_model* history_ = nullptr;
  prefix_state now_;
};

}  // namespace pmlab::verify
