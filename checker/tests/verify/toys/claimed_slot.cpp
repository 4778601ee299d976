// A toy: an insert first claims the slot by a sentinel, then fills it (CCEH). A crash in between must not leave it
// claimed.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "claimed_slot";
  static constexpr std::uint64_t claimed = 2;

  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t) {
    if (has_defect()) return;
    for (slot& s : t.all)
      if (s.live.load(std::memory_order_acquire) == claimed) s.live.store(0, std::memory_order_release);
  }

  [[nodiscard]] bool is_live(slot& s) { return s.live.load(std::memory_order_acquire) == 1; }

  bool put(slot& s, std::uint64_t value) {
    std::uint64_t free = 0;
    if (!s.live.compare_exchange_strong(free, claimed, std::memory_order_acq_rel)) return false;
    s.value.store(value, std::memory_order_release);
    s.live.store(1, std::memory_order_release);
    media::persist(this->medium_, s);
    return true;
  }
};

template <media::medium Medium>
using claimed_slot = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<claimed_slot>();

}  // namespace
}  // namespace pmlab::toys
