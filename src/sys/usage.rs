//! CPU time of another process or thread that still runs. Reads only.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;

/// CPU time of `pid`, all its threads, and the children that it has waited for; `None` without such
/// a process. The children's is whole clock ticks, some 10 ms.
#[must_use]
pub fn cpu_time(pid: Pid) -> Option<Duration> {
    Some(own_cpu_time(pid)? + children_cpu_time(pid).unwrap_or_default())
}

fn own_cpu_time(pid: Pid) -> Option<Duration> {
    let mut clock = 0;
    // SAFETY: the pointer leads to a live, writable local of the type that is written.
    let failed = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &raw mut clock) };
    if failed == 0 { time_of(clock) } else { None }
}

/// CPU time of thread `tid` of this process; `None` without such a thread.
#[must_use]
pub fn thread_cpu_time(tid: i32) -> Option<Duration> {
    // The kernel's number of a thread's clock: CPUCLOCK_SCHED and CPUCLOCK_PERTHREAD_MASK of
    // include/linux/posix-timers_types.h.
    time_of(!tid << 3 | 2 | 4)
}

fn time_of(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer leads to a live, writable local of the type that is written; a clock
    // whose process or thread has ended is an error and no more.
    let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (failed == 0).then(|| Duration::new(seconds, nanos))
}

fn children_cpu_time(pid: Pid) -> Option<Duration> {
    let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let ticks = children_ticks(&stat)?;
    let per_second = clock_ticks_per_second().max(1);
    Some(Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / per_second)))
}

/// User and system time of children, fields 16 and 17; see `parent_in_stat` about the name.
fn children_ticks(stat: &[u8]) -> Option<u64> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')?;
    let rest = std::str::from_utf8(stat.get(after_name + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_used_cpu_time_and_uses_more() {
        let own = rustix::process::getpid();
        let before = cpu_time(own).unwrap();
        let mut value = 1_u64;
        while cpu_time(own).unwrap() < before + Duration::from_millis(1) {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        assert!(cpu_time(own).unwrap() > before);
    }

    #[test]
    fn a_thread_has_used_what_it_used_and_not_what_others_did() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, until_end) = std::sync::mpsc::channel::<()>();
        let idle = std::thread::spawn(move || {
            sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = until_end.recv();
        });
        let tid = receiver.recv().unwrap();
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        let before = thread_cpu_time(own).unwrap();
        let mut value = 1_u64;
        while thread_cpu_time(own).unwrap() < before + Duration::from_millis(50) {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
        assert!(thread_cpu_time(tid).unwrap() < Duration::from_millis(50), "it only waits");
        end.send(()).unwrap();
        idle.join().unwrap();
    }

    #[test]
    fn a_process_or_a_thread_that_is_not_there_has_none() {
        assert_eq!(thread_cpu_time(1 << 22), None);
        // The largest number that the kernel could give to a process, and never does.
        assert_eq!(cpu_time(Pid::from_raw(1 << 22).unwrap()), None);
    }

    #[test]
    fn the_times_of_children_are_found_behind_the_name() {
        let stat = b"42 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 30 4 17 18";
        assert_eq!(children_ticks(stat), Some(34));
        assert_eq!(children_ticks(b"42 (x) S 1"), None);
    }
}
