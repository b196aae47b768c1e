//! Random numbers that can be repeated: the seed is printed, and `TARDY_TEST_SEED` sets it. And
//! campaigns: something is done many times with random numbers, and what comes out is counted.

use std::{collections::BTreeMap, fmt::Display, io::Write, time::SystemTime};

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Chance(u64);

impl Chance {
    /// A fresh seed, printed on standard error, or the one that was asked for.
    pub(crate) fn new(what: impl Display) -> Self {
        let asked = std::env::var("TARDY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = asked.unwrap_or_else(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        });
        // Past the harness: a test that is killed for its time must have printed it, too.
        let _ = writeln!(std::io::stderr().lock(), "{what}: TARDY_TEST_SEED={seed}");
        Self(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is more than 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// Something that is done many times, and what came out, by kind.
pub(crate) struct Campaign {
    name: &'static str,
    seed: u64,
    /// What it is done with.
    pub chance: Chance,
    kinds: BTreeMap<String, usize>,
}

impl Campaign {
    pub(crate) fn new(name: &'static str) -> Self {
        let chance = Chance::new(name);
        Self { name, seed: chance.0, chance, kinds: BTreeMap::new() }
    }

    /// It was done once more, with this.
    pub(crate) fn came(&mut self, kind: impl Into<String>) {
        *self.kinds.entry(kind.into()).or_default() += 1;
    }

    /// Says what came out: a row of docs/explanation/reliability.md.
    pub(crate) fn end(self) {
        let times: usize = self.kinds.values().sum();
        let kinds: Vec<String> =
            self.kinds.iter().map(|(kind, times)| format!("{kind} {times}")).collect();
        let (name, seed, kinds) = (self.name, self.seed, kinds.join(", "));
        // Past the harness, which hides what passing tests print.
        let line = format!("campaign {name}: seed {seed}, {times} times: {kinds}");
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    }
}

/// `count` of these, or all if there are fewer.
pub(crate) fn some_of<T>(mut all: Vec<T>, count: usize, chance: &mut Chance) -> Vec<T> {
    while all.len() > count {
        all.swap_remove(chance.below(all.len()));
    }
    all
}

/// How often something is to be done: so often, or where long versions were asked for, so often;
/// `TARDY_TEST_REPEATS` sets it.
pub(crate) fn repeats(short: usize, long: usize) -> usize {
    let asked = std::env::var("TARDY_TEST_REPEATS").ok().and_then(|number| number.parse().ok());
    asked.unwrap_or(if is_long() { long } else { short })
}

/// Whether the long versions were asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("TARDY_TEST_LONG").is_some_and(|value| value == "1")
}
