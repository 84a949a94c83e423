#include "tests/compile/random_args.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace fx::loops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const std::set<std::string>& norm_operators() {
  static const std::set<std::string> names = {
      "layer_norm",    "native_layer_norm",
      "rms_norm",      "_fused_rms_norm",
      "batch_norm",    "native_batch_norm",
      "group_norm",    "native_group_norm",
      "instance_norm", "_native_batch_norm_legit_no_training"};
  return names;
}

bool sums_squares(const std::string& op) {
  return norm_operators().contains(op) || op.starts_with("var") || op.starts_with("std") ||
         op.find("norm") != std::string::npos || op == "cosine_similarity";
}

/// Of any kind.
bool is_pool1d(const std::string& op) { return op.find("pool1d") != std::string::npos; }
bool is_pool2d(const std::string& op) { return op.find("pool2d") != std::string::npos; }
bool is_upsample(const std::string& op) { return op.find("upsample_") != std::string::npos; }

}  // namespace

c10::ScalarType ArgMaker::dtype() {
  return pick({at::kFloat, at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt,
               at::kShort, at::kChar, at::kByte, at::kBool});
}

ArgMaker::Sizes ArgMaker::large_sizes() {
  const std::int64_t n = elements_;
  const auto square = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n) / 32));
  if (is_upsample(op_))
    return op_.ends_with("1d")
               ? pick<Sizes>({{4, 8, n / 64}, {8, n / 1024, 64}})
               : pick<Sizes>({{2, 16, square / 2, square / 2}, {1, 32, square, square / 4}});
  if (is_pool1d(op_)) return pick<Sizes>({{4, 8, n / 32}, {8, n / 8}, {8, n / 512, 64}});
  if (is_pool2d(op_)) return pick<Sizes>({{2, 16, square, square}, {32, square, square}});
  if (norm_operators().contains(op_))
    return pick<Sizes>({{n / 512, 512}, {8, n / 2048, 256}, {2, 16, square, square}});
  return pick<Sizes>({{n},
                      {n / 256, 256},
                      {n / 250, 250},
                      {64, n / 64},
                      {8, n / 512, 64},
                      {4, 8, square, square}});
}

ArgMaker::Sizes ArgMaker::base_sizes() {
  if (elements_ > 0) return large_sizes();
  if (op_.starts_with("adaptive") || op_.starts_with("_adaptive"))
    return op_.ends_with("1d")
               ? pick<Sizes>({{2, 12}, {2, 3, 7}, {1, 1, 4}, {2, 1, 40}})
               : pick<Sizes>({{3, 6, 4}, {2, 3, 6, 8}, {1, 1, 4, 4}, {2, 1, 5, 40}});
  if (is_upsample(op_))
    return op_.ends_with("1d")
               ? pick<Sizes>({{2, 3, 7}, {1, 1, 4}, {2, 1, 40}, {2, 3, 1}, {2, 0, 3}})
               : pick<Sizes>({{2, 3, 7, 8}, {1, 1, 4, 4}, {2, 1, 5, 40}, {2, 3, 1, 1}});
  if (is_pool1d(op_)) return pick<Sizes>({{3, 9}, {2, 3, 7}, {1, 1, 4}, {2, 1, 40}});
  if (is_pool2d(op_)) return pick<Sizes>({{3, 9, 7}, {2, 3, 7, 8}, {1, 1, 4, 4}, {2, 1, 5, 40}});
  if (norm_operators().contains(op_))
    return pick<Sizes>({{3, 4, 5}, {2, 6}, {2, 4, 3, 5}, {1, 4, 7}, {3, 2, 1}, {2, 4, 1, 1}});
  return pick<Sizes>({{},
                      {1},
                      {5},
                      {0},
                      {33},
                      {2, 3},
                      {1, 7},
                      {3, 1, 4},
                      {2, 0, 3},
                      {2, 3, 4},
                      {1, 1},
                      {4, 1, 1, 3},
                      {70}});
}

ArgMaker::Sizes ArgMaker::part_of_sizes() {
  if (chance(0.5)) return sizes_;
  Sizes out(sizes_.begin() + below(static_cast<std::int64_t>(sizes_.size()) + 1), sizes_.end());
  for (std::int64_t& size : out)
    if (chance(0.3)) size = 1;
  return out;
}

at::Tensor ArgMaker::value_of_type(c10::ScalarType type, const Sizes& sizes) {
  std::int64_t count = 1;
  for (std::int64_t size : sizes) count *= size;
  if (c10::isFloatingType(type)) {
    if (elements_ > 0 && count > 64) {
      const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(choices_.bits());
      return at::randn(sizes, generator, at::kDouble).to(type);
    }
    double infinity = kInf;
    double max = type == at::kHalf     ? 65504.0
                 : type == at::kDouble ? std::numeric_limits<double>::max()
                                       : 3.3895313892515355e+38;
    double tiny = type == at::kHalf ? 6e-8 : type == at::kDouble ? 5e-324 : 1e-39;
    // Where squares are summed, who overflows first is nobody's promise, and the mean with an
    // infinity is one or NaN as the order of the elements has it.
    if (sums_squares(op_)) {
      infinity = 500;
      max = 1000;
      tiny = 1e-3;
    }
    // And of sums, whether there is an overflow on the way to an infinity of the other sign.
    if (op_ == "sum" || op_ == "nansum" || op_ == "mean") max = 1000;
    // ATen's vector code takes those for 0 in log1p, its other code does not.
    if (op_ == "special_xlog1py") tiny = 1e-3;
    const std::array<double, 20> special = {kNan, infinity, -infinity, 0.0,    -0.0, max,  -max,
                                            tiny, -tiny,    1.0,       -1.0,   0.5,  -0.5, 2.5,
                                            -1.5, 3.0,      100.0,     -100.0, 1e-3, 10.0};
    std::vector<double> values;
    const double deviation = chance(0.5) ? 1 : 4;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(!tame_ && chance(0.3)
                           ? special[static_cast<std::size_t>(below(special.size()))]
                           : normal(deviation));
    return at::tensor(values, at::kDouble).to(type).reshape(sizes);
  }
  if (elements_ > 0 && count > 64) {
    const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(choices_.bits());
    return at::randint(type == at::kBool ? 0 : 1, type == at::kBool ? 2 : 10, sizes, generator,
                       at::kLong)
        .to(type);
  }
  std::vector<std::int64_t> values;
  std::int64_t low = 0;
  std::int64_t high = 1;
  switch (type) {
    case at::kByte:
      high = 255;
      break;
    case at::kChar:
      low = -128, high = 127;
      break;
    case at::kShort:
      low = -32768, high = 32767;
      break;
    case at::kInt:
      low = std::numeric_limits<std::int32_t>::min(),
      high = std::numeric_limits<std::int32_t>::max();
      break;
    case at::kLong:
      low = std::numeric_limits<std::int64_t>::min(),
      high = std::numeric_limits<std::int64_t>::max();
      break;
    default:
      break;
  }
  if (no_lowest_) low = type == at::kByte || type == at::kBool ? 0 : -high;
  const bool positive = op_ == "prod" || chance(0.3);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t small = positive ? 1 + below(9) : below(19) - 9;
    values.push_back(!tame_ && chance(0.2) ? pick({low, high, std::int64_t{-1}}) : small);
  }
  if (type == at::kBool)
    for (std::int64_t& value : values) value = below(2);
  return at::tensor(values, at::kLong).to(type).reshape(sizes);
}

at::Tensor ArgMaker::tensor(c10::ScalarType type, const Sizes& sizes) {
  return value_of_type(type, sizes);
}

c10::IValue ArgMaker::number(bool floats) {
  if (tame_)
    return floats && chance(0.6) ? c10::IValue(pick({0.5, 1.25, 2.0, -1.5, 0.1, 3.0}))
                                 : c10::IValue(pick<std::int64_t>({1, 2, 3, -1, 5}));
  if (floats && chance(0.5))
    return pick({0.0, -0.0, 0.5, 1.0, 2.5, -1.5, 0.1, 3.0, -0.5, -2.0, kNan, kInf, -kInf, 1e-3,
                 1e10, 1e300});
  if (chance(0.15)) return chance(0.5);
  return pick<std::int64_t>({0, 1, 2, -1, 3, 5, 127, 300, -128, 40, -2, 1LL << 40});
}

c10::IValue ArgMaker::dim_list() {
  const std::int64_t rank = first_.dim();
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 0; d < rank; ++d)
    if (chance(0.5)) dims.push_back(chance(0.5) ? d : d - rank);
  if (rank == 0 && chance(0.5)) dims.push_back(pick<std::int64_t>({0, -1}));
  if (chance(0.05)) dims.push_back(pick<std::int64_t>({0, 9, -1}));
  shuffle(dims);
  return dims;
}

c10::IValue ArgMaker::new_sizes(const std::string& op) {
  Sizes sizes = first_.sizes().vec();
  if (op == "expand" || op == "broadcast_to") {
    for (std::int64_t& size : sizes) {
      if (size == 1 && chance(0.5))
        size = pick<std::int64_t>({0, 2, 5});
      else if (chance(0.3))
        size = -1;
    }
    while (chance(0.3)) sizes.insert(sizes.begin(), pick<std::int64_t>({1, 2, 3}));
    return sizes;
  }
  std::erase_if(sizes, [&](std::int64_t size) { return size == 1 && chance(0.7); });
  while (chance(0.4))
    sizes.insert(sizes.begin() + below(static_cast<std::int64_t>(sizes.size()) + 1), 1);
  if (!sizes.empty() && chance(0.3))
    sizes[static_cast<std::size_t>(below(static_cast<std::int64_t>(sizes.size())))] = -1;
  return sizes;
}

at::Tensor ArgMaker::probabilities(c10::ScalarType type, const Sizes& sizes) {
  at::Tensor out = value_of_type(at::kDouble, sizes).sigmoid();
  return out.masked_fill(out.isnan(), 0.25).to(type);
}

ArgMaker::Sizes ArgMaker::parameter_sizes() const {
  if (op_.find("layer_norm") != std::string::npos || op_.find("rms_norm") != std::string::npos) {
    const auto all = first_.sizes().vec();
    return Sizes(all.end() - normalized_, all.end());
  }
  return {first_.size(1)};
}

at::Tensor ArgMaker::tensor_argument(const ArgRule& rule) {
  if (rule.name == "indices" && op_ == "embedding") return indices(first_.size(0), sizes_);
  if (rule.name == "index") {
    const std::int64_t dim = dim_ < 0 ? dim_ + first_.dim() : dim_;
    const std::int64_t size = dim < first_.dim() && dim >= 0 ? first_.size(dim) : 1;
    if (op_ == "index_select") return indices(size, {elements_ > 0 ? size : below(6)});
    if (op_ == "index_add" || op_ == "index_copy") {
      index_sizes_ = first_.sizes().vec();
      const std::int64_t count = elements_ > 0 ? size : 1 + below(6);
      if (dim < first_.dim() && dim >= 0) index_sizes_[static_cast<std::size_t>(dim)] = count;
      return indices(size, {count});
    }
    Sizes sizes = first_.sizes().vec();
    for (std::int64_t d = 0; d < first_.dim(); ++d)
      if (elements_ == 0 && chance(0.4))
        sizes[static_cast<std::size_t>(d)] =
            d == dim ? 4 : std::min<std::int64_t>(2, sizes[static_cast<std::size_t>(d)]);
    index_sizes_ = sizes;
    return indices(size, sizes);
  }
  // Of a scatter.
  if (rule.name == "src") {
    for (std::int64_t& s : index_sizes_) s += chance(0.1) ? 1 : 0;
    return value_of_type(chance(0.95) ? first_.scalar_type() : dtype(), index_sizes_);
  }
  if (rule.name == "source")
    return value_of_type(chance(0.95) ? first_.scalar_type() : dtype(), index_sizes_);
  if (rule.name == "values")
    return value_of_type(chance(0.95) ? first_.scalar_type() : dtype(),
                         chance(0.2) ? Sizes{} : index_sizes_);
  if (op_ == "embedding" && !first_.defined()) {
    first_ = elements_ > 0 ? value_of_type(type_, {elements_ / 64, 64})
                           : value_of_type(type_, {7, pick<std::int64_t>({1, 5, 33})});
    return first_;
  }
  if (!first_.defined()) {
    c10::ScalarType type = type_;
    if (rule.name == "condition") type = chance(0.9) ? at::kBool : dtype();
    if (op_ == "binary_cross_entropy" && chance(0.9)) {
      first_ = probabilities(type, sizes_);
      return first_;
    }
    first_ = value_of_type(
        type, rule.name == "input" || rule.name == "x1" || !chance(0.3) ? sizes_ : part_of_sizes());
    return first_;
  }
  if (norm_operators().contains(op_)) {
    const c10::ScalarType type =
        c10::isReducedFloatingType(type_) && chance(0.3) ? at::kFloat : type_;
    // A large weight enlarges what rounding leaves of a value near the mean.
    const bool tame = std::exchange(tame_, true);
    const at::Tensor value = value_of_type(type, parameter_sizes());
    tame_ = tame;
    return rule.name == "running_var" ? value.abs() : value;
  }
  if (rule.name == "mask")
    return value_of_type(chance(0.95) ? at::kBool : dtype(), part_of_sizes());
  if (rule.name == "value") return value_of_type(chance(0.6) ? type_ : dtype(), {});
  const bool alike = op_.find("loss") != std::string::npos || op_.starts_with("binary_cross") ||
                     op_ == "heaviside" || op_ == "prelu" || op_ == "lerp";
  const c10::ScalarType type = chance(alike ? 0.95 : 0.6) ? type_ : dtype();
  if (op_ == "prelu" && chance(0.7))
    return value_of_type(type, {first_.dim() > 1 && chance(0.6) ? first_.size(1) : 1});
  if (op_.starts_with("binary_cross") && chance(0.7))
    return rule.name == "target" ? probabilities(type, sizes_) : value_of_type(type, sizes_);
  if (op_ == "expand_as") {
    Sizes sizes = first_.sizes().vec();
    for (std::int64_t& size : sizes)
      if (size == 1 && chance(0.5)) size = 4;
    return value_of_type(type, sizes);
  }
  return value_of_type(type, part_of_sizes());
}

// Most of them in range.
at::Tensor ArgMaker::indices(std::int64_t size, const Sizes& sizes) {
  std::int64_t count = 1;
  for (std::int64_t s : sizes) count *= s;
  const std::int64_t low = chance(0.2) ? -size : 0;
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(low + below(std::max<std::int64_t>(size - low, 1)));
  if (count > 0 && chance(0.05)) values[0] = size;
  return at::tensor(values, at::kLong).to(chance(0.7) ? at::kLong : at::kInt).reshape(sizes);
}

c10::IValue ArgMaker::tensor_list(bool optional) {
  if (optional) {
    // Indices: none, then one or two that broadcast.
    c10::List<std::optional<at::Tensor>> out;
    const std::int64_t rank = first_.dim();
    const std::int64_t before = rank > 0 ? below(rank) : 0;
    for (std::int64_t d = 0; d < before; ++d) out.push_back(std::nullopt);
    const Sizes sizes =
        elements_ > 0 ? Sizes{first_.size(before)} : pick<Sizes>({{3}, {2, 4}, {1}, {}, {17}});
    const std::int64_t end = std::min(rank, before + 1 + below(2));
    for (std::int64_t d = before; d < end; ++d) out.push_back(indices(first_.size(d), sizes));
    index_sizes_ = first_.sizes().vec();
    index_sizes_.erase(index_sizes_.begin() + before, index_sizes_.begin() + end);
    index_sizes_.insert(index_sizes_.begin() + before, sizes.begin(), sizes.end());
    return out;
  }
  std::vector<at::Tensor> out;
  const std::int64_t count = 1 + below(4);
  const auto rank = static_cast<std::int64_t>(sizes_.size());
  dim_ = rank > 0 ? below(rank) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Sizes sizes = sizes_;
    if (op_ != "stack" && rank > 0 && chance(0.7))
      sizes[static_cast<std::size_t>(dim_)] = elements_ > 0 ? sizes_[static_cast<std::size_t>(dim_)]
                                                            : pick<std::int64_t>({1, 2, 3, 19});
    out.push_back(value_of_type(chance(0.9) ? type_ : dtype(), sizes));
  }
  first_ = out[0];
  if (chance(0.3)) dim_ -= rank;
  return out;
}

c10::IValue ArgMaker::of_index(const std::string& name, Conversion conversion) {
  const std::int64_t rank = first_.defined() ? first_.dim() : 0;
  const std::int64_t dim = dim_ < 0 ? dim_ + rank : dim_;
  const std::int64_t size = dim < rank && dim >= 0 ? first_.size(dim) : 1;
  const auto anywhere = [&] { return below(2 * size + 3) - size - 1; };
  const auto positive = [&](std::int64_t most) {
    return chance(0.05) ? 0 : 1 + below(std::max<std::int64_t>(most, 1));
  };
  if (name == "start") return anywhere();
  if (name == "end") return chance(0.3) ? std::numeric_limits<std::int64_t>::max() : anywhere();
  if (name == "step") return positive(3);
  if (name == "length") return below(size + 1);
  if (name == "chunks") return positive(4);
  if (name == "split_size" && conversion == Conversion::kInt) return positive(size);
  if (name == "split_size" || name == "split_sizes") {
    Sizes out;
    for (std::int64_t left = size; left > 0 || out.empty(); left -= out.back())
      out.push_back(left > 0 ? 1 + below(left) : 0);
    return out;
  }
  if (name == "index" && conversion == Conversion::kInt) return anywhere();
  if (name == "offset" || name == "diagonal") return below(7) - 3;
  if (name == "shifts") {
    Sizes out;
    for (std::int64_t d = 0; d < rank; ++d) out.push_back(below(7) - 3);
    return out;
  }
  if (name == "pad") {
    Sizes out;
    for (std::int64_t d = 0; d < 2 * below(rank + 1); ++d) out.push_back(below(5) - 1);
    if (out.size() % 2 != 0) out.push_back(1);
    return out;
  }
  if (name == "mode") return "constant";
  if (name == "dimension") {
    dim_ = below(std::max<std::int64_t>(2 * rank, 1)) - rank;
    return dim_;
  }
  if (name == "size" && op_ == "unfold") return positive(size);
  if (name == "sizes" && op_ == "unflatten") {
    const std::int64_t first = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : 1;
    return chance(0.4) ? Sizes{first, -1} : Sizes{size / std::max<std::int64_t>(first, 1), first};
  }
  return {};
}

c10::IValue ArgMaker::of_upsample(const std::string& name, bool& known) {
  const std::size_t count = op_.ends_with("1d") ? 1 : 2;
  if (name == "output_size") {
    factor_ = pick({1.0, 2.0, 2.0, 2.0, 4.0, 1.5, 3.0});
    Sizes out;
    for (std::size_t d = 0; d < count; ++d)
      out.push_back(static_cast<std::int64_t>(
          static_cast<double>(sizes_[sizes_.size() - count + d]) * factor_));
    return by_scales_ ? c10::IValue() : c10::IValue(out);
  }
  if (name == "scale_factors")
    return by_scales_ ? c10::IValue(std::vector<double>(count, factor_)) : c10::IValue();
  known = name.starts_with("scales");
  if (known && chance(0.5)) return chance(0.9) ? factor_ : 1.75;
  return {};
}

c10::IValue ArgMaker::named(const std::string& name, Conversion conversion, bool& known) {
  known = true;
  if (is_upsample(op_))
    if (c10::IValue value = of_upsample(name, known); known) return value;
  known = true;
  if (c10::IValue value = of_index(name, conversion); !value.isNone()) return value;
  const std::int64_t rank = first_.defined() ? first_.dim() : 0;
  const auto one_dim = [&]() {
    if (chance(0.03)) return std::int64_t{7};
    if (op_ == "cat" || op_.starts_with("concat")) return dim_;
    const std::int64_t count = std::max<std::int64_t>(rank, 1);
    dim_ = below(2 * count) - count;
    return dim_;
  };
  if (is_pool1d(op_) || is_pool2d(op_)) {
    const std::size_t count = is_pool1d(op_) || chance(0.3) ? 1 : 2;
    const auto each = [&](std::initializer_list<std::int64_t> values) {
      Sizes out;
      for (std::size_t d = 0; d < count; ++d) out.push_back(pick(values));
      return out;
    };
    if (name == "output_size") {
      Sizes out;
      for (std::size_t d = 0; d < (is_pool1d(op_) ? 1u : 2u); ++d) {
        const std::int64_t size = sizes_[sizes_.size() - (is_pool1d(op_) ? 1u : 2u) + d];
        out.push_back(chance(0.2)                    ? 3
                      : size % 4 == 0 && chance(0.5) ? size / 4
                      : size % 2 == 0                ? size / 2
                                                     : 1);
      }
      return chance(0.3) ? Sizes(out.size(), 1) : out;
    }
    if (name == "kernel_size") return each({1, 2, 2, 3, 3, 4});
    if (name == "stride") return chance(0.3) ? Sizes{} : each({1, 2, 2, 3});
    if (name == "padding") return chance(0.5) ? Sizes{0} : each({0, 1});
    if (name == "dilation") return chance(0.7) ? Sizes{1} : each({1, 2});
    if (name == "ceil_mode") return chance(0.1);
    if (name == "count_include_pad") return chance(0.8);
    if (name == "divisor_override") return pick<c10::IValue>({c10::IValue(), 1, 3, -2});
  }
  if (name == "reduce" && op_ == "scatter") return pick<c10::IValue>({"add", "multiply"});
  if (name == "reduce") return pick<c10::IValue>({"sum", "prod", "mean", "amax", "amin"});
  if (name == "include_self") return chance(0.9);
  if (name == "alpha" && op_ == "index_add" && chance(0.9)) return 1;
  if (name == "alpha" || (name == "value" && conversion == Conversion::kScalar &&
                          op_ != "masked_fill" && op_ != "threshold"))
    return op_ == "elu" || op_ == "celu" ? c10::IValue(pick({1.0, 0.5, 2.0}))
                                         : pick<c10::IValue>({1, 1, 2, -1, 0.5, 2.5, 3});
  if (name == "rounding_mode") return pick<c10::IValue>({c10::IValue(), "trunc", "floor"});
  if (name == "decimals") return pick<std::int64_t>({0, 1, 2, -1, 3});
  if (name == "eps" && conversion == Conversion::kFloat)
    return op_.find("logit") != std::string::npos ? pick({1e-3, 0.1, 1e-6}) : pick({1e-5, 1e-3});
  if (name == "dim" && conversion == Conversion::kIntList) return dim_list();
  if (name == "dim" && op_ == "unsqueeze") return below(2 * rank + 2) - rank - 1;
  if (name == "dim" || name == "dim0" || name == "dim1" || name == "dim2" || name == "axis0" ||
      name == "axis1" || name == "start_dim" || name == "end_dim")
    return one_dim();
  if (name == "source") {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    shuffle(dims);
    dims.resize(static_cast<std::size_t>(below(rank + 1)));
    source_ = dims;
    return conversion == Conversion::kInt ? c10::IValue(one_dim()) : c10::IValue(dims);
  }
  if (name == "destination") {
    shuffle(source_);
    for (std::int64_t& dim : source_)
      if (chance(0.3)) dim -= rank;
    return conversion == Conversion::kInt ? c10::IValue(one_dim()) : c10::IValue(source_);
  }
  if (name == "dims") {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    shuffle(dims);
    for (std::int64_t& dim : dims)
      if (chance(0.3)) dim -= rank;
    return dims;
  }
  if (name == "size" || name == "shape") return new_sizes(op_);
  if (name == "normalized_shape") {
    const auto all = first_.sizes().vec();
    return Sizes(all.end() - normalized_, all.end());
  }
  if (name == "dtype" && op_.find("norm") != std::string::npos && chance(0.6))
    return static_cast<std::int64_t>(chance(0.5) ? type_ : at::kDouble);
  if (name == "dtype") return static_cast<std::int64_t>(dtype());
  if (name == "device") return c10::Device(c10::kCPU);
  if (name == "memory_format") return pick<std::int64_t>({0, 1});
  if (name == "layout") return std::int64_t{0};
  if (name == "reduction") return below(3);
  if (name == "p" && conversion == Conversion::kFloat) return 0.3;
  if (name == "p" || name == "ord")
    return pick<c10::IValue>({2, 1, 0, 3, 2.0, 0.5, kInf, -kInf, -1});
  if (name == "correction") return pick<c10::IValue>({0, 1, 2, 0.5});
  if (name == "train" || name == "training" || name == "half_to_float" || name == "implicit" ||
      name == "pin_memory")
    return false;
  if (name == "momentum") return 0.1;
  if (name == "approximate") return pick<c10::IValue>({"none", "tanh"});
  if (name == "num_groups" || name == "group") return pick<std::int64_t>({1, first_.size(1), 2});
  if (name == "N") return first_.size(0);
  if (name == "C") return first_.size(1);
  if (name == "HxW") return first_.numel() / (first_.size(0) * first_.size(1));
  if (name == "beta" && conversion == Conversion::kFloat) return pick({1.0, 0.5, 0.0});
  if (name == "beta") return pick<c10::IValue>({1.0, 0.5, 2});
  if (name == "delta") return pick({1.0, 0.5, 2.0});
  if (name == "lambd") return pick<c10::IValue>({0.5, 1, 0.0});
  if (name == "threshold" && op_ == "softplus") return pick<c10::IValue>({20, 1.0});
  if (name == "scale" || name == "input_scale") return pick<c10::IValue>({1, 0.5, 1.5});
  if (name == "negative_slope") return pick<c10::IValue>({0.01, 0.2, 0, -0.5});
  if (name == "min_val") return pick<c10::IValue>({-1, 0, 0.5, -2.5});
  if (name == "max_val") return pick<c10::IValue>({1, 2, 3.5});
  known = false;
  return {};
}

c10::IValue ArgMaker::argument(const ArgRule& rule) {
  if (rule.optional && chance(0.4)) return {};
  bool known = false;
  const bool tensor =
      rule.conversion == Conversion::kTensor || rule.conversion == Conversion::kOptionalTensor;
  if (!tensor) {
    c10::IValue value = named(rule.name, rule.conversion, known);
    if (known) return value;
  }
  switch (rule.conversion) {
    case Conversion::kTensor:
    case Conversion::kOptionalTensor: {
      // Numbers stand for second tensors.
      if (rule.name == "other" && first_.defined() && op_ != "expand_as" && op_ != "type_as" &&
          op_ != "to" && chance(0.3)) {
        const c10::Scalar scalar = number(true).toScalar();
        const at::Tensor wrapped = at::scalar_tensor(scalar, scalar.type());
        wrapped.unsafeGetTensorImpl()->set_wrapped_number(true);
        return wrapped;
      }
      return tensor_argument(rule);
    }
    case Conversion::kTensorList:
    case Conversion::kOptionalTensorList:
      return tensor_list(rule.conversion == Conversion::kOptionalTensorList);
    case Conversion::kScalar:
      return number(true);
    case Conversion::kBool:
      return chance(0.5);
    case Conversion::kFloat:
      return number(true).toScalar().toDouble();
    case Conversion::kInt:
      return below(3);
    default:
      return rule.default_value;
  }
}

Stack ArgMaker::make(const Overload& overload) {
  const std::string& full = overload.handle.operator_name().name;
  op_ = full.substr(full.find("::") + 2);
  type_ = dtype();
  sizes_ = base_sizes();
  tame_ = elements_ > 0 || chance(0.5);
  no_lowest_ = op_.find("div") != std::string::npos || op_ == "fmod" || op_ == "remainder";
  first_ = at::Tensor();
  dim_ = 0;
  normalized_ = 1 + below(std::max<std::int64_t>(1, static_cast<std::int64_t>(sizes_.size()) - 1));
  if (op_ == "prod" || op_.find("adaptive_avg") != std::string::npos)
    tame_ = true;  // what overflows on the way depends on the order
  by_scales_ = overload.handle.schema().overload_name() == "vec" && chance(0.6);
  if (is_pool1d(op_) || is_pool2d(op_) || is_upsample(op_))
    type_ = pick({at::kFloat, at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong});
  if (norm_operators().contains(op_)) {
    tame_ = elements_ > 0 || chance(0.8);
    type_ = pick({at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kLong});
  }
  Stack stack;
  for (const ArgRule& rule : overload.rules) stack.push_back(argument(rule));
  return stack;
}

}  // namespace fx::loops
