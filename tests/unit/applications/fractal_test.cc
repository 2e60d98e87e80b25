// Fractal compression, compared with an exhaustive search pixel by pixel, and with its purpose: a picture that looks
// the same.
#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <set>

#include "apps/fractal/code.h"
#include "apps/fractal/encoder.h"
#include "apps/fractal/image.h"
#include "apps/fractal/options.h"

namespace fractal {
namespace {

using testing::HasSubstr;

Image random_image(std::size_t width, std::size_t height, unsigned seed) {
  std::mt19937 random(seed);
  Image image{width, height, std::vector<std::uint8_t>(width * height)};
  for (auto& pixel : image.pixels) pixel = static_cast<std::uint8_t>(random() % 256);
  return image;
}

std::vector<Key> search_all(const Encoder& encoder, std::vector<Key> keys = {}) {
  keys.resize(encoder.rows() * encoder.columns(), kNone);
  for (std::size_t i = 0; i < keys.size(); ++i)
    keys[i] = encoder.search(i / encoder.columns(), i % encoder.columns(), keys[i]);
  return keys;
}

Code code_of(const Image& image, std::size_t r, std::uint64_t flat) {
  const Image all = padded(image, 2 * r);
  const Encoder encoder(all, r, flat, 0, Encoder::domains(all, r));
  Code code{.width = image.width, .height = image.height, .r = r, .transforms = {}};
  const auto keys = search_all(encoder);
  for (std::size_t i = 0; i < keys.size(); ++i)
    code.transforms.push_back(encoder.transform(i / encoder.columns(), i % encoder.columns(), keys[i]));
  return code;
}

// Every domain, isometry, s (of 63) and o: tries all values of s and o instead of computing them.
std::pair<std::int64_t, std::uint64_t> best_by_trying(const Image& image, std::size_t r, std::size_t row,
                                                      std::size_t column) {
  std::pair<std::int64_t, std::uint64_t> best{INT64_MAX, 0};
  std::vector<std::int16_t> domain;
  const auto maps = isometries(r);
  for (std::size_t d = 0; d < Encoder::domains(image, r); ++d) {
    shrink(image, d, r, domain);
    for (std::size_t k = 0; k < kIsometries; ++k)
      for (int s = 1 - kScale; s < kScale; ++s)
        for (int o = -260; o <= 520; ++o) {
          std::int64_t error = 0;
          for (std::size_t i = 0; i < r * r; ++i) {
            const std::int64_t pixel = image.at(column * r + i % r, row * r + i / r);
            const std::int64_t difference = s * domain[maps[k][i]] + kScale * (o - pixel);
            error += difference * difference;
          }
          best = std::min(best, std::pair(error, std::uint64_t{d * kIsometries + k}));
        }
  }
  return best;
}

TEST(Isometries, AreTheEightOfASquare) {
  for (const std::size_t r : {2u, 3u, 8u}) {
    const auto maps = isometries(r);
    std::set<std::vector<std::size_t>> different(maps.begin(), maps.end());
    EXPECT_EQ(different.size(), kIsometries);
    for (const auto& map : maps) {
      EXPECT_EQ(std::set<std::size_t>(map.begin(), map.end()).size(), r * r);
      for (std::size_t i = 0; i + 1 < r; ++i) {  // neighbours stay neighbours
        const auto a = static_cast<std::ptrdiff_t>(map[i]), b = static_cast<std::ptrdiff_t>(map[i + 1]);
        EXPECT_TRUE(std::abs(a - b) == 1 || std::abs(a - b) == static_cast<std::ptrdiff_t>(r));
      }
    }
  }
}

// s and o are rounded one after the other, so another pair may be slightly better, within the rounding error.
TEST(Encoder, EqualsAnExhaustiveSearch) {
  const Image image = random_image(8, 8, 1);
  const Encoder encoder(image, 2, 0, 0, 4);
  for (std::size_t row = 0; row < 4; ++row)
    for (std::size_t column = 0; column < 4; ++column) {
      const auto [error, index] = best_by_trying(image, 2, row, column);
      const auto found = static_cast<std::int64_t>(encoder.search(row, column, kNone) >> kIndexBits);
      EXPECT_GE(found, error) << row << " " << column;
      EXPECT_LE(std::sqrt(static_cast<double>(found)), std::sqrt(static_cast<double>(error)) + 2.0 * 2 * kScale)
          << index;
    }
}

// The key's error is the transform's error, pixel by pixel, and no other domain or isometry has a smaller key.
TEST(Encoder, ErrorEqualsThePixels) {
  for (const std::size_t r : {2u, 3u, 8u, 32u}) {
    const Image image = padded(generate(r == 32 ? 130 : 70, 61, r), 2 * r);
    const Encoder encoder(image, r, 0, 0, Encoder::domains(image, r));
    const auto maps = isometries(r);
    std::vector<std::int16_t> domain;
    for (std::size_t row = 0; row < encoder.rows(); ++row)
      for (std::size_t column = 0; column < encoder.columns(); ++column) {
        const Key key = encoder.search(row, column, kNone);
        if (index_of(key) == kFlat) continue;
        const auto error_of = [&](std::uint64_t index) {
          const Transform t = encoder.transform(row, column, index);
          shrink(image, t.domain, r, domain);
          std::int64_t error = 0;
          for (std::size_t i = 0; i < r * r; ++i) {
            const std::int64_t difference = t.scale * domain[maps[t.isometry][i]] +
                                            kScale * (t.offset - image.at(column * r + i % r, row * r + i / r));
            error += difference * difference;
          }
          return static_cast<std::uint64_t>(error);
        };
        ASSERT_EQ(key >> kIndexBits, error_of(index_of(key))) << r << " " << row << " " << column;
        if (r == 2 && (row + column) % 7 != 0) continue;  // a sample is enough
        Key best = kNone;
        for (std::uint64_t index = 0; index < Encoder::domains(image, r) * kIsometries; ++index)
          best = std::min(best, error_of(index) << kIndexBits | index);
        ASSERT_EQ(key, best) << r << " " << row << " " << column;
      }
  }
}

TEST(Encoder, PartsOfTheDomainsTogetherFindTheSameAsAll) {
  const Image image = padded(generate(90, 70, 2), 8);
  const std::size_t domains = Encoder::domains(image, 4);
  const auto expected = search_all(Encoder(image, 4, 3, 0, domains));
  for (const std::size_t parts : {1u, 2u, 5u, 400u}) {
    std::vector<Key> one_after_the_other, least(expected.size(), kNone);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t first = domains * part / parts, count = domains * (part + 1) / parts - first;
      const Encoder encoder(image, 4, 3, first, count);
      one_after_the_other = search_all(encoder, one_after_the_other);
      const auto alone = search_all(encoder);
      for (std::size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], alone[i]);
    }
    EXPECT_EQ(one_after_the_other, expected) << parts;
    EXPECT_EQ(least, expected) << parts;
  }
}

TEST(Encoder, FlatRangeIsItsMean) {
  Image image{16, 16, std::vector<std::uint8_t>(256, 77)};
  const Encoder encoder(image, 4, 0, 0, Encoder::domains(image, 4));
  for (const Key key : search_all(encoder)) EXPECT_EQ(index_of(key), kFlat);
  EXPECT_EQ(encoder.transform(1, 2, kFlat), (Transform{.offset = 77}));
  EXPECT_EQ(decompress(code_of(image, 4, 0)).pixels, image.pixels);
}

TEST(Code, DecompressesToASimilarPicture) {
  const Image image = generate(160, 130, 1);
  EXPECT_GT(psnr(image, decompress(code_of(image, 8, 3))), 25);
  EXPECT_GT(psnr(image, decompress(code_of(image, 4, 0))), 30);
}

TEST(Code, OddSizes) {
  for (const auto& [width, height] :
       std::vector<std::pair<std::size_t, std::size_t>>{{1, 1}, {1, 50}, {37, 3}, {33, 31}}) {
    const Image image = generate(width, height, 4);
    const Image back = decompress(code_of(image, 4, 0));
    EXPECT_EQ(back.width, width);
    EXPECT_EQ(back.height, height);
    EXPECT_GT(psnr(image, back), 12) << width << " " << height;
  }
}

TEST(Code, ReadsWhatItWrites) {
  const Code code = code_of(generate(50, 40, 1), 4, 3);
  const Code back = parse_code(to_bytes(code)).value();
  EXPECT_EQ(std::tuple(back.width, back.height, back.r), std::tuple(code.width, code.height, code.r));
  EXPECT_EQ(back.transforms, code.transforms);
}

TEST(Code, AnyBytesAreRefusedOrDecompress) {
  const std::string good = to_bytes(code_of(generate(20, 12, 1), 2, 0));
  for (std::size_t length = 0; length < good.size(); ++length)
    EXPECT_FALSE(parse_code(good.substr(0, length))) << length;
  EXPECT_FALSE(parse_code(good + "x"));
  EXPECT_THAT(parse_code("P5\n").error(), HasSubstr("--code"));
  EXPECT_THAT(parse_code("PIFS 99999999999999999999 1 1\n").error(), HasSubstr("--code"));
  std::mt19937 random(1);
  int decompressed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = good;
    for (int changes = 0; changes < 2; ++changes) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const auto code = parse_code(bytes)) ++decompressed, decompress(*code);
  }
  EXPECT_GT(decompressed, 20);
}

TEST(Pgm, ReadsWhatItWrites) {
  const Image image = generate(31, 7, 1);
  const Image back = parse_pgm(to_pgm(image)).value();
  EXPECT_EQ(back.pixels, image.pixels);
  EXPECT_EQ(back.width, 31u);
  EXPECT_EQ(parse_pgm("P5 # a comment\n#another\n2 1\n255\nab").value().pixels, (std::vector<std::uint8_t>{'a', 'b'}));
}

TEST(Pgm, ErrorsNameTheRemedy) {
  for (const auto& [text, part] :
       std::vector<std::pair<std::string, std::string>>{{"", "binary PGM"},
                                                        {"P2\n1 1\n255\n7", "binary PGM"},
                                                        {"P5", "invalid header"},
                                                        {"P5 2 x 255\n", "invalid header"},
                                                        {"P5 2 2 255", "invalid header"},
                                                        {"P5 # no end", "invalid header"},
                                                        {"P5 0 2 255\n", "0 x 2 pixels; the size must be"},
                                                        {"P5 99999 2 255\n", "99999 x 2 pixels"},
                                                        {"P5 2 2 65535\nabcdefgh", "maximum value is 65535; only"},
                                                        {"P5 2 2 255\nabc", "ends after 3 of 4 pixels"},
                                                        {"P5 99999999999999999999 1 255\n", "invalid header"}})
    EXPECT_THAT(parse_pgm(text).error(), HasSubstr(part)) << text;
}

TEST(Image, IsGeneratedWithUnevenLoad) {
  const Image image = generate(256, 256, 1);
  EXPECT_EQ(image.pixels, generate(256, 256, 1).pixels);
  EXPECT_NE(image.pixels, generate(256, 256, 2).pixels);
  const Encoder encoder(image, 8, 3, 0, 0);
  const auto keys = search_all(encoder);  // without a domain: shows which ranges are flat
  const auto compared = [&](std::size_t from, std::size_t to) {
    return std::count(keys.begin() + static_cast<std::ptrdiff_t>(from * 32),
                      keys.begin() + static_cast<std::ptrdiff_t>(to * 32), kNone);
  };
  EXPECT_LT(compared(0, 8), 40);     // of 256: the sky
  EXPECT_GT(compared(16, 24), 200);  // the mountains
}

TEST(Image, PsnrAndThumbnail) {
  const Image image{4, 2, {0, 0, 255, 255, 0, 0, 255, 255}};
  Image other = image;
  EXPECT_EQ(psnr(image, other), std::numeric_limits<double>::infinity());
  other.pixels[0] = 255;
  EXPECT_NEAR(psnr(image, other), 10 * std::log10(8), 1e-9);
  EXPECT_EQ(thumbnail(image, 64), "    @@\n");
  EXPECT_EQ(thumbnail({1, 1, {128}}, 64), "  +\n");
}

TEST(Code, DecompressRequiresOutput) {
  Options options;
  options.compressed = "x";
  EXPECT_THAT(check(options), HasSubstr("--output"));
  options.output = "y";
  EXPECT_EQ(check(options), "");
  EXPECT_TRUE(options.sequential);
}

}  // namespace
}  // namespace fractal
