#pragma once

/// Coefficients, written by scripts/minimax.py --write. Polynomials: the highest power first.
// clang-format off
namespace fx::loops::tables {

/// Polynomials of degree `Degree` in x - c, one for each of up to 16 intervals of x >= 0, chosen by the low four bits of
/// the word (bits of the float x + shift) >> (23 - bits).
template <int Degree>
struct Pieces {
  int bits;
  float shift;
  float first;  ///< Where x + shift is below: the value is x plus the polynomial's.
  float last;   ///< From here on the value rounds to 1.
  float rows[Degree + 2][16];  ///< c, then the coefficients, the lowest power first
};

// scripts/minimax.py exp: e^r, relative, powers 0 to 6 on [-0.346753, 0.346753];
// largest error 2^-28.3.
inline constexpr double kExp[] = {
    0x1.6a4d5ap-10, 0x1.12398ep-7, 0x1.5558bp-5, 0x1.555492p-3, 0x1.fffffcp-2, 0x1p+0, 0x1p+0};

// scripts/minimax.py exp2: 2^r, relative, powers 0 to 6 on [-0.5, 0.5];
// largest error 2^-28.3.
inline constexpr double kExp2[] = {
    0x1.417a5cp-13, 0x1.5f0946p-10, 0x1.3b2dd2p-7, 0x1.c6af7ap-5, 0x1.ebfbdcp-3, 0x1.62e43p-1,
    0x1p+0};

// scripts/minimax.py expm1: (e^r - 1 - r) / r^2, relative to e^r - 1, powers 0 to 5 on [-0.288, 0.4058];
// largest error 2^-31.3.
inline constexpr double kExpm1[] = {
    0x1.b72f52p-13, 0x1.6cd92p-10, 0x1.11063cp-7, 0x1.55552cp-5, 0x1.55555ap-3, 0x1p-1};

// scripts/minimax.py log: log(1 + f) / f - 1, relative to log(1 + f) / f, powers 1 to 9 on [-0.25, 0.5];
// largest error 2^-27.6.
inline constexpr double kLog[] = {
    -0x1.718ed6p-5, 0x1.acce26p-4, -0x1.0d989cp-3, 0x1.28841ap-3, -0x1.54ee38p-3, 0x1.996978p-3,
    -0x1.000046p-2, 0x1.5555a4p-2, -0x1p-1, 0.0};

// scripts/minimax.py log2: log2(1 + f) / f - 1, relative to log2(1 + f) / f, powers 0 to 9 on [-0.25, 0.5];
// largest error 2^-26.2.
inline constexpr double kLog2[] = {
    -0x1.083e68p-4, 0x1.38502p-3, -0x1.89844p-3, 0x1.ad0566p-3, -0x1.eb757cp-3, 0x1.273e98p-2,
    -0x1.7155e6p-2, 0x1.ec71c8p-2, -0x1.715476p-1, 0x1.c551d8p-2};

// scripts/minimax.py log10: log10(1 + f) / f - 1/2, relative to log10(1 + f) / f, powers 0 to 9 on [-0.25, 0.5];
// largest error 2^-26.4.
inline constexpr double kLog10[] = {
    -0x1.4d9ce4p-6, 0x1.85c0dap-5, -0x1.e08018p-5, 0x1.023e94p-4, -0x1.278df6p-4, 0x1.637ae6p-4,
    -0x1.bcbb92p-4, 0x1.287b38p-3, -0x1.bcb7bp-3, -0x1.0d213cp-4};

// scripts/minimax.py sin: (sin r / r - 1) / r^2 by s = r^2, relative to sin r / r, powers 0 to 2 on [1e-09, 0.693096];
// largest error 2^-27.3.
inline constexpr double kSin[] = {
    -0x1.9865bcp-13, 0x1.11048cp-7, -0x1.55553ep-3};

// scripts/minimax.py cos: (1 - cos r) / r^2 by s = r^2, relative to cos r, powers 0 to 3 on [1e-09, 0.693096];
// largest error 2^-32.0.
inline constexpr double kCos[] = {
    -0x1.993858p-16, 0x1.6c09b8p-10, -0x1.555546p-5, 0x1p-1};

// scripts/minimax.py tanh: tanh x, relative, degree 6 on 16 intervals of [0, 9.02], by 2 bits of x + 0.625;
// largest error 2^-27.2.
inline constexpr Pieces<6> kTanh = {
    2, 0x1.4p-1f, 0x1.8p-1f, 0x1.20a3d8p+3f, {
    {
    0x1.9dep+0f, 0x1.10f4p+1f, 0x1.4d8p+1f, 0x1.8e74p+1f, 0x1.f488p+1f, 0x1.36fcp+2f,
    0x1.79b4p+2f, 0x1.b6f8p+2f, 0x1.044386p+3f, 0.0f, 0x1.783p-3f, 0x1.435p-2f, 0x1.fdfp-2f,
    0x1.82ep-1f, 0x1.011p+0f, 0x1.41e8p+0f},
    {
    0x1.d92964p-1f, 0x1.f1cf0cp-1f, 0x1.fa715cp-1f, 0x1.fdfa96p-1f, 0x1.ff96d8p-1f,
    0x1.fff03ap-1f, 0x1.fffe0ap-1f, 0x1.ffffb6p-1f, 0x1.fffffap-1f, 0.0f, 0x1.74035p-3f,
    0x1.38fb14p-2f, 0x1.d7959cp-2f, 0x1.46e7c4p-1f, 0x1.86d36ap-1f, 0x1.b36232p-1f},
    {
    0x1.2aec02p-3f, 0x1.bfd35cp-5f, 0x1.61bae4p-6f, 0x1.02324cp-7f, 0x1.a47672p-10f,
    0x1.f8bae6p-13f, 0x1.f5ffdp-16f, 0x1.27feecp-18f, 0x1.7243cp-22f, 0.0f, 0x1.ef1b32p-1f,
    0x1.d02b62p-1f, 0x1.936904p-1f, 0x1.2f4674p-1f, 0x1.ab572ap-2f, 0x1.1b8924p-2f},
    {
    -0x1.143f48p-3f, -0x1.b369bp-5f, -0x1.5de404p-6f, -0x1.012d4ap-7f, -0x1.a425b2p-10f,
    -0x1.f8a74cp-13f, -0x1.f5fe5cp-16f, -0x1.27e036p-18f, -0x1.ace252p-23f, -0x1.4ed4a6p-25f,
    -0x1.67bd02p-3f, -0x1.1bbe12p-2f, -0x1.7391p-2f, -0x1.83464cp-2f, -0x1.4633dcp-2f,
    -0x1.e236f6p-3f},
    {
    0x1.37579ap-4f, 0x1.1213ccp-5f, 0x1.c85b78p-7f, 0x1.542cdp-8f, 0x1.1764ap-10f,
    0x1.5003f2p-13f, 0x1.4e62bep-16f, 0x1.8a8aaep-19f, 0x1.ed174ep-23f, -0x1.55542cp-2f,
    -0x1.295e0cp-2f, -0x1.bd8p-3f, -0x1.874952p-4f, 0x1.68a32ap-5f, 0x1.aa38b8p-4f,
    0x1.ba1256p-4f},
    {
    -0x1.9e03cep-6f, -0x1.e56f52p-7f, -0x1.b45678p-8f, -0x1.4ed862p-9f, -0x1.15c5dp-11f,
    -0x1.504d2ap-14f, -0x1.4de8ap-17f, -0x1.8f2a14p-20f, -0x1.448ab4p-21f, -0x1.57a60ap-13f,
    0x1.c81aaep-4f, 0x1.452eb8p-3f, 0x1.51d33p-3f, 0x1.9142eep-4f, 0x1.b67d5p-6f, -0x1.b1c962p-7f},
    {
    0x1.f12882p-11f, 0x1.2273cep-8f, 0x1.3ecbfep-9f, 0x1.057c3cp-10f, 0x1.cb95bp-13f,
    0x1.17d0cap-15f, 0x1.15bf8p-18f, 0x1.447882p-21f, 0x1.a8e03cp-25f, 0x1.167e5cp-3f,
    0x1.77e9eap-4f, 0x1.997b4cp-5f, -0x1.ac7658p-6f, -0x1.038ap-4f, -0x1.77ca56p-5f,
    -0x1.32c70ap-6f},
    {
    0x1.167546p-8f, -0x1.162d58p-11f, -0x1.4fe186p-11f, -0x1.3f20e8p-12f, -0x1.429f2cp-14f,
    -0x1.68a7cp-17f, -0x1.828948p-20f, -0x1.517d86p-23f, 0x1.abc6e4p-22f, -0x1.3fd2fap-6f,
    -0x1.db7c96p-5f, -0x1.7463bep-5f, -0x1.a064dp-5f, -0x1.89cb52p-11f, 0x1.2ebd7ep-6f,
    0x1.a51a48p-7f},
    }};

// scripts/minimax.py erf: erf x, relative, degree 5 on 15 intervals of [0, 3.99], by 3 bits of x + 1.5;
// largest error 2^-26.0.
inline constexpr Pieces<5> kErf = {
    3, 0x1.8p+0f, 0x1.ap+0f, 0x1.feb852p+1f, {
    {
    0x1.4248p-1f, 0x1.bbe8p-1f, 0x1.1e5cp+0f, 0x1.6258p+0f, 0x1.9fd8p+0f, 0x1.dffp+0f,
    0x1.107cp+1f, 0x1.2fc6p+1f, 0x1.61fcp+1f, 0x1.9ec8p+1f, 0x1.df38e2p+1f, 0.0f, 0.0f,
    0x1.7dep-3f, 0x1.3d1p-2f, 0x1.c048p-2f},
    {
    0x1.40d612p-1f, 0x1.8f488p-1f, 0x1.c5cd8ap-1f, 0x1.e6406cp-1f, 0x1.f4f022p-1f, 0x1.fbe50cp-1f,
    0x1.feaa34p-1f, 0x1.ff9872p-1f, 0x1.fff3f4p-1f, 0x1.ffff66p-1f, 0x1.fffffcp-1f, 0.0f, 0.0f,
    0x1.a9f524p-3f, 0x1.5aa7acp-2f, 0x1.db4b32p-2f},
    {
    0x1.84bba4p-1f, 0x1.107012p-1f, 0x1.4aa1eep-2f, 0x1.543196p-3f, 0x1.4a44ccp-4f,
    0x1.130f22p-5f, 0x1.8ded3ep-7f, 0x1.08c8d6p-8f, 0x1.1a3e8ep-11f, 0x1.047104p-15f,
    0x1.ef84fp-21f, 0.0f, 0x1.06eba8p-3f, 0x1.16fe8cp+0f, 0x1.06750cp+0f, 0x1.dcf92p-1f},
    {
    -0x1.e9603ep-2f, -0x1.d86888p-2f, -0x1.71d822p-2f, -0x1.d6e2a6p-3f, -0x1.0c3edcp-3f,
    -0x1.01d606p-4f, -0x1.a78c0ap-6f, -0x1.3a3p-7f, -0x1.85870cp-10f, -0x1.a40c24p-14f,
    -0x1.cb28b2p-19f, 0.0f, 0x1.4e2bf2p-22f, -0x1.a02cfap-3f, -0x1.450f6p-2f, -0x1.a19d0ap-2f},
    {
    -0x1.ae94aep-5f, 0x1.6db88ap-4f, 0x1.4b2938p-3f, 0x1.412754p-3f, 0x1.d6e2f4p-4f,
    0x1.146962p-4f, 0x1.0b6338p-5f, 0x1.c4fde8p-7f, 0x1.4eae7ap-9f, 0x1.b284a6p-13f,
    0x1.14eb9p-17f, 0.0f, -0x1.812b86p-2f, -0x1.5a1c7p-2f, -0x1.1acfe6p-2f, -0x1.882c7cp-3f},
    {
    0x1.6654ep-3f, 0x1.d65ba6p-4f, 0x1.eff2dp-6f, -0x1.01671cp-5f, -0x1.94b302p-5f,
    -0x1.59955p-5f, -0x1.acacbap-6f, -0x1.b2f16ep-7f, -0x1.a15e14p-9f, -0x1.55d474p-12f,
    -0x1.0ee4fap-16f, 0.0f, 0x1.33bbep-12f, 0x1.96223ap-4f, 0x1.3013e8p-3f, 0x1.6bd7dcp-3f},
    {
    -0x1.b2671p-6f, -0x1.10c016p-4f, -0x1.f457fcp-5f, -0x1.f6605cp-6f, -0x1.2e9ec6p-9f,
    0x1.730d92p-7f, 0x1.9796fep-7f, 0x1.11f9f4p-7f, 0x1.735abap-9f, 0x1.5ed7c4p-12f,
    0x1.5f985ap-16f, 0.0f, 0x1.c678bap-4f, 0x1.77604ep-4f, 0x1.dfa062p-5f, 0x1.89ea7ap-6f},
    }};

}  // namespace fx::loops::tables
// clang-format on
