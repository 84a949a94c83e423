#include "fx/io/value_meta.h"

#include "fx/base/error.h"
#include "fx/base/text.h"
#include "fx/io/shown.h"
#include "fx/io/weights.h"
#include "fx/ops/value.h"

namespace fx::io {

std::string ValueMeta::str() const {
  switch (kind) {
    case Kind::kInt:
    case Kind::kBool:
      return "Sym(" + number.str() + ")";
    case Kind::kFloat:
      return "SymFloat(" + (number.expr ? number.expr->str() : float_repr(real)) + ")";
    case Kind::kTensor:
      break;
  }
  std::string text(short_dtype_name(dtype));
  text += '[';
  for (std::size_t i = 0; i < sizes.size(); ++i) text += (i > 0 ? ", " : "") + sizes[i].str();
  text += ']';
  return text;
}

std::shared_ptr<const SymbolicExpr> ValueMetaReader::expr(const std::string& text,
                                                          const std::string& name) {
  auto& slot = exprs_[text];
  if (!slot)
    slot = std::make_shared<const SymbolicExpr>(
        parse_symbolic_expr(text, label_ + ": value " + shown(name)));
  return slot;
}

SymDim ValueMetaReader::dim(const schema::SymInt& number, const std::string& name) {
  if (number.is_known()) return {number.value, nullptr};
  SymDim dim{-1, expr(number.expr->text, name)};
  if (number.expr->hint)
    if (const auto* hint = std::get_if<std::int64_t>(&*number.expr->hint)) dim.value = *hint;
  return dim;
}

ValueMetaPtr ValueMetaReader::read(const schema::TensorMeta& meta, const std::string& name) {
  auto result = std::make_shared<ValueMeta>();
  const std::string label = label_ + ": value " + shown(name);
  if (meta.sizes.size() != meta.strides.size())
    throw ImportError(ErrorCode::kBadProgram, label + " has " + std::to_string(meta.sizes.size()) +
                                                  " sizes and " +
                                                  std::to_string(meta.strides.size()) + " strides");
  result->dtype = to_scalar_type(meta.dtype);
  for (const schema::SymInt& size : meta.sizes) {
    if (size.is_known() && size.value < 0)
      throw ImportError(ErrorCode::kBadProgram, label + " has a negative size");
    result->sizes.push_back(dim(size, name));
  }
  for (const schema::SymInt& stride : meta.strides) result->strides.push_back(dim(stride, name));
  result->storage_offset = dim(meta.storage_offset, name);
  result->device = to_device(meta.device, label);
  result->requires_grad = meta.requires_grad;
  return result;
}

ValueMetaPtr ValueMetaReader::read(const schema::SymInt& number, const std::string& name) {
  auto result = std::make_shared<ValueMeta>();
  result->kind = ValueMeta::Kind::kInt;
  result->number = dim(number, name);
  return result;
}

ValueMetaPtr ValueMetaReader::read(const schema::SymBool& number, const std::string& name) {
  auto result = std::make_shared<ValueMeta>();
  result->kind = ValueMeta::Kind::kBool;
  if (number.is_known())
    result->number.value = number.value ? 1 : 0;
  else
    result->number.expr = expr(number.expr->text, name);
  return result;
}

ValueMetaPtr ValueMetaReader::read(const schema::SymFloat& number, const std::string& name) {
  auto result = std::make_shared<ValueMeta>();
  result->kind = ValueMeta::Kind::kFloat;
  result->real = number.value;
  if (number.is_known()) return result;
  result->number.expr = expr(number.expr->text, name);
  if (number.expr->hint)
    if (const auto* hint = std::get_if<double>(&*number.expr->hint)) result->real = *hint;
  return result;
}

}  // namespace fx::io
