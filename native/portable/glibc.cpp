// What glibc has under a name only since 2.32 or 2.33, in terms of what every glibc since 2.17 has: linked into the
// prebuilt addon.
#include <sys/stat.h>

extern "C" {

int oldFstat(int version, int file, struct stat* status);
int oldStat(int version, const char* path, struct stat* status);
__asm__(".symver oldFstat, __fxstat@GLIBC_2.2.5");
__asm__(".symver oldStat, __xstat@GLIBC_2.2.5");

// 1 is _STAT_VER of x86-64: the layout of struct stat that the headers have.
int fstat(int file, struct stat* status) noexcept { return oldFstat(1, file, status); }
int stat(const char* path, struct stat* status) noexcept { return oldStat(1, path, status); }

// libstdc++ counts references without atomics where this is true; Node has threads.
char __libc_single_threaded = 0;
}
