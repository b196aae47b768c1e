//! The load `sound`: programs that play sound through ALSA.
//!
//! Each player is a process that hands silence to its own `aplay`, a period at a time, through a
//! pipe that holds one, or as many as fit into a page. A period handed over is one operation:
//! `aplay` has taken all by then but those in the pipe. ALSA's device `null`, the default, takes
//! everything at once (20 MB in 11 ms) and would never wait for time, so that the player does: it
//! hands over a period every 99.9% of its length. A device that is slower holds it up by the pipe,
//! so that a real one sets the pace.

use std::{
    fmt,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use tardy_hot::clock::now_ns;

use super::program;
use crate::loads::{
    Load, LoadError, LoadSpec, LoadWork, Need, Parameter, ParameterKind,
    task_loop::{PROCESS_BYTES, processes, sleep_until},
    worker_pool::WorkerPool,
};

/// Its line in the table.
pub const LOAD: Load = Load {
    name: "sound",
    summary: "Plays silence through ALSA by aplay, paced as a sound device is.",
    unit: "periods played",
    parameters: PARAMETERS,
    work: Some(LoadWork { need, start }),
};

const PARAMETERS: &[Parameter] = &[
    Parameter {
        key: "players",
        help: "Number of players, a process and an aplay each.",
        default: "1",
        kind: ParameterKind::Count { min: 1, max: 512 },
    },
    Parameter {
        key: "frames",
        help: "Frames of a period, at 48 kHz.",
        default: "1024",
        kind: ParameterKind::Count { min: 32, max: 16_384 },
    },
    Parameter {
        key: "device",
        help: "The ALSA device; null needs no sound card.",
        default: "null",
        kind: ParameterKind::Text,
    },
];

/// The program that plays.
const PROGRAM: &str = "aplay";

const RATE_HZ: u64 = 48_000;

/// Two channels of 16 bits.
const FRAME_BYTES: u64 = 4;

/// `aplay` with the libraries that it loads.
const PLAYER_BYTES: u64 = 8 << 20;

fn need(spec: &LoadSpec) -> Result<Need, LoadError> {
    find_program(spec)?;
    let players = spec.number("players")?;
    Ok(Need {
        tasks: players,
        counters: players,
        memory_bytes: players * (PLAYER_BYTES + PROCESS_BYTES),
        open_files: 2,
        ..Need::default()
    })
}

fn find_program(spec: &LoadSpec) -> Result<PathBuf, LoadError> {
    program::find(PROGRAM).ok_or_else(|| LoadError::Missing {
        load: spec.name.clone(),
        what: format!("`{PROGRAM}`, which is not found in PATH"),
        remedy: "install it (Debian, Ubuntu, Fedora, Alpine: the package alsa-utils)".to_owned(),
    })
}

fn start(spec: &LoadSpec, pool: &mut WorkerPool) -> Result<(), LoadError> {
    let program = find_program(spec)?;
    let (frames, device) = (spec.number("frames")?, spec.text("device")?);
    let prepare = |_| Player::start(&program, device, frames);
    processes(pool, 0..spec.number("players")?, prepare, Player::period)
}

/// A player, and when its next period is due.
struct Player {
    aplay: Child,
    pipe: ChildStdin,
    silence: Vec<u8>,
    pace_ns: i64,
    next_ns: i64,
}

impl fmt::Debug for Player {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Player").field("aplay", &self.aplay.id()).finish_non_exhaustive()
    }
}

/// From one period to the next, ns: 99.9% of its length.
const fn pace_ns(frames: u64) -> i64 {
    (frames * 999_000_000 / RATE_HZ).cast_signed()
}

impl Player {
    /// Starts `aplay`, and waits until it has taken some periods: its device is open then.
    fn start(program: &Path, device: &str, frames: u64) -> io::Result<Self> {
        let size = |name: &str, frames: u64| format!("--{name}-size={frames}");
        let mut aplay = Command::new(program)
            .args(["-q", "-t", "raw", "-f", "S16_LE", "-c", "2", "-r", &RATE_HZ.to_string()])
            .args([size("period", frames), size("buffer", 4 * frames)])
            .args(["-D", device, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let pipe = aplay.stdin.take().ok_or_else(|| io::Error::other("aplay has no pipe"))?;
        let bytes = usize::try_from(frames * FRAME_BYTES).map_err(io::Error::other)?;
        // What is in the pipe was not played: the kernel rounds up to pages.
        rustix::pipe::fcntl_setpipe_size(&pipe, bytes)?;
        let held = rustix::pipe::fcntl_getpipe_size(&pipe)? / bytes;
        let silence = vec![0; bytes];
        let mut player = Self { aplay, pipe, silence, pace_ns: pace_ns(frames), next_ns: 0 };
        for _ in 0..held + 2 {
            player.hand_over()?;
        }
        player.next_ns = now_ns();
        Ok(player)
    }

    /// One period, when it is due. One that is late is not made up for.
    fn period(&mut self) -> io::Result<()> {
        sleep_until(self.next_ns)?;
        self.next_ns = now_ns().max(self.next_ns + self.pace_ns);
        self.hand_over()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.pipe.write_all(&self.silence).map_err(|error| {
            // It has closed its end, and so ends.
            match self.aplay.wait() {
                Ok(status) => io::Error::other(format!("{PROGRAM} ended with {status}")),
                Err(_) => error,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_player_hands_over_a_period_in_its_time_and_notices_when_its_program_ends() {
        if program::find(PROGRAM).is_none() {
            return println!("skipped: no aplay");
        }
        let mut player = Player::start(Path::new(PROGRAM), "null", 1_024).unwrap();
        let begin_ns = now_ns();
        for _ in 0..6 {
            player.period().unwrap();
        }
        // Five waits: the first period was due at once.
        assert!(now_ns() - begin_ns >= 5 * pace_ns(1_024), "it did not wait for time");
        player.aplay.kill().unwrap();
        let said = (0..100).find_map(|_| player.period().err()).unwrap().to_string();
        assert!(said.starts_with("aplay ended with"), "{said}");
    }

    #[test]
    fn a_device_that_is_not_there_is_found_out_at_the_start() {
        if program::find(PROGRAM).is_none() {
            return println!("skipped: no aplay");
        }
        let said = Player::start(Path::new(PROGRAM), "no-such-device", 1_024).unwrap_err();
        assert!(said.to_string().contains("aplay ended with"), "{said}");
    }
}
