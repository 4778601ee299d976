// The medium that the setup of a store names, behind virtual calls: a store is compiled once for all media. Not for
// virtual time.
#pragma once

#include "bench/catalogue/chosen_medium.hpp"
#include "bench/catalogue/pool_files.hpp"
#include "bench/catalogue/subject.hpp"

#include <memory>
#include <optional>

namespace pmlab::store_bench {

// Its pool, if it is in one, is made for it, and the file goes when the medium has gone. `Setup`: store_setup or
// pair_setup. Throws pmlab::error: see pool_file and the media's constructors.
template <class Setup>
[[nodiscard]] std::shared_ptr<bench::chosen_medium> make_medium(const Setup& setup) {
  struct medium_on_file {
    std::optional<bench::pool_file> file;
    std::unique_ptr<bench::chosen_medium> medium;
  };
  const auto made = std::make_shared<medium_on_file>();
  bench::subject_setup of_medium;
  of_medium.medium = setup.medium;
  of_medium.emulation = setup.emulation;
  if (setup.medium.in_pool()) {
    made->file.emplace(setup.medium.path, setup.medium_bytes,
                       setup.overwrite ? bench::existing_file::overwrite : bench::existing_file::refuse, false, false);
    of_medium.pool_bytes = made->file->bytes_to_make();
  }
  made->medium = bench::make_chosen_medium(of_medium);
  return {made, made->medium.get()};
}

}  // namespace pmlab::store_bench
