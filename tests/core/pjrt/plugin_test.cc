#include "core/pjrt/plugin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/fixture.h"

namespace tpu::pjrt {
namespace {

// The text of the error that loading `path` throws; it must be Unavailable.
std::string load_error(const std::string& path) {
  try {
    Plugin::load(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::Unavailable) << error.what();
    return error.what();
  }
  ADD_FAILURE() << path << " was loaded";
  return "";
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

TEST(Plugin, MissingFileSaysPathAndAdvice) {
  const std::string text = load_error("/no/such/plugin.so");
  expect_has(text, "/no/such/plugin.so");
  expect_has(text, "there is no such file");
  expect_has(text, "TORCH_TPU_PJRT_PLUGIN");
}

TEST(Plugin, FolderIsNoPlugin) {
  expect_has(load_error(std::filesystem::temp_directory_path()), "it is a folder");
}

TEST(Plugin, TextFileIsNoSharedObject) {
  const auto file =
      std::filesystem::temp_directory_path() / ("torch_tpu_text_" + std::to_string(std::rand()) + ".so");
  std::ofstream(file) << "this is prose, no program\n";
  const std::string text = load_error(file);
  std::filesystem::remove(file);
  expect_has(text, "not a loadable shared object");
  expect_has(text, file);
}

TEST(Plugin, SharedObjectWithoutEntry) { expect_has(load_error(PLUGIN_NO_ENTRY), "GetPjrtApi"); }

TEST(Plugin, TooOldSaysBothVersions) {
  const std::string text = load_error(PLUGIN_OLD_MINOR);
  expect_has(text, "0.39");
  expect_has(text, "0.40");
}

TEST(Plugin, OtherMajorVersionSaysBoth) {
  const std::string text = load_error(PLUGIN_OTHER_MAJOR);
  expect_has(text, "1.2");
  expect_has(text, "0.40");
}

TEST(Plugin, FailedInitialisationCarriesThePluginsText) {
  expect_has(load_error(PLUGIN_NOT_STARTING), "the firmware is on fire");
  expect_has(load_error(PLUGIN_NOT_STARTING),
             "the firmware is on fire");  // the failure is not remembered as success
}

TEST(Plugin, LoadedOncePerFile) {
  const auto first = testing::plugin();
  const std::filesystem::path path = first->path();
  EXPECT_EQ(Plugin::load(path), first);
  EXPECT_EQ(Plugin::load(path.parent_path() / "." / path.filename()), first);
}

TEST(Plugin, KeepsItsChatterToItself) {
  ::testing::internal::CaptureStderr();
  const auto client = testing::client();
  EXPECT_THROW(client->compile("module @m {}", {}), Error);
  EXPECT_THROW(client->deserialize("no executable"), Error);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(std::getenv("TF_CPP_MIN_LOG_LEVEL"), nullptr);
}

TEST(Plugin, VersionAndAttributes) {
  const auto plugin = testing::plugin();
  EXPECT_EQ(plugin->api_major(), 0);
  EXPECT_GE(plugin->api_minor(), 40);
  EXPECT_EQ(plugin->attribute("no such attribute"), "");
  // Three numbers, e.g. 1.16.0.
  const std::string version = plugin->attribute("stablehlo_current_version");
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
}

TEST(Plugin, AttributesOfEveryKind) {
  const auto plugin = Plugin::load(PLUGIN_FAILING);
  EXPECT_EQ(plugin->attribute("list"), "1.16.2");
  EXPECT_EQ(plugin->attribute("whole"), "-7");
  EXPECT_EQ(plugin->attribute("flag"), "true");
  EXPECT_EQ(plugin->attribute("string"), "text");
}

TEST(Plugin, ExtensionsAreFoundByType) {
  const auto plugin = testing::plugin();
  for (const PJRT_Extension_Base* node = plugin->api()->extension_start; node; node = node->next) {
    int type = 0;  // may be newer than the enum
    std::memcpy(&type, &node->type, sizeof(type));
    EXPECT_EQ(plugin->extension(type), node) << "extension " << type;
  }
  EXPECT_EQ(plugin->extension(123456), nullptr);
  EXPECT_EQ(Plugin::load(PLUGIN_FAILING)->extension(PJRT_Extension_Type_FFI), nullptr);
}

TEST(Plugin, ShortTablesHaveNoLaterFunctions) {
  const auto plugin = Plugin::load(PLUGIN_FAILING);
  EXPECT_TRUE(TPU_PJRT_HAS(*plugin, PJRT_Client_Create));
  EXPECT_FALSE(TPU_PJRT_HAS(*plugin, PJRT_Client_Compile));  // within the table, but null
  EXPECT_FALSE(TPU_PJRT_HAS(*plugin, PJRT_Executable_OutputElementTypes));
  EXPECT_TRUE(TPU_PJRT_HAS(*testing::plugin(), PJRT_Client_Compile));
}

struct Mapping {
  PJRT_Error_Code from;
  Code to;
};

class ErrorCodes : public ::testing::TestWithParam<Mapping> {};

TEST_P(ErrorCodes, AreMapped) {
  const auto plugin = Plugin::load(PLUGIN_FAILING);
  PJRT_NamedValue option{};
  option.name = "code";
  option.name_size = 4;
  option.type = PJRT_NamedValue_kInt64;
  option.int64_value = GetParam().from;
  auto args = make_args<PJRT_Client_Create_Args>(PJRT_Client_Create_Args_STRUCT_SIZE);
  args.create_options = &option;
  args.num_options = 1;
  PJRT_Error* error = plugin->api()->PJRT_Client_Create(&args);
  try {
    plugin->check(error, "trial");
    FAIL() << "no error was thrown";
  } catch (const Error& thrown) {
    EXPECT_EQ(thrown.code, GetParam().to);
    EXPECT_STREQ(thrown.what(), "trial: the device is in use by process 4711");
    EXPECT_EQ(thrown.op, "trial");
  }
}

INSTANTIATE_TEST_SUITE_P(Plugin, ErrorCodes,
                         ::testing::Values(Mapping{PJRT_Error_Code_RESOURCE_EXHAUSTED, Code::OutOfMemory},
                                           Mapping{PJRT_Error_Code_INVALID_ARGUMENT, Code::InvalidArgument},
                                           Mapping{PJRT_Error_Code_UNIMPLEMENTED, Code::Unimplemented},
                                           Mapping{PJRT_Error_Code_UNAVAILABLE, Code::Unavailable},
                                           Mapping{PJRT_Error_Code_FAILED_PRECONDITION, Code::Internal},
                                           Mapping{PJRT_Error_Code_INTERNAL, Code::Internal},
                                           Mapping{PJRT_Error_Code_UNKNOWN, Code::Internal}));

TEST(Plugin, NoErrorIsNoThrow) { EXPECT_NO_THROW(testing::plugin()->check(nullptr, "trial")); }

}  // namespace
}  // namespace tpu::pjrt
