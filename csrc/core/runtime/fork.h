// A PJRT client does not survive fork(): its threads are gone in the child.
#pragma once

namespace tpu::runtime {

/// Starts watching; call when the client starts.
void watch_forks();
/// True in a child that was forked after watch_forks().
bool forked();
/// Throws Error(Unavailable) in such a child, saying what to do.
void check_not_forked();

}  // namespace tpu::runtime
