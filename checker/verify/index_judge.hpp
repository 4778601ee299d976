// Opens the images of an index, and judges them.
//
// An image is opened by an index that shares nothing with the running one, and must show: every acknowledged operation,
// those under way completely or not at all, no key twice, scans sorted and complete, a clean check(), no leaked block;
// and it must remain usable.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/history_model.hpp"
#include "checker/verify/image_judge.hpp"
#include "checker/verify/target.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::verify {

class index_judge final : public image_judge {
 public:
  explicit index_judge(const subject& kind) : kind_(kind) {}

  // The history of the run that begins.
  void begin(history_model* history) noexcept { history_ = history; }
  // The entries of the index that is opened on the image.
  [[nodiscard]] std::vector<indexes::entry> contents_of(crash_image& image);
  // The same in a crashed process.
  [[nodiscard]] std::vector<indexes::entry> contents_here();

  // Fills the store, half of it again (nearly_full.hpp), and compares. `watched`: on the machine. "" or the violation.
  [[nodiscard]] std::string fill_again(target& index, bool watched);

  [[nodiscard]] bool opens_images() const override { return kind_.open_recovered == nullptr; }
  std::string judge(crash_image& image, const crash_options& options, splitmix64& random) override;
  std::string judge_here(const crash_options& options, splitmix64& random) override;
  std::string judge_on_machine(const crash_options& options, splitmix64& random) override;
  // The same, completely, on the memory that the machine uses: every key is searched for, and `accepts` judges the
  // entries in place of the history ("" or the violation).
  using acceptance = std::function<std::string(std::span<const indexes::entry>)>;
  std::string judge_completely(const crash_options& options, splitmix64 random, const acceptance& accepts);
  // The history of the run that goes on.
  [[nodiscard]] const history_model& history() const noexcept { return *history_; }
  void keep_history() override { kept_history_ = *history_; }
  [[nodiscard]] const history_model& kept_history() const noexcept { return *kept_history_; }
  void open_and_close(crash_image& image) override { static_cast<void>(open(image)); }
  void recover_on_machine(const std::function<void()>& opened) override;
  [[nodiscard]] std::uint64_t history_version() const override { return history_->version(); }
  [[nodiscard]] std::string under_way() const override { return history_->under_way(); }

 private:
  // An operation begins. On the machine, each has as many steps as a round's.
  void begin_operation() const {
    if (counts_steps_) simulator::the_machine().allow(simulator::machine::patience);
  }
  [[nodiscard]] std::unique_ptr<target> open(crash_image& image) const;
  [[nodiscard]] std::unique_ptr<target> open_on_machine() const;
  // `medium`: the medium of its blocks; null: unknown.
  std::string judge(target& index, image_medium* medium);
  std::string work_on(target& index, image_medium* medium);
  [[nodiscard]] std::vector<std::size_t> unfinished_keys() const;
  std::string load_into(target& index);
  [[nodiscard]] std::string judge_work(target& index);
  static std::string judge_blocks(target& index, const image_medium* medium);
  std::string read_back(target& index);
  std::string search_for_all(target& index);
  [[nodiscard]] bool sampled() const;

  const subject& kind_;
  bool counts_steps_ = false;
  bool searches_all_ = false;
  const crash_options* options_ = nullptr;  // options of the image that is judged
  splitmix64* random_ = nullptr;
  history_model* history_ = nullptr;
  std::optional<history_model> kept_history_;
  std::vector<indexes::entry> entries_;
  std::vector<indexes::entry> again_;
  std::vector<std::pair<std::uint64_t, key_state>> model_;
  std::vector<std::uint64_t> worked_keys_;
  std::vector<std::uint64_t> searched_;
  std::vector<std::optional<std::uint64_t>> found_;
};

}  // namespace pmlab::verify
