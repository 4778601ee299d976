// A device that logs its requests to a file (blocks/io_log.hpp), for `pmlab verify --io-log`.
//
// A submission is logged before the inner device is given it, and a completion after the inner device returned it. The
// states that the log permits therefore include each state that a power failure could have left.
#pragma once

#include <pmlab/blocks/io_log.hpp>
#include <pmlab/blocks/wrapper.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::blocks {

// Thread safety: queues as in blocks/device.hpp; `mark` from any thread. A submit or reap throws pmlab::error if the
// log cannot grow; the request that it was about to log was not given to the inner device then.
template <device Inner>
class recorded : public wrapper<Inner> {
 public:
  // `arguments` build the inner device. `log` is written from its beginning. It does not have the content that the
  // device has now: the user keeps a copy of it (or none, if it is all zeros).
  template <class... Arguments>
  explicit recorded(const std::string& log, Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...), log_(log, this->inner().shape()) {}

  // Logs each request, and each completion.
  class queue {
   public:
    // At most `depth` requests in flight. `device` outlives it.
    queue(recorded& device, unsigned depth)
        : device_(device),
          number_(device.queues_.fetch_add(1, std::memory_order_relaxed)),
          inner_(device.inner(), depth),
          requests_(depth) {
      for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
    }

    [[nodiscard]] std::size_t submit(std::span<const request> requests) {
      const geometry shape = device_.shape();
      const std::size_t taken = std::min(requests.size(), free_.size());
      for (const request& r : requests.first(taken)) check_request(shape, r, device_.name());
      for (const request& r : requests.first(taken)) {
        const bool is_logged = has_blocks_of(shape, r);  // others change nothing
        const std::uint64_t id = is_logged ? device_.ids_.fetch_add(1, std::memory_order_relaxed) : no_id;
        if (is_logged)
          device_.log(io_event::submitted, r, id, number_, std::errc{},
                      writes(r.what) ? std::size_t{r.count} * shape.block_bytes : 0);
        const std::size_t place = free_.back();
        free_.pop_back();
        requests_[place] = {r, id};
        request passed = r;
        passed.tag = place;
        static_cast<void>(inner_.submit({&passed, 1}));
      }
      return taken;
    }

    [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
      const std::size_t count = inner_.reap(completions, at_least);
      for (completion& c : completions.first(count)) {
        const auto& [r, id] = requests_[c.tag];
        free_.push_back(c.tag);
        if (id != no_id) device_.log(io_event::completed, r, id, number_, c.error, 0);
        c.tag = r.tag;
      }
      return count;
    }
    [[nodiscard]] std::size_t in_flight() const { return inner_.in_flight(); }
    [[nodiscard]] unsigned depth() const { return inner_.depth(); }

   private:
    static constexpr std::uint64_t no_id = ~std::uint64_t{0};
    struct logged {
      request r;
      std::uint64_t id = 0;
    };

    recorded& device_;
    std::uint32_t number_;
    typename Inner::queue inner_;
    std::vector<logged> requests_;  // in flight, by the tag that the inner queue has
    std::vector<std::size_t> free_;
  };

  // Logs a text of the program, for example which operation it has acknowledged. A check of a crash state gets the
  // marks before the crash.
  void mark(std::string_view text) {
    io_record record;
    record.event = io_event::mark;
    record.data_bytes = static_cast<std::uint32_t>(text.size());
    log_.add(record, text.data());
  }

 private:
  void log(io_event event, const request& r, std::uint64_t id, std::uint32_t queue_number, std::errc e,
           std::size_t data_bytes) {
    io_record record;
    record.event = event;
    record.id = id;
    record.first = r.first;
    record.count = r.count;
    record.data_bytes = static_cast<std::uint32_t>(data_bytes);
    record.queue = queue_number;
    record.error = static_cast<std::int32_t>(e);
    record.what = r.what;
    record.of = r.of;
    log_.add(record, r.data);
  }

  std::atomic<std::uint64_t> ids_{0};
  std::atomic<std::uint32_t> queues_{0};
  io_log_writer log_;
};

}  // namespace pmlab::blocks
