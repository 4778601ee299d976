// A toy: a lock in persistent memory, which a crash leaves held.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <thread>

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "lock_in_pm";
  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t) {
    if (!has_defect()) lock_word().store(0, std::memory_order_release);
  }

  void lock(slot& /*s*/) {
    std::uint64_t free = 0;
    while (!lock_word().compare_exchange_weak(free, 1, std::memory_order_acq_rel)) {
      free = 0;
      std::this_thread::yield();
    }
  }
  void unlock(slot& /*s*/) { lock_word().store(0, std::memory_order_release); }

 private:
  [[nodiscard]] word& lock_word() { return this->table_.header[0]; }
};

template <media::medium Medium>
using lock_in_pm = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<lock_in_pm>();

}  // namespace
}  // namespace pmlab::toys
