// A toy: a block is allocated first and linked afterwards; a crash in between leaks it.
#include "boxes.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public boxed_rules<Medium> {
 public:
  static constexpr std::string_view name = "leak";
  using boxed_rules<Medium>::boxed_rules;

  bool put(slot& s, std::uint64_t value) {
    if (!has_defect()) return boxed_rules<Medium>::put(s, value);
    typename Medium::publication change(this->medium_);
    box* const made = this->make(change, value);
    if (made == nullptr) return false;
    change.commit();
    s.value.store(this->medium_.locate(made).word(), std::memory_order_release);
    s.live.store(1, std::memory_order_release);
    media::persist(this->medium_, s);
    return true;
  }
};

template <media::medium Medium>
using leak = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<leak>();

}  // namespace
}  // namespace pmlab::toys
