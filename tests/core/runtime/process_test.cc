// What the runtime does across processes: forks, and programs kept on disk.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "core/base/log.h"
#include "core/runtime/fork.h"
#include "core/runtime/world.h"

namespace tpu::runtime {
namespace {

using namespace tpu::testing;

// The exit code of `body` in a forked child, or -1.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildIsToldNotToUseTheDevice) {
  world();
  EXPECT_FALSE(forked());
  EXPECT_NO_THROW(check_not_forked());
  ArrayPtr array = cell(testing::array(DType::F32, {1}, {1})).array;
  EXPECT_EQ(in_child([&] {
              if (!forked()) return 2;
              try {
                Runtime::get();
                return 3;
              } catch (const Error& e) {
                if (e.code != Code::Unavailable) return 4;
                if (std::string(e.what()).find("forked subprocess") == std::string::npos) return 5;
              }
              array.reset();  // the parent's: freeing it here must neither wait nor fail
              return 0;
            }),
            0);
  EXPECT_FALSE(forked());
  expect_numbers(fetch(array), {1});
}

// What a fresh process has to do for one program: 10 compiles it, 1 takes it from disk.
int work_of_a_process() {
  graph::Graph g;
  g.cells = {{DType::F32, {3}}};
  g.inputs = {whole(0, g.cells[0])};
  g.nodes = {node("add.Tensor",
                  {{"self", ops::Ref{0}}, {"other", ops::Ref{0}}, {"alpha", constant(int64_t{1})}},
                  {g.cells[0]})};
  g.outputs = {{1, {}}};
  const auto program = world().compile(g, {}, "a process");
  Cell x = cell(testing::array(DType::F32, {3}, {1, 2, 3}));
  Cell* const cells[] = {&x};
  std::vector<ArrayPtr> out;
  program->launch(world().device(0), cells, {}, nullptr, out);
  if (fetch(out[0]).as<float>() != std::vector<float>{2, 4, 6}) return 99;
  return static_cast<int>(10 * counter("compiles") + counter("disk_hits"));
}

// Each statement runs in a process started anew.
TEST(DiskDeathTest, TheSecondProcessCompilesNothing) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CacheFolder folder;
  ::setenv("CORE_TESTS_CACHE", folder.path.c_str(), std::getenv("CORE_TESTS_CACHE") == nullptr);
  EXPECT_EXIT(_exit(work_of_a_process()), ::testing::ExitedWithCode(10), "");
  EXPECT_EXIT(_exit(work_of_a_process()), ::testing::ExitedWithCode(1), "");
  ::unsetenv("CORE_TESTS_CACHE");
}

}  // namespace
}  // namespace tpu::runtime
