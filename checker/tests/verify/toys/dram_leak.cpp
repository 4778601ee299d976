// A toy: each update leaves an object in DRAM that nothing leads to.
#include "boxes.hpp"

#include "checker/verify/register_subject.hpp"

#include <memory>

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public boxed_rules<Medium> {
 public:
  static constexpr std::string_view name = "dram_leak";
  using boxed_rules<Medium>::boxed_rules;

  bool set(slot& s, std::uint64_t value) {
    auto note = std::make_unique<word>(value);
    if (!boxed_rules<Medium>::set(s, note->load())) return false;
    if (has_defect()) static_cast<void>(note.release());
    return true;
  }
};

template <media::medium Medium>
using dram_leak = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<dram_leak>();

}  // namespace
}  // namespace pmlab::toys
