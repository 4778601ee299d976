// A toy: a reader without a lock uses a block that a writer has released.
#include "boxes.hpp"

#include "checker/verify/register_subject.hpp"

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public boxed_rules<Medium> {
 public:
  static constexpr std::string_view name = "use_after_free";
  using boxed_rules<Medium>::boxed_rules;

  // Only with the defect.
  [[nodiscard]] std::optional<std::uint64_t> find(slot& s) {
    if (!this->is_live(s)) return std::nullopt;
    return this->value(s);
  }
};

template <media::medium Medium>
using use_after_free = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<use_after_free>();

}  // namespace
}  // namespace pmlab::toys
