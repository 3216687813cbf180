// The fastest hand-written thing that does the same visible work: an epoll server that answers every request with an
// event stream and writes the same bytes to all of its connections. `broadcaster <data length>`; it prints its port,
// and each number on its standard input is that many events, written to each connection with one call.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTIONS 16384

static int clients[CONNECTIONS];
static int count = 0;
static const char HEAD[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-store\r\ntransfer-encoding: chunked\r\n\r\n"
    "16\r\nevent: ready\ndata: {}\n\n\r\n";

static void drop(int fd) {
  for (int i = 0; i < count; i++)
    if (clients[i] == fd) clients[i] = clients[--count];
  close(fd);
}

int main(int argc, char **argv) {
  int length = argc > 1 ? atoi(argv[1]) : 150;
  signal(SIGPIPE, SIG_IGN);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  if (bind(server, (struct sockaddr *)&at, size) || listen(server, 4096)) return 1;
  getsockname(server, (struct sockaddr *)&at, &size);
  printf("%d\n", ntohs(at.sin_port));
  fflush(stdout);

  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = server};
  epoll_ctl(epoll, EPOLL_CTL_ADD, server, &event);
  event.data.fd = 0;
  epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);

  char *data = malloc(length + 1);
  memset(data, 'x', length);
  data[length] = 0;
  char *frames = malloc((length + 128) * 1000);
  char *chunk = malloc((length + 128) * 1000 + 64);
  char input[4096];
  long seq = 0;
  struct epoll_event ready[256];
  for (;;) {
    int n = epoll_wait(epoll, ready, 256, -1);
    for (int i = 0; i < n; i++) {
      int fd = ready[i].data.fd;
      if (fd == server) {
        int client;
        while ((client = accept4(server, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          int on = 1;
          setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
          event.data.fd = client;
          epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
        }
      } else if (fd == 0) {
        ssize_t got = read(0, input, sizeof input - 1);
        if (got <= 0) return 0;
        input[got] = 0;
        for (char *line = strtok(input, "\n"); line; line = strtok(NULL, "\n")) {
          int burst = atoi(line), used = 0;
          if (burst == 0) continue;
          for (int e = 0; e < burst; e++)
            used += sprintf(frames + used, "id: 7f3a:%ld\nevent: site_event\ndata: \"%s\"\n\n", ++seq, data);
          int all = sprintf(chunk, "%x\r\n", used);
          memcpy(chunk + all, frames, used);
          memcpy(chunk + all + used, "\r\n", 2);
          all += used + 2;
          // A connection that cannot take it is dropped: the limit is what the others cost.
          for (int c = count - 1; c >= 0; c--)
            if (write(clients[c], chunk, all) != all) drop(clients[c]);
        }
      } else {
        ssize_t got = read(fd, input, sizeof input);
        if (got <= 0) drop(fd);
        else if (count < CONNECTIONS && write(fd, HEAD, sizeof HEAD - 1) > 0) clients[count++] = fd;
      }
    }
  }
}
