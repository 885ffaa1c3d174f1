// Steps the clock of a program, and lets its look-ups of names fail: loaded into it with LD_PRELOAD. The file that
// PRELOAD_FILE names has three numbers of eight bytes: by how many microseconds the clock is ahead, and what happens to
// names that end in ".receiver.test" and ".store.test": 0 they are 127.0.0.1, 1 they are unknown, 2 nothing is answered,
// and any other number is how many microseconds the answer takes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *numbers;

__attribute__((constructor)) static void map_numbers(void) {
  const char *path = getenv("PRELOAD_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, 3 * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped != MAP_FAILED) numbers = mapped;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  int result = (int)syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && numbers && clock == CLOCK_REALTIME) {
    int64_t nanos = time->tv_sec * 1000000000LL + time->tv_nsec + numbers[0] * 1000;
    time->tv_sec = nanos / 1000000000LL;
    time->tv_nsec = nanos % 1000000000LL;
  }
  return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

static int ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict hints,
                struct addrinfo **restrict found) {
  int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
      (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
  int place = !name ? 0 : ends_with(name, ".receiver.test") ? 1 : ends_with(name, ".store.test") ? 2 : 0;
  if (place == 0) return real(name, service, hints, found);
  if (numbers && numbers[place] == 1) return EAI_NONAME;
  while (numbers && numbers[place] == 2) usleep(10000);
  if (numbers && numbers[place] > 2) usleep((useconds_t)numbers[place]);
  return real("127.0.0.1", service, hints, found);
}
