// A toy with two defects: neither an update nor an erasure is flushed.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "two_flushes";
  using plain_rules<Medium>::plain_rules;

  bool set(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    if (!has_defect()) media::persist(this->medium_, s);
    return true;
  }
  void take(slot& s) {
    s.live.store(0, std::memory_order_release);
    if (!has_defect()) media::persist(this->medium_, s);
  }
};

template <media::medium Medium>
using two_flushes = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<two_flushes>();

}  // namespace
}  // namespace pmlab::toys
