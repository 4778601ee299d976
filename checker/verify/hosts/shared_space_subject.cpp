// pmlab::pod::space under verification: a map each of whose changes is a publication that allocates, stores and
// releases, on a space of small chunks.
#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/hosts/copied_buckets.hpp"
#include "checker/verify/hosts/medium_lines.hpp"
#include "checker/verify/register_subject.hpp"
#include <pmlab/pod/space.hpp>

#include <cstddef>

namespace {

using namespace pmlab;

constexpr std::size_t chunk = std::size_t{1} << 10;

template <class Medium>
struct has_space {
  using lines = verify::medium_lines<Medium, 23 * chunk, 20 * chunk>;
  using space = pod::space<lines, pod::space_sizes{.chunk_bytes = chunk, .hosts = 9}>;
  explicit has_space(Medium& medium) : memory(medium) {}
  space memory;
};

template <class Medium>
class shared_space : has_space<Medium>, public verify::copied_buckets<typename has_space<Medium>::space> {
  using holder = has_space<Medium>;
  using map = verify::copied_buckets<typename holder::space>;

 public:
  static constexpr std::string_view layout_name = "shared_space";
  static constexpr std::uint64_t layout_version = 1;
  static constexpr bool shared_by_hosts = true;
  static constexpr bool survives_power_failure = true;
  static constexpr bool is_bounded = true;

  [[nodiscard]] static shared_space open(Medium& medium) { return shared_space(medium); }

  // What the medium knows of.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result = map::stats();
    result.medium_bytes = holder::lines::held_bytes();
    return result;
  }

 private:
  explicit shared_space(Medium& medium) : holder(medium), map(holder::memory) {}
};

const bool registered =
    verify::register_subject<shared_space, verify::compiled_parts{.image = verify::compiled_as_mutant,
                                                                  .in_dram = false}>(verify::compiled_as_mutant);

}  // namespace
