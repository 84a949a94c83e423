// Z, A, J: damage beside that of malformed_archives.cpp.

#include "tests/io/malformed.h"

namespace fx::io::testing {

using namespace std::string_literals;
using enum MalformedCase::Wanted;

namespace {

constexpr const char* kConstants = "data/constants/model_constants_config.json";

/// A record inside the contents of another, with an entry of its own.
std::string nested_record(ProgramFile& file) {
  TestArchive inner;
  inner.records.push_back({});
  inner.records[0].name = file.root() + "/data/hidden";
  inner.records[0].data = "hidden";
  const std::string whole = inner.build();
  TestArchive outer;
  outer.records = file.records();
  TestRecord& host = outer.records[0];
  host.name = file.root() + "/data/host";
  host.data = whole.substr(0, whole.find("PK\x01\x02"));
  const std::uint64_t header = 30 + host.name.size();
  TestRecord guest = inner.records[0];
  guest.in_directory_only = true;
  guest.header_offset = header;
  outer.records.push_back(guest);
  return outer.build();
}

/// Sixteen bits of the last entry of the directory.
Make central(std::size_t offset, std::uint16_t value) {
  return bytes([=](std::string s) {
    const std::size_t entry = s.rfind("PK\x01\x02");
    s[entry + offset] = static_cast<char>(value);
    s[entry + offset + 1] = static_cast<char>(value >> 8);
    return s;
  });
}

Make constant(const std::function<void(Json&)>& edit) {
  return json(kConstants, [edit](Json& config) { edit(config["config"].begin().value()); });
}

}  // namespace

std::vector<MalformedCase> malformed_archives_more() {
  const std::string b = "buffers", r = "relu";
  const auto schema = ErrorCode::kBadSchema, syntax = ErrorCode::kBadJson;
  const auto nested = [](const char* open, const char* close, int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  return {
      {"Z02", b, bytes([](std::string) { return "PK\x05\x06"s + std::string(17, '\0'); }), kRefused,
       kCorrupt, "21 bytes"},
      {"Z05", b, bytes([](std::string s) { return s.substr(0, s.size() - 1); }), kRefused, kCorrupt,
       "end record is missing"},
      {"Z08", b, container([](TestArchive& a) { a.count = a.records.size() - 1; }), kRefused,
       kCorrupt, "follow its last directory entry"},
      {"Z11", b, container([](TestArchive& a) { a.count = 0xFFFF; }), kRefused, kCorrupt,
       "zip64 locator that is not there"},
      {"Z14", b, container([](TestArchive& a) {
         a.zip64_end = true;
         a.count = std::uint64_t{1} << 60;
       }),
       kRefused, kCorrupt, "cannot fit"},
      {"Z17", b, record(kWeight, [](TestRecord& x) { x.local_name = "buffers/other"; }), kRefused,
       kUnsafe, "has another name"},
      {"Z20", b, bytes([](std::string s) {
         s[28] = s[29] = '\xff';
         return s;
       }),
       kRefused, kCorrupt, "runs past the end of the records"},
      {"Z22", b, nested_record, kRefused, kUnsafe, "overlaps another record"},
      {"Z27", b, named_last("/etc/passwd"), kRefused, kUnsafe, "has an empty"},
      {"Z27b", b, named_last("buffers/..\\..\\evil"), kRefused, kUnsafe, "a backslash"},
      {"Z27c", b, named_last("buffers/./models/model.json"), kRefused, kUnsafe, "\".\""},
      {"Z30", b, named_last("buffers/caf\x82"), kRefused, kUnsafe, "not UTF-8"},
      {"Z30b", b, named_last("buffers/\x1b]0;owned\x07"), kRefused, kUnsafe, "\\x1b]0;owned\\x07"},
      {"Z33", b, named_last("other/x"), kRefused, kUnsafe, "one root folder"},
      {"Z36", b,
       record(kWeight,
              [](TestRecord& x) {
                x.crc = x.local_crc = 77;
                x.data[0] = static_cast<char>(x.data[0] ^ 1);
              }),
       kRefused, ErrorCode::kChecksum, "weight_0", true},
      {"Z39", b, container([](TestArchive& a) { a.gap = std::string(100, 'j'); }), kRefused,
       kUnsafe, "before the directory belong to no record"},
      {"Z42", b, bytes([](std::string s) {
         s[s.size() - 2] = 10;
         return s;
       }),
       kRefused, kCorrupt, "a comment of 10 bytes, which is missing"},
      {"Z45", b, record(kWeight, [](TestRecord& x) { x.attributes = 0120777u << 16; }), kRefused,
       kUnsafe, "marked as a link"},
      {"Z48", b,
       record(kWeight,
              [](TestRecord& x) {
                x.descriptor = true;
                x.crc = 77;
                x.size = 15;
              }),
       kRefused, kCorrupt, "no data descriptor"},
      {"Z48b", b, record(kWeight, [](TestRecord& x) { x.local_crc = 77; }), kRefused, kUnsafe,
       "contradicts the directory on size or checksum"},
      {"Z51", b,
       record(kWeight,
              [](TestRecord& x) {
                x.size = x.stored = 0xFFFFFFFF;
                x.central_extra = "\x01\x00\xff\x00"s;
              }),
       kRefused, kCorrupt, "lacks its zip64 sizes"},
      {"Z54", b, bytes([](std::string s) { return "\x1f\x8b"s + s.substr(0, 100); }), kRefused,
       kForeign, "a gzip file"},
      {"Z56", b, central(8, 0x2000), kRefused, kUnsafe, "unknown features"},
      {"Z57", b, central(34, 3), kRefused, kCorrupt, "lies on another disk"},
      {"Z58", b, container([](TestArchive& a) { a.directory_size = 0; }), kRefused, kCorrupt,
       "does not end where"},

      {"A02", b, contents("archive_format", "tar"), kRefused, kVersion, "archive format 'tar'"},
      {"A05", b, contents("archive_version", ""), kRefused, kVersion, "archive version ''"},
      {"A08", b, contents(".data/version", "11"), kRefused, kVersion, "container version '11'"},
      {"A11", b, removed(kConfig), kRefused, kMissing, "model_weights_config.json"},
      {"A11b", b, removed(kConstants), kRefused, kMissing, "model_constants_config.json"},
      {"A14", b, weight([](Json& w) { w["path_name"] = ""; }), kRefused, schema, "path_name"},
      {"A17", b, constant([](Json& c) { c["path_name"] = "opaque_obj_0"; }), kRefused,
       ErrorCode::kUnsupported, "custom object"},
      {"A17b", b, constant([](Json& c) { c["use_pickle"] = true; }), kRefused,
       ErrorCode::kPickledWeight, "never opened"},
      {"A17c", b, with_record("data/constants/opaque_obj_0", kPickle), kAccepted, {}, {}},
      {"A20", b, weight([](Json& w) { w["tensor_meta"] = nullptr; }), kRefused,
       ErrorCode::kBadWeight, "it has no tensor_meta"},
      {"A23", b, renamed(kModel, "buffers/models/a b.json"), kRefused, kUnsafe, "no model name"},
      {"A24", b, contents("archive_format", "pt2" + std::string(100'000, 'x')), kRefused, kVersion,
       "archive format"},

      {"J01", r, contents(kModel, "{\"graph_module\": "), kRefused, syntax, "not valid JSON"},
      {"J04", r, contents(kModel, nested("{\"a\":", "}", 101)), kRefused, syntax,
       "nested more than 100 deep"},
      {"J04b", r, contents(kModel, nested("{\"a\":", "}", 100)), kRefused, schema, "is missing"},
      {"J07", r, argument({{"as_float", "nan"}}), kRefused, schema, "a number is wanted"},
      {"J10", r, record(kModel, [](TestRecord& x) { x.data = "\xef\xbb\xbf" + x.data; }),
       kBothAreFine, syntax, ""},
      {"J13", r, replaced(kModel, "\"name\": \"relu\"", "\"name\": \"re\nlu\""), kRefused, syntax,
       "not valid JSON"},
      {"J13b", r, replaced(kModel, "\"name\": \"relu\"", "\"name\": \"re\\u0000lu\""), kRefused,
       schema, "control characters"},
      {"J16", r, argument({{"as_int", 1}, {"as_bool", true}}), kRefused, schema, "2 keys found"},
      {"J19", r, model([](Json& m) { graph_of(m)["nodes"] = Json::object(); }), kRefused, schema,
       "graph_module.graph.nodes: an object found"},
      {"J22", r, model([](Json& m) { m.erase("schema_version"); }), kRefused, schema,
       "the key 'schema_version' is missing"},
      {"J25", r, replaced(kModel, "\"kind\": 1", "\"kind\": 123456789012345678901234567890"),
       kRefused, syntax, "not valid JSON"},
      {"J26", r, argument({{"as_tensor", {{"name", std::string(1001, 'n')}}}}), kRefused, schema,
       "a name of 1001 bytes"},
      {"J27", r, model([](Json& m) { m["range_constraints"]["s0"] = nullptr; }), kRefused, schema,
       "range_constraints"},
      {"J28", b, contents(kConfig, nested("[", "]", 200)), kRefused, syntax,
       "nested more than 100 deep"},
  };
}

}  // namespace fx::io::testing
