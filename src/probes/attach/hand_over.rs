//! Late wake-ups and cycles on their way from the programs to the threads that explain and profile
//! them.

use std::{collections::HashMap, sync::mpsc::Sender};

use super::followed::Followed;
use crate::{
    kernel::{AttachPrograms, AttachedLate},
    probes::LateCycle,
};

/// Late wake-ups go to whoever blames them, and cycles to `ended` too; programs are told what is
/// late from now on.
pub(super) fn hand_over(
    programs: &AttachPrograms,
    followed: &mut HashMap<usize, Followed>,
    ended: Option<&Sender<LateCycle>>,
) {
    for late in programs.take_late() {
        if let Some(followed) = followed.get_mut(&late.place)
            && followed.tid == late.tid
        {
            followed.hand_over(&late);
            // Where nobody listens, nobody wants to know.
            if let (Some(to), Some(cycle)) = (ended, late_cycle_of(&late)) {
                let _ = to.send(cycle);
            }
        }
    }
    for thread in programs.all() {
        let followed = followed.get(&thread.place);
        followed.into_iter().for_each(|followed| followed.set_threshold(&thread));
    }
}

/// The cycle, if it is one and no wake-up.
fn late_cycle_of(late: &AttachedLate) -> Option<LateCycle> {
    let begin_ns = late.hard_ns.unwrap_or(late.waking_ns);
    Some(LateCycle { tid: late.tid, begin_ns, end_ns: late.done_ns? })
}
