// The history of a volume, chunk by chunk: crash images, and the volume at the end of a run, are checked against it.
//
// A chunk is a register of several words, of which each operation reads or writes some. The method is that of
// history_model.hpp: while operations overlap, every possible course is kept, an answer rules out the courses that do
// not give it, and a crash may leave each state that a course has reached, or reaches by letting more of the operations
// under way take effect. So acknowledged writes are there, writes under way are there wholly or not at all, and an
// answer that a reader saw stays true; unless reads outrun writes (volume_shape::reads_outrun). Its crash states are
// then judged by a history without reads, and reads by the whole one.
#pragma once

#include "checker/verify/volume.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

struct volume_step {
  enum class action : std::uint8_t { write, read, discard };
  action what = action::read;
  std::vector<block_range> ranges{};  // several: a group, in one chunk
  std::uint32_t number = 0;           // number of a write

  [[nodiscard]] std::uint32_t blocks() const noexcept {
    std::uint32_t all = 0;
    for (const block_range& r : ranges) all += r.count;
    return all;
  }
};

[[nodiscard]] std::string to_string(const volume_step& s);

// Thread safety: none.
class volume_model {
 public:
  static constexpr std::size_t most_chunk_blocks = 16;

  // All zeros. Throws pmlab::error for an impossible shape.
  explicit volume_model(const volume_shape& shape);

  // The content before anything else happens: the number of each block's write.
  void there_before(std::span<const std::uint32_t> numbers);

  void called(unsigned thread, const volume_step& s);
  // "" or why the answer is wrong. `got`: the numbers that a read returned. `full`: a write found no room.
  std::string returned(unsigned thread, const volume_step& s, std::span<const std::uint32_t> got, bool full = false);

  // "" or why a crash now must not leave these numbers of all blocks; or the end of the run, when nothing is under way.
  std::string judge(std::span<const std::uint32_t> numbers);

  [[nodiscard]] std::uint64_t version() const noexcept { return clock_; }
  [[nodiscard]] std::string under_way() const;

 private:
  using content = std::array<std::uint32_t, most_chunk_blocks>;

  // The part of an operation in one chunk.
  struct part {
    unsigned thread;
    volume_step::action what;
    std::uint32_t blocks;  // a bit for each
    std::uint32_t number;
    friend bool operator==(const part&, const part&) = default;
  };
  struct effect {
    bool done = false;
    content seen{};  // by a read
    friend auto operator<=>(const effect&, const effect&) = default;
  };
  struct course {
    content now{};
    std::vector<effect> effects;  // as under_way
    friend auto operator<=>(const course&, const course&) = default;
  };
  struct chunk {
    std::vector<course> courses{course{}};
    std::vector<part> under_way;
    std::vector<content> reachable;  // where a crash now may find it; empty: not known yet
  };
  struct placed_part {
    std::size_t chunk;
    part what;
  };

  [[nodiscard]] std::vector<placed_part> parts_of(unsigned thread, const volume_step& s) const;
  static void let_happen(chunk& c);
  // "" or why no course explains it.
  std::string end(std::size_t number, const part& p, const content& got, std::optional<bool> done);
  [[nodiscard]] std::string in_words(const content& c) const;
  [[nodiscard]] std::string story(std::size_t number) const;

  volume_shape shape_;
  std::vector<chunk> chunks_;
  std::uint64_t clock_ = 0;
  std::vector<std::string> running_;             // by thread
  std::unique_ptr<volume_model> without_reads_;  // null: what a reader saw stays true
};

}  // namespace pmlab::verify
