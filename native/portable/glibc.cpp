// What glibc has under a name only since 2.32 or 2.33, in terms of what every glibc since 2.17 has: linked into the
// prebuilt addon.
#include <sys/stat.h>

extern "C" {

// The first glibc of the processor, and its _STAT_VER: the layout of struct stat that the headers have.
#ifdef __aarch64__
#define OLDEST "GLIBC_2.17"
enum { kStatVersion = 0 };
#else
#define OLDEST "GLIBC_2.2.5"
enum { kStatVersion = 1 };
#endif

int oldFstat(int version, int file, struct stat* status);
int oldStat(int version, const char* path, struct stat* status);
__asm__(".symver oldFstat, __fxstat@" OLDEST);
__asm__(".symver oldStat, __xstat@" OLDEST);

int fstat(int file, struct stat* status) noexcept { return oldFstat(kStatVersion, file, status); }
int stat(const char* path, struct stat* status) noexcept { return oldStat(kStatVersion, path, status); }

// libstdc++ counts references without atomics where this is true; Node has threads.
char __libc_single_threaded = 0;
}
