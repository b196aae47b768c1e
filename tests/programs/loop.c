/*
 * An event loop: a timerfd of 2 ms and messages of `sender` by a socket pair, in one epoll. It logs
 * when each tick was due, and when the loop went back to its wait after that.
 *
 * loop MODE SECONDS LOG; modes: none, handler (each 50th message blocks for 5 ms).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 2000000LL
#define MOST 1000000

static long long due[MOST], done[MOST];
static int ends[2], count;
static const char *mode;

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void work(long long ns)
{
    long long from = now_ns();

    while (now_ns() - from < ns)
        ;
}

static void *sender(void *unused)
{
    for (;;) {
        usleep(3000);
        if (write(ends[1], "x", 1) != 1)
            break;
    }
    return unused;
}

static void *loop(void *unused)
{
    int epoll = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    long long next = (now_ns() / PERIOD_NS + 20) * PERIOD_NS, messages = 0;
    struct itimerspec spec = {{0, PERIOD_NS}, {next / 1000000000, next % 1000000000}};
    struct epoll_event event = {EPOLLIN, {.fd = timer}}, found[4];

    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event);
    event.data.fd = ends[0];
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
    /* After the last tick it returns to its wait once more, which ends the last cycle. */
    for (int at = 0, is_last = 0; !is_last;) {
        is_last = at >= count;
        int ready = epoll_wait(epoll, found, 4, -1), from = at;
        for (int one = 0; one < ready; one++) {
            uint64_t times;
            char byte;
            if (found[one].data.fd == timer) {
                if (read(timer, &times, sizeof(times)) != sizeof(times))
                    continue;
                work(200000);
                for (; times && at < count; times--, at++, next += PERIOD_NS)
                    due[at] = next;
            } else if (read(ends[0], &byte, 1) == 1) {
                messages++;
                work(!strcmp(mode, "handler") && messages % 50 == 0 ? 5000000 : 50000);
            }
        }
        for (long long end = now_ns(); from < at; from++)
            done[from] = end;
    }
    return unused;
}

static pthread_t start(void *(*what)(void *), const char *name)
{
    pthread_t thread;

    pthread_create(&thread, NULL, what, NULL);
    pthread_setname_np(thread, name);
    return thread;
}

int main(int argc, char **argv)
{
    if (argc != 4 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        return 2;
    mode = argv[1];
    count = atof(argv[2]) * 1e9 / PERIOD_NS;
    pthread_t last = start(loop, "loop");
    start(sender, "sender");
    pthread_join(last, NULL);
    FILE *log = fopen(argv[3], "w");
    for (int at = 0; at < count; at++)
        fprintf(log, "%d %lld %lld\n", at, due[at], done[at]);
    return fclose(log);
}
