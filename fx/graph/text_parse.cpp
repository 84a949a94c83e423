#include <vector>

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/graph/namespace.h"
#include "fx/graph/text.h"
#include "fx/graph/text_literals.h"
#include "fx/graph/text_scanner.h"

namespace fx {
namespace {

using text::Scanner;

class GraphParser : Scanner::NodeResolver {
 public:
  GraphParser(std::string_view text, const ParseOptions& options)
      : scanner_(text), options_(options), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<Graph> parse() {
    parse_version();
    while (scanner_.next_line()) parse_line();
    // Calls are read last where their nodes may come later than their uses.
    for (const Call& call : postponed_) {
      scanner_.seek(call.line, call.line_start, call.position);
      parse_call(*call.node, call.is_return);
    }
    return graph_;
  }

 private:
  struct Call {
    Node* node;
    bool is_return;
    std::size_t line, line_start, position;
  };

  void parse_version() {
    if (!scanner_.next_line() || !scanner_.take(text::kMagic)) {
      scanner_.skip_blanks();
      scanner_.fail(ErrorCode::kParseVersion,
                    "wanted the version line 'fx 1' before everything else", scanner_.position());
    }
    scanner_.skip_blanks();
    const std::size_t from = scanner_.position();
    const Argument version = scanner_.at_end() ? Argument() : scanner_.value(nullptr);
    if (version.kind() != Argument::Kind::kInt || version.to_int() != text::kVersion)
      scanner_.fail(ErrorCode::kParseVersion,
                    "the text is of version " + argument_text(version) +
                        ", this library reads version " + std::to_string(text::kVersion),
                    from);
    expect_end();
  }

  void expect_end() {
    if (!scanner_.at_end()) scanner_.fail_wanted("the end of the line");
  }

  void parse_line() {
    if (scanner_.peek('%')) return parse_node();
    if (scanner_.peek('.')) return parse_meta();
    if (scanner_.identifier() == "return") return parse_return();
    scanner_.seek(scanner_.line_number(), scanner_.line_start(), scanner_.line_start());
    scanner_.skip_blanks();
    scanner_.fail_wanted("a node (%name = ...), 'return' or '.key = value'");
  }

  // Creates the node without arguments; `position` is that of its name.
  Node& make_node(Opcode op, Target target, std::string_view name, std::string_view type,
                  std::size_t position) {
    if (graph_->find_node(name))
      scanner_.fail(ErrorCode::kParseDuplicate,
                    "a node %" + std::string(name) + " is there already", position);
    if (is_reserved_name(name))
      scanner_.fail(ErrorCode::kParseSyntax,
                    str_repr(name) +
                        " is a reserved word of Python, wanted another name such as %" +
                        std::string(name) + "_1",
                    position);
    Node& node = graph_->create_node(op, target, {}, {}, name, type);
    FX_ASSERT(node.name() == name, "a free name was not taken as it is");
    return node;
  }

  void parse_node() {
    scanner_.take('%');
    const std::size_t name_position = scanner_.position();
    const std::string_view name = scanner_.identifier();
    if (name.empty()) scanner_.fail_wanted("the name of a node after '%'");
    std::string type;
    if (scanner_.take(':')) type = parse_type();
    scanner_.expect('=', "after the node's name");

    scanner_.skip_blanks();
    const std::size_t op_position = scanner_.position();
    const std::string_view op_name = scanner_.identifier();
    const std::optional<Opcode> op = opcode_from_name(op_name);
    if (!op)
      scanner_.fail(ErrorCode::kParseSyntax,
                    "wanted one of the opcodes placeholder, get_attr, call_function, call_method, "
                    "call_module, output",
                    op_position);
    scanner_.expect('[', "before the target");
    if (!scanner_.take("target")) scanner_.fail_wanted("target=");
    scanner_.expect('=', "after target");
    const Target target = parse_target(*op);
    scanner_.expect(']', "after the target");

    finish(make_node(*op, target, name, type, name_position), /*is_return=*/false);
  }

  // Reads the arguments now, or when all nodes are known.
  void finish(Node& node, bool is_return) {
    last_ = &node;
    if (options_.any_order)
      postponed_.push_back(
          {&node, is_return, scanner_.line_number(), scanner_.line_start(), scanner_.position()});
    else
      parse_call(node, is_return);
  }

  std::string parse_type() {
    if (scanner_.peek('\'') || scanner_.peek('"')) {
      std::string type = scanner_.quoted();
      take_num_users();
      return type;
    }
    scanner_.skip_blanks();
    const std::size_t from = scanner_.position();
    std::string_view type = scanner_.run(text::is_plain_type_char);
    constexpr std::string_view kUsers = "[num_users";
    if (type.ends_with(kUsers)) {
      type.remove_suffix(kUsers.size());
      scanner_.seek(scanner_.line_number(), scanner_.line_start(), from + type.size());
      take_num_users();
      if (type.empty()) return {};
    }
    while (type.ends_with(' ')) type.remove_suffix(1);
    if (!text::is_plain_type(type))
      scanner_.fail(ErrorCode::kParseSyntax,
                    "wanted a type such as Tensor or Dict[str, int]; any other text is quoted",
                    from);
    return std::string(type);
  }

  // torch.fx prints "[num_users=2]" before the "=".
  void take_num_users() {
    if (!scanner_.take("[num_users=")) return;
    scanner_.run([](char c) { return c >= '0' && c <= '9'; });
    scanner_.expect(']', "after num_users");
  }

  Target parse_target(Opcode op) {
    scanner_.skip_blanks();
    const std::size_t from = scanner_.position();
    std::string name;
    if (scanner_.peek('\'') || scanner_.peek('"')) {
      name = scanner_.quoted();
    } else {
      name = scanner_.run(text::is_plain_target_char);
      if (name.empty()) scanner_.fail_wanted("a target");
    }
    if (op != Opcode::kCallFunction) return Target::string(name);
    try {
      return Target::function(name);
    } catch (const GraphError& error) {
      scanner_.fail(ErrorCode::kParseTarget, error.text(), from);
    }
  }

  void parse_return() {
    const std::size_t position = scanner_.position() - std::string_view("return").size();
    finish(make_node(Opcode::kOutput, Target::string("output"), "output", {}, position),
           /*is_return=*/true);
  }

  // What follows the target: nothing, (default = v) or (args = (...), kwargs = {...}).
  void parse_call(Node& node, bool is_return) {
    current_ = &node;
    if (is_return) {
      node.set_args({scanner_.value(this)});
      return expect_end();
    }
    if (scanner_.at_end()) return;
    scanner_.expect('(', "before the arguments");
    if (scanner_.take("default")) {
      if (!node.is_placeholder())
        scanner_.fail(ErrorCode::kParseSyntax, "only a placeholder has a default",
                      scanner_.position() - std::string_view("default").size());
      scanner_.expect('=', "after default");
      node.set_args({scanner_.value(this)});
      scanner_.expect(')', "after the default");
      return expect_end();
    }
    if (!scanner_.take("args")) scanner_.fail_wanted("args = (...)");
    scanner_.expect('=', "after args");
    scanner_.expect('(', "before the positional arguments");
    Args args = scanner_.items(')', this, 0, nullptr);
    Kwargs kwargs;
    if (scanner_.take(',')) {
      if (!scanner_.take("kwargs")) scanner_.fail_wanted("kwargs = {...}");
      scanner_.expect('=', "after kwargs");
      kwargs = parse_kwargs();
    }
    scanner_.expect(')', "after the arguments");
    expect_end();
    node.set_args_kwargs(std::move(args), std::move(kwargs));
  }

  // A bare identifier or any quoted text.
  std::string parse_key(std::string_view what) {
    if (scanner_.peek('\'') || scanner_.peek('"')) return scanner_.quoted();
    const std::string_view key = scanner_.identifier();
    if (key.empty()) scanner_.fail_wanted(what);
    return std::string(key);
  }

  Kwargs parse_kwargs() {
    scanner_.expect('{', "before the keyword arguments");
    const std::size_t from = scanner_.position() - 1;
    Kwargs kwargs;
    while (!scanner_.take('}')) {
      const std::string key = parse_key("a keyword");
      scanner_.expect(':', "after the keyword");
      kwargs.emplace_back(key, scanner_.value(this));
      if (!scanner_.take(',') && !scanner_.peek('}')) scanner_.fail_wanted("',' or '}'");
    }
    try {
      current_->set_kwargs(kwargs);  // refuses a keyword that is given twice
    } catch (const GraphError& error) {
      scanner_.fail(ErrorCode::kParseSyntax, error.text(), from);
    }
    return kwargs;
  }

  // .key = literal: metadata of the node above.
  void parse_meta() {
    if (!last_)
      scanner_.fail(ErrorCode::kParseSyntax, "metadata stands below a node, there is none yet",
                    scanner_.position());
    scanner_.take('.');
    const std::string key = parse_key("the key of a meta entry");
    scanner_.expect('=', "after the key");
    const Argument value = scanner_.value(nullptr);
    expect_end();
    switch (value.kind()) {
      case Argument::Kind::kString:
        return last_->meta().set(key, value.to_string());
      case Argument::Kind::kBool:
        return last_->meta().set(key, value.to_bool());
      case Argument::Kind::kInt:
        return last_->meta().set(key, value.to_int());
      case Argument::Kind::kFloat:
        return last_->meta().set(key, value.to_double());
      default:
        return last_->meta().set(key, value);
    }
  }

  Node& resolve(std::string_view name) override {
    Node* found = graph_->find_node(name);
    if (found && (options_.any_order || found != current_)) return *found;
    scanner_.fail(ErrorCode::kParseUnknownNode,
                  "no node %" + std::string(name) + " is defined " +
                      (options_.any_order ? "in this text" : "above this line"),
                  scanner_.position());
  }

  Scanner scanner_;
  ParseOptions options_;
  std::shared_ptr<Graph> graph_;
  std::vector<Call> postponed_;
  Node* last_ = nullptr;     // of the line before, for meta lines
  Node* current_ = nullptr;  // whose arguments are being read
};

}  // namespace

std::shared_ptr<Graph> parse_text(std::string_view text, const ParseOptions& options) {
  return GraphParser(text, options).parse();
}

Argument parse_argument(std::string_view text, const Graph* graph) {
  struct Lookup : Scanner::NodeResolver {
    Lookup(Scanner& s, const Graph* g) : scanner(s), graph(g) {}
    Node& resolve(std::string_view name) override {
      if (Node* found = graph->find_node(name)) return *found;
      scanner.fail(ErrorCode::kParseUnknownNode, "the graph has no node %" + std::string(name),
                   scanner.position());
    }
    Scanner& scanner;
    const Graph* graph;
  };
  Scanner scanner(text);
  if (!scanner.next_line()) scanner.fail_wanted("a value");
  Lookup lookup(scanner, graph);
  Argument read = scanner.value(graph ? &lookup : nullptr);
  if (!scanner.at_end() || scanner.next_line()) scanner.fail_wanted("the end of the text");
  return read;
}

}  // namespace fx
