// The device of a store in virtual time: bytes in memory, and the drive model on the clocks of simulated threads.
//
// The program has it, and not the library of the store: the model's work takes no virtual time but the drive's.
#include "checker/simulator/drive_clock.hpp"
#include "checker/simulator/machine/machine.hpp"
#include <pmlab/blocks/timed.hpp>
#include "bench/devices/drive_file.hpp"
#include "bench/stores/counted_device.hpp"

namespace pmlab::store_bench {
namespace {

// The drive sees requests in the order of their times: a thread that is ahead of others lets these go first.
class shared_clock : public simulator::drive_clock {
 public:
  void take_turn() const {
    simulator::machine& m = simulator::the_machine();
    if (m.running()) m.sleep_until(m.current()->clock);
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
  detail::check_bytes(options.bytes);
  if (spec.which != drive::device_spec::kind::simulated)
    throw error("drive " + spec.text() + " beside memory in virtual time", "give --device simulated:p4610");
  return std::make_unique<detail::modelled_device<shared_drive>>(options, blocks::load_drive(spec.profile),
                                                                 shared_clock());
}

}  // namespace pmlab::store_bench
