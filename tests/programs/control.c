/*
 * A control loop of 1 kHz (fifo 80) that shares a mutex with `worker` (fifo 10); `vision` (fifo 50)
 * keeps the CPU for 3 ms each 50 ms. All on one CPU. It logs when each cycle was due and when it
 * ended.
 *
 * control MODE SECONDS LOG; modes: none, lock (the worker has the mutex for 2 ms each 50 ms),
 * inversion (and vision comes then), pi (the same with priority inheritance), malloc (each 20th
 * cycle touches 512 fresh pages), hog (vision has fifo 90 and the CPU for 3 ms each 50 ms), printf
 * (a line each cycle), file (a write each 20th), sync (and waits until the disk has it).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 1000000LL
#define MOST 1000000

static long long due[MOST], done[MOST];
static pthread_mutex_t lock;
static const char *mode;
static int count, file = -1;
static char page[4096];

static long long now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* CPU time of this thread. */
static void work(long long ns)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long long until = now.tv_sec * 1000000000LL + now.tv_nsec + ns;
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while (now.tv_sec * 1000000000LL + now.tv_nsec < until);
}

static void sleep_until(long long ns)
{
    struct timespec until = {ns / 1000000000, ns % 1000000000};

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
}

static void *worker(void *unused)
{
    for (long long at = (now_ns() / 50000000 + 2) * 50000000;; at += 50000000) {
        sleep_until(at + 100000);
        pthread_mutex_lock(&lock);
        work(2000000);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *vision(void *unused)
{
    for (long long at = (now_ns() / 50000000 + 2) * 50000000;; at += 50000000) {
        sleep_until(at + 1500000);
        work(3000000);
    }
    return unused;
}

static void *control(void *unused)
{
    long long next = (now_ns() / PERIOD_NS + 10) * PERIOD_NS;

    for (int at = 0; at < count; at++, next += PERIOD_NS) {
        sleep_until(next);
        pthread_mutex_lock(&lock);
        work(50000);
        pthread_mutex_unlock(&lock);
        if (!strcmp(mode, "malloc") && at % 20 == 0) {
            char *pages = mmap(NULL, 512 * 4096, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (int page = 0; page < 512; page++)
                pages[page * 4096] = 1;
            munmap(pages, 512 * 4096);
        }
        if (!strcmp(mode, "printf"))
            fprintf(stderr, "cycle %d of %d\n", at, count);
        if (file >= 0 && at % 20 == 0) {
            if (write(file, page, sizeof(page)) != sizeof(page))
                exit(3);
            if (!strcmp(mode, "sync"))
                fdatasync(file);
        }
        due[at] = next;
        done[at] = now_ns();
    }
    return unused;
}

static pthread_t start(void *(*what)(void *), const char *name, int priority)
{
    pthread_attr_t attributes;
    struct sched_param parameters = {priority};
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &parameters);
    if (pthread_create(&thread, &attributes, what, NULL))
        exit(3);
    pthread_setname_np(thread, name);
    return thread;
}

int main(int argc, char **argv)
{
    pthread_mutexattr_t attributes;
    cpu_set_t one;

    if (argc != 4)
        return 2;
    mode = argv[1];
    count = atof(argv[2]) * 1e9 / PERIOD_NS;
    if (count > MOST)
        count = MOST;
    CPU_ZERO(&one);
    CPU_SET(1, &one);
    sched_setaffinity(0, sizeof(one), &one);
    pthread_mutexattr_init(&attributes);
    if (!strcmp(mode, "pi"))
        pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock, &attributes);
    if (!strcmp(mode, "file") || !strcmp(mode, "sync")) {
        char path[4096];
        snprintf(path, sizeof(path), "%s.written", argv[3]);
        file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
        if (file < 0)
            return 3;
    }
    pthread_t last = start(control, "control", 80);
    if (!strcmp(mode, "lock") || !strcmp(mode, "inversion") || !strcmp(mode, "pi"))
        start(worker, "worker", 10);
    if (!strcmp(mode, "inversion") || !strcmp(mode, "pi"))
        start(vision, "vision", 50);
    if (!strcmp(mode, "hog"))
        start(vision, "vision", 90);
    pthread_join(last, NULL);
    FILE *log = fopen(argv[3], "w");
    for (int at = 0; at < count; at++)
        fprintf(log, "%d %lld %lld\n", at, due[at], done[at]);
    return fclose(log);
}
