// A toy: a reader without a lock uses an object in DRAM that a writer has deleted.
#include "slot_map.hpp"

#include "checker/verify/register_subject.hpp"

#include <vector>

namespace pmlab::toys {
namespace {

// The values are kept in DRAM, too, in objects of their own.
template <media::medium Medium>
class rules : public plain_rules<Medium> {
 public:
  static constexpr std::string_view name = "use_after_delete";
  rules(Medium& medium, table& t) : plain_rules<Medium>(medium, t), kept_(slots) {
    for (slot& s : t.all)
      if (this->is_live(s)) keep(s);
  }
  rules(const rules&) = delete;
  rules& operator=(const rules&) = delete;
  ~rules() {
    for (auto& kept : kept_) delete kept.load();
  }

  bool put(slot& s, std::uint64_t value) {
    plain_rules<Medium>::put(s, value);
    keep(s);
    return true;
  }
  bool set(slot& s, std::uint64_t value) { return put(s, value); }

  // Only with the defect.
  [[nodiscard]] std::optional<std::uint64_t> find(slot& s) {
    const word* const kept = kept_[this->number_of(s)].load(std::memory_order_acquire);
    if (kept == nullptr || !this->is_live(s)) return std::nullopt;
    return kept->load(std::memory_order_acquire);
  }

 private:
  void keep(slot& s) {
    word* const now = new word(this->value(s));
    delete kept_[this->number_of(s)].exchange(now, std::memory_order_acq_rel);
  }

  std::vector<std::atomic<word*>> kept_;
};

template <media::medium Medium>
using use_after_delete = slot_map<Medium, rules<Medium>>;
const bool registered = verify::register_subject<use_after_delete>();

}  // namespace
}  // namespace pmlab::toys
