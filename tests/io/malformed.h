#pragma once

// A list of malformed archives, one fault each; docs/malformed.md, which scripts/malformed.py
// writes from docs/coverage/malformed.tsv and from the ids here, shows them all.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "fx/base/error.h"
#include "tests/io/archive_builder.h"

namespace fx::io::testing {

// What the tables name often.
inline constexpr auto kCorrupt = ErrorCode::kCorruptArchive;
inline constexpr auto kUnsafe = ErrorCode::kUnsafeArchive;
inline constexpr auto kForeign = ErrorCode::kForeignFormat;
inline constexpr auto kVersion = ErrorCode::kUnsupportedVersion;
inline constexpr auto kMissing = ErrorCode::kMissingRecord;
inline constexpr auto kWeightError = ErrorCode::kBadWeight;
inline constexpr auto kProgram = ErrorCode::kBadProgram;
inline constexpr auto kSchema = ErrorCode::kBadSchema;
inline constexpr const char* kWeight = "data/weights/weight_0";
inline constexpr const char* kModel = "models/model.json";
inline constexpr const char* kConfig = "data/weights/model_weights_config.json";
inline constexpr const char* kPickle = "cos\nsystem\n(S'touch executed'\ntR.";

struct MalformedCase {
  enum class Wanted : std::uint8_t {
    kRefused,     ///< fx::load throws an ImportError with that code and text
    kAccepted,    ///< it loads, and a call gives what the sound file gives
    kRunFails,    ///< it loads, and a call throws an error with that text
    kBothAreFine  ///< a refusal or the right result: what is claimed cannot be told from the truth
  };
  std::string id;        ///< "Z07"
  std::string zoo_name;  ///< the sound program
  /// The bytes of the malformed file.
  std::function<std::string(ProgramFile&)> make;
  Wanted wanted = Wanted::kRefused;
  ErrorCode code = ErrorCode::kCorruptArchive;
  std::string part;
  bool verify_weights = false;  ///< loaded with that option
  double seconds = 1;           ///< of processor time that loading may take
  std::size_t nodes = 0;        ///< each of which may take a kilobyte
};
inline void PrintTo(const MalformedCase& c, std::ostream* out) { *out << c.id << " " << c.part; }

using Json = nlohmann::ordered_json;
using Make = std::function<std::string(ProgramFile&)>;

/// Edits the container of the file.
inline Make container(const std::function<void(TestArchive&)>& edit) {
  return [edit](ProgramFile& file) {
    TestArchive archive;
    archive.records = file.records();
    edit(archive);
    return archive.build();
  };
}

/// Edits one record of it.
inline Make record(const std::string& name, const std::function<void(TestRecord&)>& edit) {
  return [name, edit](ProgramFile& file) {
    edit(file.record(name));
    return file.build();
  };
}

/// Edits the JSON of a record.
inline Make json(const std::string& name, const std::function<void(Json&)>& edit) {
  return [name, edit](ProgramFile& file) {
    file.edit(name, edit);
    return file.build();
  };
}
inline Make model(const std::function<void(Json&)>& edit) {
  return json("models/model.json", edit);
}

/// Puts text in place of a record, or of text in it.
inline Make contents(const std::string& name, const std::string& data) {
  return record(name, [data](TestRecord& r) { r.data = data; });
}
inline Make replaced(const std::string& name, const std::string& from, const std::string& to) {
  return [name, from, to](ProgramFile& file) {
    file.replace(name, from, to);
    return file.build();
  };
}

/// Edits the bytes of the sound file.
inline Make bytes(const std::function<std::string(std::string)>& edit) {
  return [edit](ProgramFile& file) { return edit(file.build()); };
}

/// Edits the entry of the weight "mean" of the program "buffers".
inline Make weight(const std::function<void(Json&)>& edit) {
  return json("data/weights/model_weights_config.json",
              [edit](Json& config) { edit(config["config"]["mean"]); });
}

inline Make renamed(const std::string& name, const std::string& to) {
  return record(name, [to](TestRecord& r) { r.name = to; });
}

inline Make removed(const std::string& name) {
  return [name](ProgramFile& file) {
    file.remove(name);
    return file.build();
  };
}

inline Make with_record(const std::string& name, const std::string& data) {
  return [name, data](ProgramFile& file) {
    file.add(name, data);
    return file.build();
  };
}

/// One more record, whose name is the whole of it.
inline Make named_last(const std::string& name) {
  return container([name](TestArchive& a) {
    TestRecord& last = a.records.emplace_back();
    last.name = name;
    last.data = "x";
  });
}

/// A list of the schema's sizes.
inline Json sizes(std::initializer_list<std::int64_t> values) {
  Json list = Json::array();
  for (std::int64_t value : values) list.push_back({{"as_int", value}});
  return list;
}

/// Edits the description of the weight "mean" of the program "buffers".
inline Make meta(const std::function<void(Json&)>& edit) {
  return weight([edit](Json& w) { edit(w["tensor_meta"]); });
}
inline Make shape(const Json& extents, const Json& strides) {
  return meta([extents, strides](Json& m) {
    m["sizes"] = extents;
    m["strides"] = strides;
  });
}

/// That weight has another record and another description.
inline Make stored(const std::string& data, const std::function<void(Json&)>& edit) {
  return [data, edit](ProgramFile& file) {
    file.record("data/weights/weight_0").data = data;
    return meta(edit)(file);
  };
}

inline Json& graph_of(Json& model) { return model["graph_module"]["graph"]; }
inline Json& node_of(Json& model, std::size_t i) { return graph_of(model)["nodes"][i]; }

/// Edits the first node of the program.
inline Make node(const std::function<void(Json&)>& edit) {
  return model([edit](Json& m) { edit(node_of(m, 0)); });
}

/// The first argument of the first node is something else.
inline Make argument(const Json& arg) {
  return node([arg](Json& n) { n["inputs"][0]["arg"] = arg; });
}

inline Json named(const char* name, Json arg) {
  return {{"name", name}, {"arg", std::move(arg)}, {"kind", 1}};
}
inline Json tensor(const char* name) { return {{"as_tensor", {{"name", name}}}}; }

/// The one node of "relu" calls something else.
inline Make call(const std::string& target, const Json& inputs) {
  return node([target, inputs](Json& n) {
    n["target"] = target;
    n["inputs"] = inputs;
  });
}

/// A size of "symbolic_sizes" is another expression.
inline Make expression(const std::string& text) {
  return model(
      [text](Json& m) { graph_of(m)["sym_int_values"]["mul"]["as_expr"]["expr_str"] = text; });
}

inline Make in_spec(const std::string& text) {
  return model([text](Json& m) {
    m["graph_module"]["module_call_graph"][0]["signature"]["in_spec"] = text;
  });
}

std::vector<MalformedCase> malformed_archives();       ///< Z, A, J
std::vector<MalformedCase> malformed_archives_more();  ///< the same, other damage
std::vector<MalformedCase> malformed_programs();       ///< T, G
std::vector<MalformedCase> malformed_programs_more();  ///< the same, other damage; X: sizes

}  // namespace fx::io::testing
