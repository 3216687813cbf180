/* Preloaded into redis-server: its clock is eight bytes of a file, in microseconds since 1970, so TIME and every expiry
   are virtual. The monotonic clock stays real. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *clock_us;

__attribute__((constructor)) static void map_clock(void) {
  const char *path = getenv("SIMULATED_CLOCK");
  if (!path) return;
  int fd = open(path, O_RDWR);
  if (fd < 0) _exit(70);
  clock_us = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (clock_us == MAP_FAILED) _exit(70);
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  (void)tz;
  if (clock_us) {
    tv->tv_sec = *clock_us / 1000000;
    tv->tv_usec = *clock_us % 1000000;
    return 0;
  }
  struct timespec ts;
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts);
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timeval tv;
  gettimeofday(&tv, 0);
  if (out) *out = tv.tv_sec;
  return tv.tv_sec;
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  if (clock_us && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
    ts->tv_sec = *clock_us / 1000000;
    ts->tv_nsec = (*clock_us % 1000000) * 1000;
    return 0;
  }
  return syscall(SYS_clock_gettime, id, ts);
}
