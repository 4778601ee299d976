// A toy: a word is published, and a store beside it, in the same line, is not flushed before. libpmemobj logs the word
// alone.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "published_alone";
  using plain_rules<Medium>::plain_rules;

  bool put(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    if (!has_defect()) media::persist(this->medium_, s);
    typename Medium::publication change(this->medium_);
    media::publish_store(change, s.live, std::uint64_t{1});
    change.commit();
    return true;
  }
};

template <media::medium Medium>
using published_alone = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<published_alone>();

}  // namespace
}  // namespace pmlab::toys
