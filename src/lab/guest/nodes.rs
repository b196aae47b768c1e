//! Two boxes in one guest: two network cards on one wire, each in its own network. In the first box
//! tardy measures, in the second a `tardy echo` answers. Both share the one CPU.
//!
//! It is one machine because two cannot be synchronized: each would count its own instructions, and
//! the host would decide which of them is ahead. Here a packet takes the whole path, through both
//! stacks and a real driver's interrupt on either side, and the same run is the same every time.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::run::probes::ProbeInfo;

/// The driver of the cards, and its options: an interrupt for every packet, since the time that a
/// card waits before it raises one is not caused by the kernel.
pub const DRIVER: (&str, &str) = ("e1000", "InterruptThrottleRate=0,0");

/// The address of the first box, where tardy measures.
pub const NEAR: &str = "192.0.2.1";

/// The address of the second, where the echo is.
pub const FAR: &str = "192.0.2.2";

/// The port that the echo listens on.
pub const PORT: u16 = 7117;

/// How many boxes a guest is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// A machine without a network.
    One,
    /// Two on one wire.
    Two,
}

/// The token of both ends; it need not be secret: nothing else is on this wire.
pub const TOKEN_FILE: &str = "/run/echo-token";

const TOKEN: &[u8] = b"two boxes of one guest\n";

/// The cards as the kernel names them, by the order of their places on the bus.
const CARDS: [&str; 2] = ["eth0", "eth1"];

/// The name of the second box's network.
const NETWORK: &str = "far";

const IP: &str = "/usr/bin/ip";

/// Lets a card raise an interrupt for every event. QEMU's default is at most one in 128
/// us, as with the real card, and then most round trips take two of these times.
const PROMPT: &str = ",mitigation=off";

/// The output of the second box's program.
const SAID: &str = "/run/far-said";

/// What it prints when it is ready.
const LISTENING: &str = "listening on ";

/// Longer than cards and programs need, of the guest's own time.
const LONGEST: Duration = Duration::from_secs(30);

/// Time between two checks of what is not ready yet.
const PAUSE: Duration = Duration::from_millis(1);

/// The arguments by which the measuring tardy finds the echo; none for probes that send nothing.
#[must_use]
pub fn way(probe: &str) -> Vec<String> {
    if ProbeInfo::find(probe).is_some_and(|probe| probe.takes_echo) {
        vec![format!("--to={FAR}:{PORT}"), format!("--token-file={TOKEN_FILE}")]
    } else {
        Vec::new()
    }
}

/// The arguments of the tardy in the second box, with `flags` of `tardy echo`.
#[must_use]
pub fn echo(flags: Vec<String>) -> Vec<String> {
    let fixed = ["echo".into(), format!("--listen={FAR}:{PORT}")];
    let token = format!("--token-file={TOKEN_FILE}");
    fixed.into_iter().chain([token]).chain(flags).collect()
}

/// The arguments with which this QEMU makes both cards and the wire between them.
///
/// # Errors
/// A QEMU that cannot be asked.
pub fn hardware(qemu: &Path) -> Result<Vec<String>> {
    let known = Command::new(qemu).args(["-device", "e1000,help"]).output();
    let known = known.context("cannot ask QEMU about its network cards")?;
    let is_modest = String::from_utf8_lossy(&known.stdout).contains("mitigation=");
    Ok(cards(if is_modest { PROMPT } else { "" }))
}

fn cards(more: &str) -> Vec<String> {
    let mut words = Vec::new();
    for number in 0..CARDS.len() {
        let place = 0x10 + number;
        words.extend([
            "-netdev".to_owned(),
            format!("hubport,id=net{number},hubid=0"),
            "-device".to_owned(),
            // Without the code to boot over it, which its own package has.
            format!(
                "e1000,netdev=net{number},mac=52:54:00:00:00:0{number},addr={place:#x},romfile=\
                 {more}"
            ),
        ]);
    }
    words
}

/// In the guest: joins the cards to their networks, starts `program` with `arguments` in the second
/// box, and waits until it listens.
///
/// # Errors
/// A missing `ip` or driver; a program that ends or does not listen, with its output.
pub fn start(program: &str, arguments: &[String]) -> Result<()> {
    wire()?;
    let mut token = fs::OpenOptions::new();
    let token = token.write(true).create_new(true).mode(0o600).open(TOKEN_FILE);
    token.and_then(|mut file| file.write_all(TOKEN)).context("cannot write the token")?;
    let said = fs::File::create(SAID).with_context(|| format!("cannot make {SAID}"))?;
    let child = Command::new(IP)
        .args(["netns", "exec", NETWORK, program])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        .spawn()
        .with_context(|| format!("cannot start {IP}"))?;
    wait_listening(child).map_err(|error| {
        let said = self::said();
        error.context(format!("the second box printed \"{said}\""))
    })
}

/// It says so.
fn wait_listening(mut child: Child) -> Result<()> {
    until("the second box's program does not listen", || {
        if let Some(status) = child.try_wait().context("cannot check the second box")? {
            bail!("the second box's program ended with {status}");
        }
        Ok(said().starts_with(LISTENING))
    })
}

/// What the program of the second box has printed.
#[must_use]
pub fn said() -> String {
    fs::read_to_string(SAID).unwrap_or_default().trim().to_owned()
}

/// Gives each box its card and its address, and waits until both ends see the wire.
fn wire() -> Result<()> {
    for card in CARDS {
        ensure!(
            Path::new("/sys/class/net").join(card).exists(),
            "the guest has no network card {card}: two boxes need a kernel with the module {}",
            DRIVER.0
        );
    }
    let [near, far] = CARDS;
    ip(&["netns", "add", NETWORK])?;
    ip(&["link", "set", far, "netns", NETWORK])?;
    let elsewhere = ["-netns", NETWORK];
    ip(&[&elsewhere[..], &["link", "set", "lo", "up"]].concat())?;
    for (before, card, address) in [(&[][..], near, NEAR), (&elsewhere[..], far, FAR)] {
        let address = format!("{address}/24");
        let run = |words: &[&str]| ip(&[before, words].concat());
        // Without IPv6 addresses, for which the kernel sends its own packets.
        run(&["link", "set", card, "addrgenmode", "none"])?;
        run(&["address", "add", &address, "dev", card])?;
        run(&["link", "set", card, "up"])?;
    }
    for (before, card) in [(&[][..], near), (&elsewhere[..], far)] {
        let show = [before, &["-oneline", "link", "show", card]].concat();
        until("no carrier on the wire", || Ok(ip(&show)?.contains("LOWER_UP")))?;
    }
    Ok(())
}

fn until(what: &str, mut ready: impl FnMut() -> Result<bool>) -> Result<()> {
    let began = Instant::now();
    while !ready()? {
        ensure!(began.elapsed() < LONGEST, "{what} after {} s", LONGEST.as_secs());
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Runs `ip`; what it prints.
fn ip(arguments: &[&str]) -> Result<String> {
    let output =
        Command::new(IP).args(arguments).stdin(Stdio::null()).output().with_context(|| {
            format!("cannot start {IP}; where the lab runs, apt-get install iproute2")
        })?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probes_that_send_get_an_address() {
        assert_eq!(way("pingpong")[0], "--to=192.0.2.2:7117");
        assert!(way("receive").is_empty() && way("timer").is_empty());
        let echo = echo(vec!["--priority=80".into()]);
        assert_eq!((echo[0].as_str(), echo[3].as_str()), ("echo", "--priority=80"));
    }

    #[test]
    fn both_cards_are_on_one_wire_and_no_two_are_the_same() {
        let words = cards(PROMPT).join(" ");
        assert_eq!(words.matches("hubid=0").count(), 2);
        assert_eq!(words.matches("mac=52:54:00:00:00:01").count(), 1, "{words}");
    }
}
