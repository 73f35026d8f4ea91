// A shared object that is no PJRT plugin.
extern "C" int nothing_of_interest() { return 0; }
