// The device of a store in virtual time: bytes in memory, and the drive model on the clocks of simulated threads.
//
// The program has it, and not the library of the store: the model's work takes no virtual time but the drive's.
#include "checker/simulator/drive_clock.hpp"
#include "checker/simulator/machine/machine.hpp"
#include <pmlab/blocks/timed.hpp>
#include "bench/devices/drive_file.hpp"
#include "bench/stores/counted_device.hpp"

#include <algorithm>
#include <unordered_map>

namespace pmlab::store_bench {
namespace {

// The drive sees requests in the order of their times: a thread that is ahead of others lets these go first. While a
// thread does the work of a device with a processor of its own, its clock is that processor's.
class shared_clock : public simulator::drive_clock {
 public:
  [[nodiscard]] blocks::picoseconds now() const noexcept {
    const auto at = detached().find(current());
    return at == detached().end() ? drive_clock::now() : at->second;
  }
  void wait_until(blocks::picoseconds time) const noexcept {
    const auto at = detached().find(current());
    if (at == detached().end())
      drive_clock::wait_until(time);
    else
      at->second = std::max(at->second, time);
  }
  void take_turn() const {
    if (current() != nullptr && !detached().contains(current())) simulator::the_machine().sleep_until(current()->clock);
  }
  void detach() const { detached().insert_or_assign(current(), drive_clock::now()); }
  blocks::picoseconds attach() const {
    const blocks::picoseconds time = now();
    detached().erase(current());
    return time;
  }

 private:
  // Null: the machine does not run.
  [[nodiscard]] static simulator::fiber* current() {
    simulator::machine& m = simulator::the_machine();
    return m.running() ? m.current() : nullptr;
  }
  // The times of processors, by the threads that do their work.
  [[nodiscard]] static std::unordered_map<const simulator::fiber*, blocks::picoseconds>& detached() {
    static std::unordered_map<const simulator::fiber*, blocks::picoseconds> all;
    return all;
  }
};

using timed_memory = blocks::timed<blocks::memory, shared_clock>;

class shared_drive : public timed_memory {
 public:
  using timed_memory::timed_memory;

  class queue : public timed_memory::queue {
   public:
    queue(shared_drive& device, unsigned depth) : timed_memory::queue(device, depth) {}
    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      shared_clock().take_turn();
      return timed_memory::queue::submit(requests);
    }
  };
};

}  // namespace

std::unique_ptr<store_device> open_store_device(const drive::device_spec& spec, const store_device_options& options) {
  detail::check_bytes(options);
  if (spec.which != drive::device_spec::kind::simulated)
    throw error("drive " + spec.text() + " beside memory in virtual time", "give --device simulated:p4610");
  return std::make_unique<detail::modelled_device<shared_drive>>(options, blocks::load_drive(spec.profile),
                                                                 shared_clock());
}

}  // namespace pmlab::store_bench
