#include "core/base/env.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/base/error.h"

namespace tpu::env {
namespace {

// Sets a variable for one test and puts the old value back.
class Scoped {
 public:
  Scoped(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old, had_ = true;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  ~Scoped() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST(Env, FallbackWhenUnsetOrEmpty) {
  for (const char* value : {static_cast<const char*>(nullptr), ""}) {
    const Scoped set("TORCH_TPU_CPU_DEVICES", value);
    EXPECT_EQ(get("TORCH_TPU_CPU_DEVICES"), "1");
    EXPECT_EQ(get_int("TORCH_TPU_CPU_DEVICES"), 1);
  }
}

TEST(Env, TheValueIsReadNow) {
  const Scoped set("TORCH_TPU_CPU_DEVICES", "4");
  EXPECT_EQ(get_int("TORCH_TPU_CPU_DEVICES"), 4);
  const Scoped again("TORCH_TPU_CPU_DEVICES", "-7");
  EXPECT_EQ(get_int("TORCH_TPU_CPU_DEVICES"), -7);
}

TEST(Env, NotANumberNamesTheVariable) {
  for (const char* value : {"four", "4x", "4.0", " 4", "99999999999999999999"}) {
    const Scoped set("TORCH_TPU_CPU_DEVICES", value);
    try {
      get_int("TORCH_TPU_CPU_DEVICES");
      FAIL() << value;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Code::Value);
      EXPECT_EQ(std::string(error.what()),
                std::string("TORCH_TPU_CPU_DEVICES=") + value + " is not a whole number");
    }
  }
}

TEST(Env, AnUndeclaredNameIsAFault) {
  try {
    get("TORCH_TPU_NO_SUCH_VARIABLE");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Code::Internal);
    EXPECT_NE(std::string(error.what()).find("TORCH_TPU_NO_SUCH_VARIABLE"), std::string::npos);
  }
}

TEST(Env, EveryVariableIsNamedOnceAndExplained) {
  std::set<std::string> names;
  for (const Variable& variable : variables()) {
    EXPECT_TRUE(names.insert(variable.name).second) << variable.name;
    EXPECT_EQ(std::string(variable.name).rfind("TORCH_TPU_", 0), 0u) << variable.name;
    EXPECT_GT(std::string(variable.meaning).size(), 10u) << variable.name;
  }
}

}  // namespace
}  // namespace tpu::env
