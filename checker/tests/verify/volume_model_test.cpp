// The history of a volume: which answers and which crash states it allows.
#include "checker/verify/volume_model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::verify::volume_model_test {
namespace {

using numbers = std::vector<std::uint32_t>;

constexpr volume_shape shape{.block_bytes = 512, .blocks = 4, .chunk_blocks = 2};

volume_step write(std::uint32_t number, std::uint64_t first, std::uint32_t count) {
  return {volume_step::action::write, {{first, count}}, number};
}
volume_step read(std::uint64_t first, std::uint32_t count) { return {volume_step::action::read, {{first, count}}, 0}; }
volume_step discard(std::uint64_t first, std::uint32_t count) {
  return {volume_step::action::discard, {{first, count}}, 0};
}

void perform(volume_model& m, const volume_step& s) {
  m.called(0, s);
  EXPECT_EQ(m.returned(0, s, {}), "");
}

TEST(volume_model, unwritten_blocks_are_zero) {
  volume_model m(shape);
  EXPECT_EQ(m.judge(numbers{0, 0, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{0, 7, 0, 0}), "");
}

TEST(volume_model, an_acknowledged_write_is_there_and_one_under_way_wholly_or_not_at_all) {
  volume_model m(shape);
  perform(m, write(1, 0, 2));
  m.called(0, write(2, 0, 2));
  EXPECT_EQ(m.judge(numbers{1, 1, 0, 0}), "");
  EXPECT_EQ(m.judge(numbers{2, 2, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{2, 1, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{0, 0, 0, 0}), "");
}

TEST(volume_model, of_a_write_over_two_chunks_each_part_is_atomic_by_itself) {
  volume_model m(shape);
  m.called(0, write(1, 1, 3));
  EXPECT_EQ(m.judge(numbers{0, 1, 0, 0}), "");
  EXPECT_EQ(m.judge(numbers{0, 0, 1, 1}), "");
  EXPECT_NE(m.judge(numbers{0, 1, 1, 0}), "");
}

TEST(volume_model, a_read_that_saw_a_write_under_way_keeps_it) {
  volume_model m(shape);
  m.called(0, write(1, 0, 2));
  m.called(1, read(0, 2));
  EXPECT_EQ(m.returned(1, read(0, 2), numbers{1, 1}), "");
  EXPECT_EQ(m.judge(numbers{1, 1, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{0, 0, 0, 0}), "");
}

TEST(volume_model, a_read_does_not_see_half_of_a_write) {
  volume_model m(shape);
  m.called(0, write(1, 0, 2));
  m.called(1, read(0, 2));
  EXPECT_NE(m.returned(1, read(0, 2), numbers{1, 0}), "");
}

TEST(volume_model, of_a_read_over_two_chunks_each_part_is_some_moment_of_its_chunk) {
  for (const bool late : {false, true}) {
    volume_model m(shape);
    perform(m, write(1, 0, 4));
    m.called(1, read(0, 4));
    perform(m, write(2, 0, 4));
    m.called(0, write(3, 0, 4));
    EXPECT_EQ(late ? m.returned(1, read(0, 4), numbers{1, 1, 3, 3}) : m.returned(1, read(0, 4), numbers{3, 3, 1, 1}),
              "");
  }
  volume_model m(shape);
  perform(m, write(1, 0, 4));
  m.called(1, read(0, 4));
  perform(m, write(2, 0, 4));
  EXPECT_NE(m.returned(1, read(0, 4), numbers{2, 2, 1, 2}), "");
}

// A write in place is read before it is durable. Reads are held to an order all the same.
TEST(volume_model, where_reads_outrun_writes_a_crash_may_take_back_what_a_read_saw) {
  volume_shape in_place = shape;
  in_place.reads_outrun = true;
  volume_model m(in_place);
  perform(m, write(1, 0, 2));
  m.called(0, write(2, 0, 2));
  m.called(1, read(0, 2));
  EXPECT_EQ(m.returned(1, read(0, 2), numbers{2, 2}), "");
  EXPECT_EQ(m.judge(numbers{1, 1, 0, 0}), "");
  EXPECT_EQ(m.judge(numbers{2, 2, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{2, 1, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{0, 0, 0, 0}), "") << "it had returned";
  m.called(1, read(0, 2));
  EXPECT_NE(m.returned(1, read(0, 2), numbers{1, 1}), "") << "an earlier read saw a newer write";
}

TEST(volume_model, a_read_of_block_by_block_may) {
  volume_shape loose = shape;
  loose.reads_are_atomic = false;
  volume_model m(loose);
  m.called(0, write(1, 0, 2));
  m.called(1, read(0, 2));
  EXPECT_EQ(m.returned(1, read(0, 2), numbers{0, 1}), "");
}

TEST(volume_model, writes_that_overlap_in_time_have_one_order) {
  volume_model m(shape);
  m.called(0, write(1, 0, 2));
  m.called(1, write(2, 1, 1));
  EXPECT_EQ(m.returned(0, write(1, 0, 2), {}), "");
  EXPECT_EQ(m.returned(1, write(2, 1, 1), {}), "");
  m.called(0, read(0, 2));
  EXPECT_EQ(m.returned(0, read(0, 2), numbers{1, 1}), "");
  EXPECT_EQ(m.judge(numbers{1, 1, 0, 0}), "");
  EXPECT_NE(m.judge(numbers{1, 2, 0, 0}), "");
}

TEST(volume_model, a_discard_leaves_zeros_and_full_leaves_everything) {
  volume_model m(shape);
  perform(m, write(1, 0, 4));
  perform(m, discard(0, 1));
  EXPECT_EQ(m.judge(numbers{0, 1, 1, 1}), "");
  m.called(0, write(2, 2, 2));
  EXPECT_EQ(m.returned(0, write(2, 2, 2), {}, true), "");
  EXPECT_NE(m.judge(numbers{0, 1, 2, 2}), "");
  EXPECT_EQ(m.judge(numbers{0, 1, 1, 1}), "");
}

TEST(volume_model, blocks_tell_tears_and_strangers) {
  std::vector<std::byte> block(512);
  std::uint32_t number = 0;
  fill_block(block, 5, 9);
  EXPECT_EQ(read_block(block, 9, number), "");
  EXPECT_EQ(number, 5u);
  EXPECT_EQ(read_block(block, 8, number), "block 8 holds write 5 of block 9");
  fill_block(std::span(block).subspan(256), 0, 9);
  EXPECT_NE(read_block(block, 9, number).find("block 9 is torn"), std::string::npos);
}

}  // namespace
}  // namespace pmlab::verify::volume_model_test
