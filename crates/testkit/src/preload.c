// Steps the clock of a program, lets its look-ups of names fail, and leads its connections elsewhere: loaded into it with
// LD_PRELOAD. The file that PRELOAD_FILE names has three numbers of eight bytes: by how many microseconds the clock is
// ahead; what happens to names that end in ".store.test": 0 they are 127.0.0.1, 1 they are unknown, 2 nothing is answered,
// and any other number is how many microseconds the answer takes; and an IPv4 address. The file that PRELOAD_PORTS names
// has 64 pairs of numbers: a connection to the first of a pair, a port of 127.0.0.1, comes from that address and leads to
// the second.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PAIRS 64

static volatile int64_t *numbers;
static volatile int64_t *ports;

static volatile int64_t *map(const char *variable, size_t count) {
  const char *path = getenv(variable);
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return NULL;
  void *mapped = mmap(NULL, count * sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? NULL : mapped;
}

__attribute__((constructor)) static void map_files(void) {
  numbers = map("PRELOAD_FILE", 4);
  ports = map("PRELOAD_PORTS", 2 * PAIRS);
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
  if (!name || !ends_with(name, ".store.test")) return real(name, service, hints, found);
  if (numbers && numbers[1] == 1) return EAI_NONAME;
  while (numbers && numbers[1] == 2) usleep(10000);
  if (numbers && numbers[1] > 2) usleep((useconds_t)numbers[1]);
  return real("127.0.0.1", service, hints, found);
}

// The port that a connection to a port leads to, or 0.
static in_port_t led_to(in_port_t port) {
  for (int pair = 0; ports && pair < PAIRS && ports[2 * pair]; pair++) {
    if (ports[2 * pair] == port) return (in_port_t)ports[2 * pair + 1];
  }
  return 0;
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
  int (*real)(int, const struct sockaddr *, socklen_t) =
      (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
  struct sockaddr_in to;
  if (!numbers || length < sizeof to || address->sa_family != AF_INET) return real(socket, address, length);
  memcpy(&to, address, sizeof to);
  in_port_t port = led_to(ntohs(to.sin_port));
  if (port == 0 || to.sin_addr.s_addr != htonl(INADDR_LOOPBACK)) return real(socket, address, length);
  int late = 1;
  struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl((uint32_t)numbers[2])}};
  setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &late, sizeof late);
  // It fails at the next call for the same socket, by which some wait until they are connected.
  bind(socket, (struct sockaddr *)&from, sizeof from);
  to.sin_port = htons(port);
  return real(socket, (struct sockaddr *)&to, sizeof to);
}
