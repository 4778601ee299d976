// A toy: the address of an object in DRAM, stored in persistent memory.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <vector>

namespace pmlab::toys {
namespace {

template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "dram_address";
  using plain_rules<Medium>::plain_rules;

  [[nodiscard]] std::uint64_t value(slot& s) {
    const std::uint64_t stored = plain_rules<Medium>::value(s);
    return has_defect() ? *reinterpret_cast<const std::uint64_t*>(stored) : stored;
  }
  bool put(slot& s, std::uint64_t value) { return plain_rules<Medium>::put(s, to_store(value)); }
  bool set(slot& s, std::uint64_t value) { return plain_rules<Medium>::set(s, to_store(value)); }

 private:
  std::uint64_t to_store(std::uint64_t value) {
    if (!has_defect()) return value;
    values_.push_back(std::make_unique<std::uint64_t>(value));
    return reinterpret_cast<std::uintptr_t>(values_.back().get());
  }

  std::vector<std::unique_ptr<std::uint64_t>> values_;
};

template <media::medium Medium>
using dram_address = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<dram_address>();

}  // namespace
}  // namespace pmlab::toys
