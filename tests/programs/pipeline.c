/*
 * A pipeline of three threads: `sensor` every 4 ms by its timer, `plan` and `act` woken by the one
 * before. It logs when each item was due, when each stage began and ended it, and when the stage
 * went back to its wait.
 *
 * pipeline MODE SECONDS LOG; modes: none, slow (plan takes 6 ms for each fifth item), lock (a
 * `logger` has the mutex that plan needs, for 6 ms at each fifth).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PERIOD_NS 4000000LL
#define MOST 100000

struct item {
    long long due_ns, begin_ns[3], end_ns[3], back_ns[3];
};

static struct item items[MOST];
static int count;
static volatile int over;
static sem_t to_plan, to_act, to_logger;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

static void *plan(void *unused)
{
    for (int at = 0; at < count; at++) {
        sem_wait(&to_plan);
        items[at].begin_ns[1] = now_ns();
        pthread_mutex_lock(&lock);
        work(!strcmp(mode, "slow") && at % 5 == 0 ? 6000000 : 300000);
        pthread_mutex_unlock(&lock);
        items[at].end_ns[1] = now_ns();
        sem_post(&to_act);
        items[at].back_ns[1] = now_ns();
    }
    return unused;
}

static void *act(void *unused)
{
    for (int at = 0; at < count; at++) {
        sem_wait(&to_act);
        items[at].begin_ns[2] = now_ns();
        work(200000);
        items[at].end_ns[2] = items[at].back_ns[2] = now_ns();
    }
    return unused;
}

static void *logger(void *unused)
{
    for (;;) {
        sem_wait(&to_logger);
        pthread_mutex_lock(&lock);
        work(6000000);
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *sensor(void *unused)
{
    long long due_ns = (now_ns() / PERIOD_NS + 10) * PERIOD_NS;

    for (int at = 0; at < count; at++, due_ns += PERIOD_NS) {
        struct timespec until = {due_ns / 1000000000, due_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        items[at].due_ns = due_ns;
        items[at].begin_ns[0] = now_ns();
        work(200000);
        if (!strcmp(mode, "lock") && at % 5 == 0) {
            sem_post(&to_logger);
            work(100000);
        }
        items[at].end_ns[0] = now_ns();
        sem_post(&to_plan);
        items[at].back_ns[0] = now_ns();
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
    if (argc != 4)
        return 2;
    mode = argv[1];
    count = atof(argv[2]) * 1e9 / PERIOD_NS;
    if (count > MOST)
        count = MOST;
    pthread_t last = start(act, "act");
    start(plan, "plan");
    start(logger, "logger");
    start(sensor, "sensor");
    pthread_join(last, NULL);
    FILE *log = fopen(argv[3], "w");
    for (int at = 0; at < count; at++) {
        const struct item *own = &items[at];
        fprintf(log, "%d %lld", at, own->due_ns);
        for (int stage = 0; stage < 3; stage++)
            fprintf(log, " %lld %lld %lld", own->begin_ns[stage], own->end_ns[stage],
                    own->back_ns[stage]);
        fprintf(log, "\n");
    }
    return fclose(log);
}
