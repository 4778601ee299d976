// The benchmark of stores finds wrong answers: subjects that lie, each in one way, and the ledger that judges them.
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/stores/contestant.hpp"
#include "bench/stores/engine.hpp"
#include "bench/stores/peers/page_stores.hpp"
#include "bench/stores/raw_subject.hpp"
#include "bench/stores/subjects.hpp"
#include "support/temporary_folder.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::store_bench {
namespace {

constexpr std::uint64_t block = 4096;
constexpr std::uint64_t volume = 1 << 20;
constexpr std::uint64_t device = 64 << 20;

enum class lie : std::uint8_t { none, old_version, zeros, torn_write, torn_block, other_block, lost_write, junk };

// An honest volume in memory, whose every fiftieth read or write is a lie.
class lying final : public volume_subject {
 public:
  explicit lying(lie how) : how_(how), now_(volume), before_(volume) {}

  [[nodiscard]] std::uint64_t bytes() const override { return volume; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return block; }
  [[nodiscard]] volume_promises promises() const override { return {std::uint64_t{1} << 20, true}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned /*depth*/, unsigned /*thread*/) override {
    return std::make_unique<queue>(*this);
  }

 private:
  class queue final : public volume_queue {
   public:
    explicit queue(lying& of) : of_(of) {}
    void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
      of_.write(offset, data);
      done_.push_back({tag, {}});
    }
    void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
      of_.read(offset, data);
      done_.push_back({tag, {}});
    }
    void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
      std::memset(of_.now_.data() + offset, 0, length);
      done_.push_back({tag, {}});
    }
    [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t /*at_least*/) override {
      const std::size_t count = std::min(answers.size(), done_.size());
      std::copy_n(done_.begin(), count, answers.begin());
      done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
      return count;
    }

   private:
    lying& of_;
    std::vector<answer> done_;
  };

  [[nodiscard]] bool lies() { return ++calls_ % 50 == 0; }

  void write(std::uint64_t offset, std::span<const std::byte> data) {
    const bool now = lies();
    if (how_ == lie::lost_write && now) return;
    std::memcpy(before_.data() + offset, now_.data() + offset, data.size());
    // The second half of a write of several blocks.
    const std::size_t written = how_ == lie::torn_write && now && data.size() > block ? data.size() / 2 : data.size();
    std::memcpy(now_.data() + offset, data.data(), written);
  }
  void read(std::uint64_t offset, std::span<std::byte> data) {
    std::memcpy(data.data(), now_.data() + offset, data.size());
    if (!lies()) return;
    switch (how_) {
      case lie::old_version: std::memcpy(data.data(), before_.data() + offset, data.size()); break;
      case lie::zeros: std::memset(data.data(), 0, block); break;
      case lie::torn_block: std::memcpy(data.data() + 512, before_.data() + offset + 512, 512); break;
      case lie::other_block:
        std::memcpy(data.data(), now_.data() + (offset + data.size()) % volume, std::min<std::size_t>(block, volume));
        break;
      case lie::junk: std::memset(data.data() + 1024, 0x5a, 512); break;
      case lie::none:
      case lie::torn_write:
      case lie::lost_write: break;
    }
  }

  lie how_;
  std::uint64_t calls_ = 0;
  blocks::buffer now_;
  blocks::buffer before_;
};

run_report run(const std::function<std::unique_ptr<volume_subject>(blocks::any_device&)>& make, run_options options) {
  std::vector<contestant> stores;
  stores.emplace_back(
      store_labels{.store = "subject"}, [] { return open_store_device({}, {.bytes = device}); }, make, 7);
  const real_run_clock clock;
  bench::progress shown(bench::progress::style::quiet);
  return run_cases(options, stores, clock, shown);
}

run_options options_for(const std::string& phases, std::uint64_t size, unsigned threads = 1) {
  run_options o;
  o.cases = cases_of(parse_phases(phases), {order::random}, {size}, {8});
  o.operations = 2000;
  o.threads = threads;
  return o;
}

run_report run_lying(lie how, std::uint64_t size) {
  return run([how](blocks::any_device& /*device*/) { return std::make_unique<lying>(how); },
             options_for("fill,overwrite,read,mix:50", size));
}

TEST(BenchAnswers, AnHonestSubjectHasNoWrongAnswer) {
  for (const std::uint64_t size : {block, 4 * block}) {
    const run_report r = run_lying(lie::none, size);
    EXPECT_EQ(r.wrong_answers(), 0U) << (r.first_wrong.empty() ? "" : r.first_wrong.front());
    EXPECT_FALSE(r.failure);
    ASSERT_EQ(r.at_end.size(), 1U);
    EXPECT_GT(r.at_end.front().verified, 0U);
  }
}

TEST(BenchAnswers, EachLieIsFound) {
  const std::map<lie, std::string> words = {{lie::old_version, "was acknowledged before the read"},
                                            {lie::zeros, "zeros in place of version"},
                                            {lie::torn_write, "torn write"},
                                            {lie::torn_block, "version"},
                                            {lie::other_block, "has the data of block"},
                                            {lie::lost_write, "was acknowledged before the read"},
                                            {lie::junk, "has the data of another store"}};
  for (const auto& [how, expected] : words) {
    const run_report r = run_lying(how, 4 * block);
    EXPECT_GT(r.wrong_answers(), 0U) << "lie " << static_cast<int>(how);
    ASSERT_FALSE(r.first_wrong.empty()) << "lie " << static_cast<int>(how);
    // A write of which a part is missing is too old as well as torn.
    if (how != lie::torn_write) {
      EXPECT_NE(r.first_wrong.front().find(expected), std::string::npos) << r.first_wrong.front();
    }
  }
}

// The ledger by itself: the read begins before a write of two blocks, and sees half of it.
TEST(BenchAnswers, HalfOfAWriteThatIsUnderWayIsTornOnlyIfTheStorePromisesMore) {
  for (const std::uint64_t whole : {std::uint64_t{1} << 20, block}) {
    ledger l(16, block, 1, whole, true);
    blocks::buffer old(2 * block);
    blocks::buffer now(2 * block);
    const block_range both{4, 2};
    l.end(both, l.begin_write(both, old.bytes()));
    std::array<std::uint64_t, 2> least{};
    l.begin_read(both, least);
    const std::uint64_t version = l.begin_write(both, now.bytes());
    EXPECT_TRUE(l.is_busy(both));
    EXPECT_FALSE(l.check(both, old.bytes(), least));
    EXPECT_FALSE(l.check(both, now.bytes(), least));
    blocks::buffer half(2 * block);
    std::memcpy(half.data(), now.data(), block);
    std::memcpy(half.data() + block, old.data() + block, block);
    EXPECT_EQ(l.check(both, half.bytes(), least).has_value(), whole > block);
    l.end(both, version);
    // A read that begins now may not return the old version.
    l.begin_read(both, least);
    EXPECT_TRUE(l.check(both, old.bytes(), least));
    EXPECT_FALSE(l.check(both, now.bytes(), least));
    // A version that was never written.
    ledger other(16, block, 1, whole, true);
    blocks::buffer future(2 * block);
    for (int i = 0; i < 3; ++i) other.end(both, other.begin_write(both, future.bytes()));
    EXPECT_TRUE(l.check(both, future.bytes(), least));
  }
}

TEST(BenchAnswers, DiscardedBlocksAreZerosWhereThatIsPromised) {
  for (const bool zeros : {true, false}) {
    ledger l(4, block, 1, block, zeros);
    blocks::buffer data(block);
    const block_range one{2, 1};
    l.end(one, l.begin_write(one, data.bytes()));
    l.end(one, l.begin_discard(one));
    std::array<std::uint64_t, 1> least{};
    l.begin_read(one, least);
    EXPECT_TRUE(l.is_empty(2));
    EXPECT_EQ(l.check(one, data.bytes(), least).has_value(), zeros);
    const blocks::buffer nothing(block);
    EXPECT_FALSE(l.check(one, nothing.bytes(), least));
  }
}

// Reads and writes of two threads beside each other, small and large pages in turn: the peers' own protocols are right.
TEST(BenchAnswers, ThePeersAnswerRightly) {
  store_setup setup{.store = "raw"};
  setup.volume_bytes = 8 << 20;
  setup.threads = 2;
  for (const auto make : {make_raw, make_raw_dwb, make_raw_fpw}) {
    run_options o = options_for("fill,overwrite,mix:50,discard,mix:50", 4 * block, 2);
    for (const bench_case& c : cases_of(parse_phases("overwrite,mix-a"), {order::random}, {block}, {1, 32}))
      o.cases.push_back(c);
    o.cases.push_back(o.cases[2]);
    const run_report r = run([&](blocks::any_device& d) { return make(setup, d); }, o);
    EXPECT_EQ(r.wrong_answers(), 0U) << r.first_wrong.front();
    EXPECT_FALSE(r.failure) << *r.failure;
  }
}

// Bytes by protocol: what the peers are compared by. The drive here keeps 4 KiB whole.
TEST(BenchAnswers, BytesOfThePeers) {
  store_setup setup{.store = "raw"};
  setup.volume_bytes = 16 << 20;
  const auto amplification = [&](auto make, std::uint64_t size) {
    run_options o = options_for("overwrite", size);
    o.operations = 4096;
    const run_report r = run([&](blocks::any_device& d) { return make(setup, d); }, o);
    EXPECT_FALSE(r.failure);
    return r.results.empty() ? 0.0 : r.results.front().host_amplification().value_or(0);
  };
  EXPECT_DOUBLE_EQ(amplification(make_raw, 4 * block), 1.0);
  EXPECT_DOUBLE_EQ(amplification(make_raw_dwb, 4 * block), 2.0);
  EXPECT_DOUBLE_EQ(amplification(make_raw_dwb, block), 1.0);  // nothing to protect
  EXPECT_DOUBLE_EQ(amplification(make_raw_fpw, block), 1.0);
  // 8 pages and a block of addresses go to the log; most pages go to their places, once for two checkpoints' writes.
  const double log = amplification(make_raw_fpw, 4 * block);
  EXPECT_GT(log, 1.5);
  EXPECT_LT(log, 2.2);
}

TEST(BenchAnswers, ChunkStoreWithEachIndexAnswersRightly) {
  for (const std::string_view index : level1_indexes()) {
    store_setup setup{.store = "chunk_store"};
    setup.index = index;
    setup.ring = 3;
    setup.chunk_bytes = 256 << 10;
    setup.volume_bytes = 8 << 20;
    setup.threads = 2;
    const run_report r = run([&](blocks::any_device& d) { return make_subject(setup, d); },
                             options_for("fill,overwrite,mix:50,discard,open,mix-a", 4 * block, 2));
    EXPECT_EQ(r.wrong_answers(), 0U) << index << ": " << r.first_wrong.front();
    EXPECT_FALSE(r.failure) << index << ": " << *r.failure;
    ASSERT_EQ(r.results.size(), 6U);
    EXPECT_TRUE(r.results[4].opening.has_value());
    EXPECT_LE(r.results[4].opening->first_read_ns, r.results[4].opening->complete_ns);
  }
}

TEST(BenchAnswers, ChunkStoreOnEachMediumAnswersRightly) {
  const tests::temporary_folder folder;
  const std::string pool = "pmem:" + folder.file("pool");
  for (const std::string& medium : {std::string("dram"), std::string("counted:dram"), pool, "counted:" + pool})
    for (const std::string container : {"pmem", "kv"}) {
      store_setup setup{.store = "chunk_store", .container = container, .medium = bench::parse_medium(medium)};
      setup.medium_bytes = std::uint64_t{64} << 20;
      if (container == "kv") setup.merge = "copy";
      setup.volume_bytes = 8 << 20;
      setup.threads = 2;
      const run_report r = run([&](blocks::any_device& d) { return make_subject(setup, d); },
                               options_for("fill,overwrite,mix:50,discard,open", 4 * block, 2));
      EXPECT_FALSE(r.failure) << container << " on " << medium << ": " << *r.failure;
      EXPECT_EQ(r.wrong_answers(), 0U) << container << " on " << medium << ": " << r.first_wrong.front();
      ASSERT_EQ(r.results.size(), 5U);
      EXPECT_EQ(r.results[1].medium.has_value(), container == "pmem" && setup.medium.counted) << medium;
    }
}

// A device that is too small in the middle of a run: the run ends with its reason and keeps the results so far.
TEST(BenchAnswers, AnErrorEndsTheRunWithItsReason) {
  class failing final : public volume_subject {
   public:
    [[nodiscard]] std::uint64_t bytes() const override { return volume; }
    [[nodiscard]] std::uint32_t block_bytes() const override { return block; }
    [[nodiscard]] volume_promises promises() const override { return {}; }
    [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned /*depth*/, unsigned /*thread*/) override {
      class queue final : public volume_queue {
       public:
        void write(std::uint64_t /*o*/, std::span<const std::byte> /*d*/, std::uint64_t tag) override { add(tag); }
        void read(std::uint64_t /*o*/, std::span<std::byte> /*d*/, std::uint64_t tag) override { add(tag); }
        void discard(std::uint64_t /*o*/, std::uint64_t /*l*/, std::uint64_t tag) override { add(tag); }
        [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t /*at_least*/) override {
          if (done_.empty()) return 0;
          answers[0] = done_.back();
          done_.pop_back();
          return 1;
        }

       private:
        void add(std::uint64_t tag) { done_.push_back({tag, std::errc::no_space_on_device}); }
        std::vector<answer> done_;
      };
      return std::make_unique<queue>();
    }
  };
  const run_report r =
      run([](blocks::any_device& /*device*/) { return std::make_unique<failing>(); }, options_for("overwrite", block));
  ASSERT_TRUE(r.failure);
  EXPECT_NE(r.failure->find("--device-bytes"), std::string::npos) << *r.failure;
}

}  // namespace
}  // namespace pmlab::store_bench
