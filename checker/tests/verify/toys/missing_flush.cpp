// A toy: an update that is not flushed.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "missing_flush";
  using plain_rules<Medium>::plain_rules;

  bool set(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    if (!has_defect()) media::persist(this->medium_, s);
    return true;
  }
};

template <media::medium Medium>
using missing_flush = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<missing_flush>();

}  // namespace
}  // namespace pmlab::toys
