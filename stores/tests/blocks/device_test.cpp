// Scenarios of every block device.
#include "stores/tests/blocks/devices.hpp"
#include "support/message_of.hpp"

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace pmlab::tests::device_test {
namespace {

using namespace blocks;

constexpr geometry small{.blocks = 64, .block_bytes = 4096, .atomic_bytes = 0, .volatile_cache = true};

template <class Made>
class Device : public ::testing::Test {
 protected:
  using device = typename Made::device;
  using queue = typename device::queue;

  Made made_;
  decltype(made_.make(small)) device_ = made_.make(small);
};
TYPED_TEST_SUITE(Device, all_devices);

void fill(buffer& b, std::uint64_t value) {
  for (std::size_t i = 0; i < b.size(); i += sizeof value) {
    std::memcpy(b.data() + i, &value, sizeof value);
    value += golden_ratio;
  }
}

[[nodiscard]] bool equal(const buffer& a, const buffer& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

// Reaps all that is in flight; returns the completions by tag.
template <class Queue>
std::map<std::uint64_t, std::errc> reap_all(Queue& q) {
  std::map<std::uint64_t, std::errc> all;
  std::array<completion, 3> some{};
  while (q.in_flight() > 0) {
    const std::size_t count = q.reap(some, 1);
    EXPECT_GT(count, 0U);
    for (const completion& c : std::span(some).first(count)) EXPECT_TRUE(all.emplace(c.tag, c.error).second);
  }
  return all;
}

TYPED_TEST(Device, has_the_geometry_it_was_given) {
  EXPECT_EQ(this->device_->shape().blocks, small.blocks);
  EXPECT_EQ(this->device_->shape().block_bytes, small.block_bytes);
  EXPECT_NE(this->device_->name(), "");
  EXPECT_EQ(this->device_->failure(), "");
}

TYPED_TEST(Device, returns_what_was_written_and_zeros_elsewhere) {
  synchronous drive(*this->device_);
  buffer written(2 * 4096);
  buffer read(4 * 4096);
  fill(written, 7);
  drive.write(5, written.bytes());
  drive.read(4, read.bytes());
  EXPECT_TRUE(std::ranges::all_of(read.bytes().first(4096), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_EQ(std::memcmp(read.data() + 4096, written.data(), written.size()), 0);
  EXPECT_TRUE(std::ranges::all_of(read.bytes().last(4096), [](std::byte b) { return b == std::byte{0}; }));
}

TYPED_TEST(Device, writes_durably_flushes_and_discards) {
  synchronous drive(*this->device_);
  buffer written(4096);
  buffer read(4096);
  fill(written, 9);
  drive.write_durable(63, written.bytes());
  drive.flush();
  drive.read(63, read.bytes());
  EXPECT_TRUE(equal(read, written));
  drive.discard(0, 62);
  drive.read(63, read.bytes());
  EXPECT_TRUE(equal(read, written));
}

TYPED_TEST(Device, returns_each_tag_once) {
  buffer data(4096 * 8);
  typename TestFixture::queue q(*this->device_, 8);
  std::vector<request> requests;
  for (std::uint64_t i = 0; i < 8; ++i)
    requests.push_back(
        {i % 2 == 0 ? operation::write : operation::read, stream::data, 1, i, data.data() + i * 4096, 1000 + i});
  EXPECT_EQ(q.submit(requests), 8U);
  EXPECT_EQ(q.in_flight(), 8U);
  const auto all = reap_all(q);
  EXPECT_EQ(all.size(), 8U);
  EXPECT_EQ(all.begin()->first, 1000U);
  EXPECT_EQ(all.rbegin()->first, 1007U);
  EXPECT_TRUE(std::ranges::all_of(all, [](const auto& c) { return c.second == std::errc{}; }));
}

TYPED_TEST(Device, takes_no_more_requests_than_its_depth) {
  // The buffer is declared first: it must outlive the queue, whose end waits for reads that are still in flight.
  buffer data(4096);
  typename TestFixture::queue q(*this->device_, 4);
  EXPECT_EQ(q.depth(), 4U);
  const std::vector<request> requests(6, {operation::read, stream::data, 1, 0, data.data(), 0});
  EXPECT_EQ(q.submit(requests), 4U);
  EXPECT_EQ(q.submit(requests), 0U);
  std::array<completion, 1> done{};
  EXPECT_EQ(q.reap(done, 1), 1U);
  EXPECT_EQ(q.submit(requests), 1U);
}

TYPED_TEST(Device, reaps_nothing_where_nothing_is_in_flight) {
  typename TestFixture::queue q(*this->device_, 4);
  std::array<completion, 2> done{};
  EXPECT_EQ(q.reap(done, 2), 0U);
}

TYPED_TEST(Device, waits_for_its_requests_when_it_ends) {
  buffer written(4096);
  buffer read(4096);
  fill(written, 11);
  {
    typename TestFixture::queue q(*this->device_, 4);
    const request r{operation::write, stream::data, 1, 3, written.data(), 0};
    EXPECT_EQ(q.submit({&r, 1}), 1U);
  }
  synchronous drive(*this->device_);
  drive.read(3, read.bytes());
  EXPECT_TRUE(equal(read, written));
}

TYPED_TEST(Device, refuses_misuse_and_takes_nothing_of_it) {
  buffer data(2 * 4096);
  fill(data, 3);
  typename TestFixture::queue q(*this->device_, 4);
  const request right{operation::write, stream::data, 1, 0, data.data(), 0};
  const auto message = [&](const request& wrong) {
    const std::array<request, 2> both{right, wrong};
    return message_of([&] { static_cast<void>(q.submit(both)); });
  };
  EXPECT_PRED2(says, message({operation::read, stream::data, 0, 0, data.data(), 0}), "no blocks");
  EXPECT_PRED2(says, message({operation::write, stream::data, 1, 0, nullptr, 0}), "blocks::buffer");
  EXPECT_PRED2(says, message({operation::write, stream::data, 1, 0, data.data() + 512, 0}), "blocks::buffer");
  EXPECT_EQ(q.in_flight(), 0U);
  synchronous drive(*this->device_);
  buffer read(4096);
  drive.read(0, read.bytes());
  EXPECT_TRUE(std::ranges::all_of(read.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_PRED2(says, message_of([&] { typename TestFixture::queue none(*this->device_, 0); }), "depth");
}

// Places come from records, which may be damaged: such a request ends as one that failed, and those beside it as ever.
TYPED_TEST(Device, a_request_beyond_the_end_is_one_that_fails) {
  buffer data(2 * 4096);
  buffer right(4096);
  fill(data, 4);
  fill(right, 5);
  buffer before(2 * 4096);
  fill(before, 4);
  typename TestFixture::queue q(*this->device_, 4);
  for (const operation what : {operation::read, operation::write, operation::write_durable, operation::discard})
    for (const std::uint64_t first :
         {std::uint64_t{63}, std::uint64_t{64}, ~std::uint64_t{0}, std::uint64_t{1} << 52}) {
      const std::array<request, 2> both{request{what, stream::data, 2, first, data.data(), 7},
                                        request{operation::write, stream::data, 1, 63, right.data(), 8}};
      ASSERT_EQ(q.submit(both), 2U);
      const std::map<std::uint64_t, std::errc> right_ends{{7, beyond_end}, {8, std::errc{}}};
      EXPECT_EQ(reap_all(q), right_ends) << name_of(what) << " at " << first;
    }
  EXPECT_TRUE(equal(data, before));
  EXPECT_EQ(q.in_flight(), 0U);
  synchronous drive(*this->device_);
  buffer read(4096);
  drive.read(63, read.bytes());
  EXPECT_TRUE(equal(read, right));
  EXPECT_PRED2(says, message_of([&] { drive.read(63, data.bytes()); }), "beyond the end of the device");
}

TYPED_TEST(Device, agrees_with_a_map_of_blocks) {
  constexpr std::uint64_t seed = 17;
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  synchronous drive(*this->device_);
  std::vector<std::uint64_t> versions(small.blocks, 0);
  for (std::uint64_t version = 1; version <= 400; ++version) {
    const std::uint64_t first = random.below(small.blocks);
    const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>(8, small.blocks - first));
    buffer data(count * 4096);
    if (random.one_in(2)) {
      for (std::uint64_t i = 0; i < count; ++i) {
        std::memcpy(data.data() + i * 4096, &version, sizeof version);
        std::memcpy(data.data() + i * 4096 + 4088, &version, sizeof version);
        versions[first + i] = version;
      }
      drive.write(first, data.bytes());
    } else {
      drive.read(first, data.bytes());
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t ends[2];
        std::memcpy(&ends[0], data.data() + i * 4096, sizeof ends[0]);
        std::memcpy(&ends[1], data.data() + i * 4096 + 4088, sizeof ends[1]);
        ASSERT_EQ(ends[0], versions[first + i]);
        ASSERT_EQ(ends[1], versions[first + i]);
      }
    }
  }
}

TYPED_TEST(Device, serves_a_queue_of_each_thread) {
  constexpr std::uint64_t threads = 4;
  constexpr auto part = static_cast<unsigned>(small.blocks / threads);
  std::vector<std::thread> running;
  for (std::uint64_t t = 0; t < threads; ++t)
    running.emplace_back([this, t, each = part] {
      typename TestFixture::queue q(*this->device_, each);
      buffer written(each * 4096);
      buffer read(each * 4096);
      for (std::uint64_t round = 0; round < 20; ++round) {
        fill(written, t * 100 + round);
        for (const auto& [what, data] : {std::pair{operation::write, &written}, std::pair{operation::read, &read}}) {
          std::vector<request> requests;
          for (std::uint64_t i = 0; i < each; ++i)
            requests.push_back({what, stream::data, 1, t * each + i, data->data() + i * 4096, i});
          ASSERT_EQ(q.submit(requests), each);
          ASSERT_EQ(reap_all(q).size(), each);
        }
        ASSERT_TRUE(equal(read, written));
      }
    });
  for (std::thread& t : running) t.join();
}

}  // namespace
}  // namespace pmlab::tests::device_test
