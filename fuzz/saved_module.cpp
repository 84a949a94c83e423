// Any bytes as a file of fx::save, and as its module.json beside sound records: an ImportError, or
// a module that can be printed and saved again.
#include <cstdint>
#include <string>

#include "fuzz/json_mutator.h"
#include "fuzz/temp_folder.h"
#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/io/atomic_file.h"
#include "fx/io/save_module.h"
#include "fx/io/zip_writer.h"

namespace {

constexpr const char* kGraph =
    "fx 1\n%x = placeholder[target=x]\n%m = call_module[target=m](args = (%x,), kwargs = {})\n"
    "return %m\n";

void load_again(const std::string& path) {
  try {
    const auto module = fx::load(path);
    fx::to_text(module->graph(), {.meta = true});
    fx::save(*module, fx::fuzz::temp_folder() + "/again.fxa");
    fx::load(fx::fuzz::temp_folder() + "/again.fxa");
  } catch (const fx::ImportError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string path = fx::fuzz::temp_folder() + "/module.fxa";
  {
    fx::io::AtomicFile file(path);
    file.write(text);
    file.commit();
  }
  load_again(path);
  {
    fx::io::AtomicFile file(path);
    fx::io::ZipWriter zip(file);
    zip.add("fxa/version", "fxcpp module 1\n");
    zip.add("fxa/module.json", text);
    zip.add("fxa/graph/0.fx", kGraph);
    zip.add("fxa/data/0", std::string(256, '\1'));
    zip.finish();
    file.commit();
  }
  load_again(path);
  return 0;
}
