#include <map>
#include <mutex>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/save_module.h"

namespace fx {
namespace io {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::type_index, RegisteredClass> classes;
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

}  // namespace

RegisteredClass find_registered_class(std::type_index type) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.classes.find(type);
  return found == all.classes.end() ? RegisteredClass{} : found->second;
}

RegisteredClass find_registered_class(const std::string& name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (const auto& [type, entry] : all.classes)
    if (entry.name == name) return entry;
  return {};
}

}  // namespace io

void register_saved_module(
    std::type_index type, std::string name,
    std::function<std::string(const torch::nn::Module& module)> options,
    std::function<std::shared_ptr<torch::nn::Module>(const std::string& options)> make) {
  if (name.empty() || name == "graph" || name.starts_with("torch."))
    throw GraphError(ErrorCode::kBadName, str_repr(name) + " cannot name an own class in archives");
  FX_ASSERT(make != nullptr, "a saved module needs a function that makes it");
  io::Registry& all = io::registry();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.classes, [&](const auto& item) { return item.second.name == name; });
  all.classes.insert_or_assign(type,
                               io::RegisteredClass{name, std::move(options), std::move(make)});
}

}  // namespace fx
