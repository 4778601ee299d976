#include "bench/stores/raw_subject.hpp"

#include <array>
#include <utility>

namespace pmlab::store_bench {
namespace {

class raw_queue final : public volume_queue {
 public:
  raw_queue(blocks::any_device& device, unsigned depth)
      : queue_(device, depth), block_bytes_(device.shape().block_bytes) {}

  void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
    // The drive only reads the data of a write.
    submit(blocks::operation::write_durable, offset, data.size(), const_cast<std::byte*>(data.data()), tag);
  }
  void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
    submit(blocks::operation::read, offset, data.size(), data.data(), tag);
  }
  void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
    submit(blocks::operation::discard, offset, length, nullptr, tag);
  }
  [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t at_least) override {
    std::array<blocks::completion, 64> done;
    const std::size_t most = std::min(answers.size(), done.size());
    const std::size_t count = queue_.reap(std::span(done).first(most), std::min(at_least, most));
    for (std::size_t i = 0; i < count; ++i) answers[i] = {done[i].tag, done[i].error};
    return count;
  }

 private:
  void submit(blocks::operation what, std::uint64_t offset, std::uint64_t length, std::byte* data, std::uint64_t tag) {
    const blocks::request r{
        what, blocks::stream::data, static_cast<std::uint32_t>(length / block_bytes_), offset / block_bytes_, data,
        tag};
    // The engine has fewer than `depth` under way.
    while (queue_.submit({&r, 1}) == 0) continue;
  }

  blocks::any_device::queue queue_;
  std::uint32_t block_bytes_;
};

class raw final : public volume_subject {
 public:
  raw(blocks::any_device& device, std::uint64_t bytes) : device_(device), bytes_(bytes) {}

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return device_.shape().block_bytes; }
  // A drive keeps a request of several blocks together neither for readers nor in a crash.
  [[nodiscard]] volume_promises promises() const override { return {block_bytes(), false}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<raw_queue>(device_, depth);
  }

 private:
  blocks::any_device& device_;
  std::uint64_t bytes_;
};

}  // namespace

std::unique_ptr<volume_subject> make_raw(const store_setup& setup, blocks::any_device& device) {
  return std::make_unique<raw>(device, setup.volume_bytes);
}

}  // namespace pmlab::store_bench
