// The indexes that can be verified.
#include "checker/verify/subjects.hpp"
#include "checker/verify/hosts/host_objects.hpp"
#include "checker/verify/library_copy.hpp"
#include "checker/verify/prefix.hpp"
#include "checker/verify/register_subject.hpp"
#include "checker/verify/seed_of_round.hpp"
#include "checker/verify/silent_stdout.hpp"
#include "checker/verify/thrown.hpp"
#include "checker/verify/volume.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/shared_object.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/hybrid/specification.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>

namespace pmlab::verify {
namespace {

// Filled while the program starts and while shared objects are loaded.
std::deque<subject>& all() {
  static std::deque<subject> subjects;
  return subjects;
}

std::uint64_t seed_of_round = 0;

std::deque<combination>& combinations() {
  static std::deque<combination> known;
  return known;
}

// The registration of the shared object that was loaded last.
struct registered {
  std::string subject{};
  bool anything = false;
  std::string object{};              // its path
  verify::subject* apart = nullptr;  // not null: what it registers goes there
};
registered& last_registered() {
  static registered last;
  return last;
}

subject* find(std::string_view name) {
  for (subject& s : all())
    if (s.name == name) return &s;
  return nullptr;
}

// The shared objects of this program lie beside it: the halves that run on the machine, and in a folder below those
// that open images.
std::filesystem::path object_folder() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return program.parent_path().parent_path() / "lib" / "pmlab" / "simulated" / "verify";
}
std::filesystem::path object_of(const std::string& name) { return object_folder() / (name + ".so"); }
std::filesystem::path image_object_of(const std::string& name) { return object_folder() / "images" / (name + ".so"); }

// False, too: the name is too long to be a file's.
bool is_there(const std::filesystem::path& object) {
  std::error_code failed;
  return std::filesystem::exists(object, failed);
}

// Throws pmlab::error: it is not loadable, or registers nothing. `apart`: what it registers goes there.
void load_object(const std::filesystem::path& path, subject* apart = nullptr) {
  check_not_cut_off(path.string());
  last_registered() = {.object = path.string(), .apart = apart};
  void* object = nullptr;
  {
    const silent_stdout its_constructors;
    object = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  last_registered().apart = nullptr;
  if (object == nullptr)
    throw error("cannot load " + path.string() + ": " + ::dlerror(),
                "build it with pmlab_simulate, or scripts/pmlab-c++");
  if (!last_registered().anything)
    throw error(path.string() + " registers no index",
                "see checker/verify/register_subject.hpp, or give a PiBench library by --library");
}

const combination& find_combination(const std::string& name) {
  for (bool loaded = false;; loaded = true) {
    for (const combination& c : combinations())
      if (c.name == name) return c;
    if (loaded || !is_there(object_of(name)))
      throw error("nothing is called " + name + "(...)",
                  "write cache(INDEX,...), hybrid(hash=INDEX@pmem,tree=INDEX@dram) or an index's name");
    load_object(object_of(name));
  }
}

// The combination of `given`. It is kept, since a later caller may request the same.
const subject& combine(const std::string& text, const spec& given) {
  const combination& made = find_combination(given.name);
  std::vector<const subject*> parts;
  std::vector<bool> in_dram;
  for (const std::string& part : made.parts(given)) {
    constexpr std::string_view suffix = "@dram";
    in_dram.push_back(part.ends_with(suffix));
    parts.push_back(&find_subject(part.substr(0, part.size() - (in_dram.back() ? suffix.size() : 0))));
    if (in_dram.back() && !parts.back()->open_in_dram)
      throw error(parts.back()->name + " cannot be verified in DRAM", "name an index of pmlab");
  }
  subject whole;
  whole.name = text;
  whole.ordered = std::any_of(parts.begin(), parts.end(), [](const subject* s) { return s->ordered; });
  whole.image_is_ordered = parts.front()->image_is_ordered;
  whole.key_of_hash = parts.front()->key_of_hash;
  whole.keeps_room = std::any_of(parts.begin(), parts.end(), [](const subject* s) { return s->keeps_room; });
  whole.open_image = parts.front()->open_image;
  if (parts.size() > 1) whole.open_replica_on_image = parts[1]->open_image;
  whole.open_durable_part =
      parts.front()->open_durable_part ? parts.front()->open_durable_part : parts.front()->open_simulated;
  whole.has_threads = true;
  whole.reserves_sentinels =
      std::any_of(parts.begin(), parts.end(), [](const subject* s) { return s->reserves_sentinels; });
  whole.open_simulated = [parts, in_dram, given, combine = made.combine] {
    std::vector<std::unique_ptr<target>> open;
    for (std::size_t i = 0; i < parts.size(); ++i)
      open.push_back(in_dram[i] ? parts[i]->open_in_dram() : parts[i]->open_simulated());
    return combine(given, std::move(open));
  };
  all().push_back(std::move(whole));
  return all().back();
}

void merge_volume(subject& known, const subject& part) {
  if (part.volume == nullptr) return;
  const auto merged = std::make_shared<volume_kind>(*part.volume);
  if (known.volume != nullptr) {
    if (!merged->open_simulated) merged->open_simulated = known.volume->open_simulated;
    if (known.volume->open_image != nullptr && !part.is_mutant) merged->open_image = known.volume->open_image;
  }
  known.volume = merged;
}

void merge_prefix(subject& known, const subject& part) {
  if (part.prefix == nullptr) return;
  const auto merged = std::make_shared<prefix_kind>(*part.prefix);
  if (known.prefix != nullptr) {
    if (!merged->open_simulated) merged->open_simulated = known.prefix->open_simulated;
    if (known.prefix->open_image != nullptr && !part.is_mutant) merged->open_image = known.prefix->open_image;
  }
  known.prefix = merged;
}

bool opens_images(const subject& s) {
  if (s.volume != nullptr) return s.volume->open_image != nullptr;
  if (s.prefix != nullptr) return s.prefix->open_image != nullptr;
  return s.open_image != nullptr || s.open_image_on_drives != nullptr;
}

bool runs_on_machine(const subject& s) {
  if (s.volume != nullptr) return static_cast<bool>(s.volume->open_simulated);
  if (s.prefix != nullptr) return static_cast<bool>(s.prefix->open_simulated);
  return static_cast<bool>(s.open_simulated);
}

// The names that the objects of this program have.
std::vector<std::string> own_names() {
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& file : std::filesystem::directory_iterator(object_folder() / "images", failed))
    if (file.path().extension() == ".so") names.push_back(file.path().stem().string());
  return names;
}

// load_subject, of an object whose constructors are known.
std::string load_halves(const std::string& path) {
  load_object(path);
  const std::string name = last_registered().subject;
  const subject* const s = find(name);
  if (s == nullptr) return name;
  if (!runs_on_machine(*s))
    throw error(path + " is the half of " + name + " that opens images", "give the half that runs on the machine");
  // Half of a subject of this program, perhaps compiled in another way: images are opened as usual.
  if (!opens_images(*s)) {
    const std::filesystem::path images = image_object_of(name);
    if (!is_there(images))
      throw error(path + " is the half of " + name + " that runs on the machine, and the half that opens images is " +
                      "missing: " + images.string(),
                  "build both: cmake --build --preset release --target pmlab_checker");
    load_object(images);
  }
  return name;
}

}  // namespace

void set_seed_of_round(std::uint64_t seed) { seed_of_round = seed; }

std::string load_subject(const std::string& path) {
  check_not_cut_off(path);
  check_constructors(path);
  return load_halves(path);
}

const subject& find_subject(std::string_view name) {
  const spec given = parse_spec(hybrid::specification_of(name));
  if (const subject* const found = find(name)) return *found;
  if (!given.arguments.empty() || !given.options.empty()) return combine(std::string(name), given);
  const std::filesystem::path object = object_of(std::string(name));
  // A combination's object registers no subject.
  if (name.find('/') == std::string_view::npos && is_there(object)) {
    load_halves(object.string());  // one of this program
    if (const subject* const found = find(name)) return *found;
  }
  const std::vector<std::string> names = own_names();
  if (std::find(names.begin(), names.end(), name) != names.end())
    throw error("the half of " + std::string(name) + " that runs on the machine is missing: " + object.string(),
                "build both: cmake --build --preset release --target pmlab_checker");
  if (names.empty())
    throw error("there is nothing to verify beside this program: the objects of its indexes and stores are missing",
                "build them: cmake --build --preset release --target pmlab_checker");
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw error("there is no index '" + std::string(name) + "' to verify",
              "did you mean " + std::string(nearest(name, known)) + "? `pmlab list` names the indexes; what is not " +
                  "compiled yet: cmake --build --preset release --target pmlab_checker");
}

const subject& open_on_hosts(std::string_view name, unsigned hosts, bool as_is) {
  subject* const s = find(name);
  if (s == nullptr) throw error("there is no index '" + std::string(name) + "'", "name one, or give --subject");
  if (s->volume != nullptr || s->prefix != nullptr || s->open_image_on_drives != nullptr)
    throw error(s->name + " is a store, which one host opens", "leave --hosts out, or name an index");
  if (s->object.empty())
    throw error(s->name + " has parts in the DRAM of one host", "leave --hosts out, or name an index");
  if (!s->shared_by_hosts && !as_is)
    throw error(s->name + " keeps its locks in DRAM, so no second host can open it",
                "leave --hosts out, or give --as-is to see it fail");
  host_objects& objects = host_objects::of(*s);
  if (!objects.has(0)) objects.add(0, simulator::parts_of_object(s->object));
  while (s->open_on_host.size() + 1 < hosts) {
    const private_copy copy(s->object);
    subject apart;
    load_object(copy.path(), &apart);
    s->open_on_host.push_back(std::move(apart.open_simulated));
    const auto host = static_cast<unsigned>(s->open_on_host.size());
    if (!objects.has(host)) objects.add(host, simulator::parts_of_object(copy.path().string()));
  }
  return *s;
}

}  // namespace pmlab::verify

extern "C" void pmlab_verify_register(const pmlab::verify::subject* part) {
  using namespace pmlab::verify;
  last_registered().subject = part->name;
  last_registered().anything = true;
  if (subject* const apart = last_registered().apart; apart != nullptr) {
    *apart = *part;
    return;
  }
  subject* known = find(part->name);
  if (known == nullptr) {
    all().push_back({});
    known = &all().back();
    known->name = part->name;
  }
  known->ordered = part->ordered;
  known->image_is_ordered = part->image_is_ordered;
  known->loads = part->loads;
  known->iterates = part->iterates;
  known->key_of_hash = part->key_of_hash;
  known->keeps_room = part->keeps_room;
  if (part->open_simulated) {
    known->open_simulated = part->open_simulated;
    known->object = last_registered().object;
    known->shared_by_hosts = part->shared_by_hosts;
    known->survives_power_failure = part->survives_power_failure;
    known->open_on_host.clear();
  }
  if (part->open_in_dram) known->open_in_dram = part->open_in_dram;
  known->drives = part->drives;
  known->small_drives = part->small_drives;
  known->fills_up = part->fills_up;
  merge_volume(*known, *part);
  merge_prefix(*known, *part);
  // One that is not instrumented is faster; a mutant's is its own.
  if (known->open_image == nullptr || part->is_mutant) known->open_image = part->open_image;
  if (known->open_image_on_drives == nullptr || part->is_mutant)
    known->open_image_on_drives = part->open_image_on_drives;
}

extern "C" std::uint64_t pmlab_verify_seed_of_round() { return pmlab::verify::seed_of_round; }

extern "C" void pmlab_verify_register_combination(const pmlab::verify::combination* made) {
  using namespace pmlab::verify;
  last_registered().anything = true;
  combinations().push_front(*made);
}
