//! Journals in a tree that stands for a machine: whole, torn, foreign, damaged, refused.

use std::{
    fs::{self, OpenOptions, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use super::*;

const IRQ: &str = "/proc/irq/7/smp_affinity_list";
const MASK: &str = "/proc/irq/default_smp_affinity";

/// Gives a tree that stands for a machine what tells its boots apart.
pub(crate) fn plant_boot_id(directory: &Path) {
    let boot_id = directory.join("proc/sys/kernel/random/boot_id");
    fs::create_dir_all(boot_id.parent().unwrap()).unwrap();
    fs::write(boot_id, "boot-1\n").unwrap();
}

/// A journal in a tree that stands for a machine.
pub(crate) fn journal_in(directory: &Path) -> Journal {
    plant_boot_id(directory);
    let place = JournalPath::at(directory.join("run/journal"));
    Journal::claim(&place, &Root::at(directory), "test").unwrap()
}

struct Machine {
    directory: tempfile::TempDir,
    root: Root,
    place: JournalPath,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let at = |path: &str| directory.path().join(path);
        fs::create_dir_all(at("proc/irq/7")).unwrap();
        plant_boot_id(directory.path());
        fs::write(at("proc/irq/7/smp_affinity_list"), "0-1\n").unwrap();
        fs::write(at("proc/irq/default_smp_affinity"), "3\n").unwrap();
        let root = Root::at(directory.path());
        let place = JournalPath::at(at("run/tardy/journal"));
        Self { directory, root, place }
    }

    fn claim(&self) -> Result<Journal, JournalError> {
        Journal::claim(&self.place, &self.root, "tardy test")
    }

    fn value(&self, path: &str) -> String {
        self.root.read(path).unwrap()
    }

    /// Changes both files, as a shield would.
    fn change(&self, journal: &mut Journal) {
        let changes = [IRQ, MASK].map(|path| Change::of_file(&self.root, path).unwrap());
        journal.note(changes.to_vec()).unwrap();
        [IRQ, MASK].iter().for_each(|path| fs::write(self.root.path(path), "1").unwrap());
    }

    /// Leaves the journal of a process that is gone, with `more` at its end.
    fn killed(&self, more: &str) {
        let mut journal = self.claim().unwrap();
        self.change(&mut journal);
        let text = fs::read_to_string(self.place.path()).unwrap();
        // The process with this number began at another time: not the owner.
        let text = text.replace(&format!("\"start\":{}", journal.owner.start), "\"start\":1");
        // As the kernel does: nothing is undone, and the lock is gone.
        journal.open = false;
        drop(journal);
        fs::write(self.place.path(), text + more).unwrap();
    }

    fn recover(&self) -> Undone {
        match recover(&self.place, &self.root).unwrap() {
            Recovered::Undone(undone) => undone,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_was_changed_is_put_back_last_change_first_and_the_journal_goes() {
    let machine = Machine::new();
    let mut journal = machine.claim().unwrap();
    machine.change(&mut journal);
    let text = fs::read_to_string(machine.place.path()).unwrap();
    assert_eq!(text.lines().count(), 3, "owner and two changes: {text}");
    let undone = journal.undo();
    assert_eq!(undone.put_back, [format!("{MASK}: 3"), format!("{IRQ}: 0-1")]);
    assert_eq!(undone.failed, [""; 0]);
    assert_eq!((machine.value(IRQ), machine.value(MASK)), ("0-1".into(), "3".into()));
    assert!(!machine.place.path().exists());
}

#[test]
fn dropping_undoes_too_also_in_a_panic() {
    let machine = Machine::new();
    let died = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut journal = machine.claim().unwrap();
        machine.change(&mut journal);
        panic!("as planned");
    }));
    assert!(died.is_err());
    assert_eq!(machine.value(IRQ), "0-1");
    assert!(!machine.place.path().exists());
}

#[test]
fn a_second_one_is_refused_while_the_first_lives_which_is_named() {
    let machine = Machine::new();
    let first = machine.claim().unwrap();
    let error = machine.claim().unwrap_err().to_string();
    let pid = std::process::id().to_string();
    assert!(error.contains(&pid) && error.contains("tardy test"), "{error}");
    let found = recover(&machine.place, &machine.root).unwrap();
    assert_eq!(found, Recovered::Alive(first.owner.clone()), "nobody undoes what is held");
    drop(first);
    machine.claim().unwrap();
}

#[test]
fn what_a_killed_one_left_is_put_back_and_a_torn_last_line_was_never_a_change() {
    let machine = Machine::new();
    machine.killed("{\"change\":\"file\",\"path\":\"/proc/irq/8/smp_aff");
    let undone = machine.recover();
    assert_eq!((undone.put_back.len(), undone.failed.len()), (2, 0), "{undone:?}");
    assert_eq!(machine.value(IRQ), "0-1");
    assert_eq!(recover(&machine.place, &machine.root), Ok(Recovered::Nothing));
}

#[test]
fn the_next_one_that_changes_puts_back_first() {
    let machine = Machine::new();
    machine.killed("");
    let mut journal = machine.claim().unwrap();
    assert_eq!(machine.value(IRQ), "0-1", "before it looks at what there is");
    journal.undo();
}

#[test]
fn a_journal_of_another_boot_is_discarded_and_changes_nothing() {
    let machine = Machine::new();
    machine.killed("");
    fs::write(machine.root.path("/proc/sys/kernel/random/boot_id"), "boot-2").unwrap();
    assert_eq!(recover(&machine.place, &machine.root), Ok(Recovered::OtherBoot));
    assert_eq!(machine.value(IRQ), "1", "that is what this boot has");
    assert!(!machine.place.path().exists());
}

#[test]
fn a_damaged_line_is_reported_the_others_are_undone_and_it_is_out_of_the_way() {
    let machine = Machine::new();
    machine.killed("{\"change\":\n{\"change\":\"file\",\"path\":\"/etc/passwd\",\"old\":\"\"}\n");
    let undone = machine.recover();
    assert_eq!(undone.put_back.len(), 2, "{undone:?}");
    assert!(undone.failed[0].contains("line 4") && undone.failed[0].contains("damaged"));
    assert!(undone.failed[1].contains("line 5"), "{undone:?}");
    assert_eq!(recover(&machine.place, &machine.root), Ok(Recovered::Nothing));
    assert!(machine.place.path().with_extension("damaged").exists());
}

#[test]
fn the_directory_is_there_while_there_is_something_to_put_back() {
    let machine = Machine::new();
    let directory = machine.place.path().parent().unwrap().to_owned();
    let mut journal = machine.claim().unwrap();
    assert!(directory.exists());
    journal.undo();
    assert!(!directory.exists());
    machine.killed("");
    assert!(directory.exists());
    machine.recover();
    assert!(!directory.exists());
    // A process that works in it keeps it, and the next one finds it.
    let mut journal = machine.claim().unwrap();
    let other = fs::File::open(directory.join("lock")).unwrap();
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).unwrap();
    journal.undo();
    assert!(directory.join("lock").exists());
    drop(other);
    machine.claim().unwrap().undo();
    assert!(!directory.exists());
}

#[test]
fn a_lock_that_a_killed_one_left_without_a_journal_is_taken_away() {
    let machine = Machine::new();
    let directory = machine.place.path().parent().unwrap().to_owned();
    let place = Place::make(&machine.place).unwrap();
    drop(place.beside("lock").unwrap());
    assert!(recover(&machine.place, &machine.root).is_ok() && !directory.exists());
    // Not that of a process that is about to write a journal.
    let held = Place::make(&machine.place).unwrap().beside("lock").unwrap();
    take_lock(&held).unwrap();
    assert_eq!(recover(&machine.place, &machine.root), Ok(Recovered::Nothing));
    assert!(directory.join("lock").exists());
}

#[test]
fn one_that_was_killed_is_waited_for_until_its_files_are_closed() {
    let machine = Machine::new();
    machine.killed("");
    let text = fs::read_to_string(machine.place.path()).unwrap();
    let owner: Owner = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert!(owner.is_ending(), "it is of this PID namespace, and gone: {owner:?}");
    assert!(owner.words().contains(", which is ending (tardy test)"), "{}", owner.words());
    // As the kernel has it open for a moment longer.
    let open = fs::File::open(machine.place.path()).unwrap();
    take_lock(&open).unwrap();
    let undone = std::thread::scope(|scope| {
        let recovering = scope.spawn(|| machine.recover());
        scope.spawn(move || drop(open));
        recovering.join().unwrap()
    });
    assert_eq!(undone.put_back, [format!("{MASK}: 3"), format!("{IRQ}: 0-1")]);
}

#[test]
fn a_journal_without_an_owner_is_not_believed() {
    for text in ["", "{\"boot_id\":\"bo"] {
        let machine = Machine::new();
        machine.claim().unwrap().undo();
        fs::create_dir(machine.place.path().parent().unwrap()).unwrap();
        fs::write(machine.place.path(), text).unwrap();
        fs::set_permissions(machine.place.path(), Permissions::from_mode(0o600)).unwrap();
        assert_eq!(recover(&machine.place, &machine.root), Ok(Recovered::Nothing), "{text}");
    }
    let machine = Machine::new();
    machine.killed("");
    let text = fs::read_to_string(machine.place.path()).unwrap();
    fs::write(machine.place.path(), text.replacen("boot_id", "boot", 1)).unwrap();
    let undone = machine.recover();
    assert!(undone.put_back.is_empty() && undone.failed[0].contains("line 1"), "{undone:?}");
    assert_eq!(machine.value(IRQ), "1");
}

#[test]
fn what_cannot_be_put_back_is_named_and_kept_and_the_rest_is_put_back() {
    let machine = Machine::new();
    machine.killed("");
    // It takes the old value and does not show it: as a file that ends in white space.
    let text = fs::read_to_string(machine.place.path()).unwrap();
    fs::write(machine.place.path(), text.replace("\"old\":\"0-1\"", "\"old\":\"0-1 \"")).unwrap();
    let undone = machine.recover();
    assert_eq!(undone.put_back, [format!("{MASK}: 3")]);
    assert!(undone.failed[0].contains(IRQ), "{undone:?}");
    let error = machine.claim().unwrap_err().to_string();
    assert!(error.contains(IRQ) && error.contains("by hand"), "{error}");
    let text = fs::read_to_string(machine.place.path()).unwrap();
    assert!(text.contains(IRQ) && !text.contains(MASK), "only what is open is kept: {text}");
}

#[test]
fn where_old_values_cannot_be_written_down_nothing_is_changed() {
    let machine = Machine::new();
    fs::write(machine.directory.path().join("run"), "no directory").unwrap();
    let error = machine.claim().unwrap_err().to_string();
    assert!(error.contains("run/tardy/journal") && error.contains("nothing is changed"), "{error}");
}

#[test]
fn a_full_disk_refuses_the_note() {
    if !Path::new("/dev/full").exists() {
        return;
    }
    let machine = Machine::new();
    let mut journal = machine.claim().unwrap();
    journal.file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let change = Change::of_file(&machine.root, IRQ).unwrap();
    let error = journal.note(vec![change]).unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!(journal.undo(), Undone::default());
}

#[test]
fn who_holds_the_lock_is_alive_whatever_its_number_means_here() {
    let machine = Machine::new();
    let mut journal = machine.claim().unwrap();
    machine.change(&mut journal);
    // As of another PID namespace: no such process is seen from here.
    let text = fs::read_to_string(machine.place.path()).unwrap();
    let text = text.replace(&format!("\"start\":{}", journal.owner.start), "\"start\":1");
    let space = format!("\"pid_namespace\":{}", journal.owner.pid_namespace.unwrap());
    fs::write(machine.place.path(), text.replace(&space, "\"pid_namespace\":1")).unwrap();
    let Recovered::Alive(owner) = recover(&machine.place, &machine.root).unwrap() else { panic!() };
    assert!(!owner.is_seen());
    let error = machine.claim().unwrap_err().to_string();
    assert!(error.contains("of another PID namespace (tardy test)"), "{error}");
    assert!(!error.contains("kill"), "its number is another process here: {error}");
    // Nor does another boot id make it a thing of the past.
    fs::write(machine.root.path("/proc/sys/kernel/random/boot_id"), "boot-2").unwrap();
    assert!(matches!(recover(&machine.place, &machine.root), Ok(Recovered::Alive(_))));
    assert_eq!(machine.value(IRQ), "1", "nothing was undone");
    assert_eq!(journal.undo().failed, [""; 0]);
    assert_eq!(machine.value(IRQ), "0-1");
}

#[test]
fn without_a_boot_id_nothing_is_discarded_undone_or_changed() {
    let machine = Machine::new();
    machine.killed("");
    let boot_id = machine.root.path("/proc/sys/kernel/random/boot_id");
    for unreadable in [false, true] {
        if unreadable {
            fs::remove_file(&boot_id).unwrap();
        } else {
            fs::write(&boot_id, "\n").unwrap();
        }
        assert_eq!(recover(&machine.place, &machine.root), Err(JournalError::NoBootId));
        assert_eq!(machine.claim().unwrap_err(), JournalError::NoBootId);
        assert_eq!(machine.value(IRQ), "1");
    }
    fs::write(&boot_id, "boot-1\n").unwrap();
    assert_eq!(machine.recover().put_back.len(), 2, "the journal is still there");
    fs::remove_file(&boot_id).unwrap();
    assert_eq!(machine.claim().unwrap_err(), JournalError::NoBootId, "no journal could be told");
    assert!(!machine.place.path().exists());
}

#[test]
fn a_journal_without_a_boot_is_set_aside() {
    let machine = Machine::new();
    machine.killed("");
    let text = fs::read_to_string(machine.place.path()).unwrap();
    fs::write(machine.place.path(), text.replace("boot-1", "")).unwrap();
    let undone = machine.recover();
    assert!(undone.put_back.is_empty() && undone.failed[0].contains("line 1"), "{undone:?}");
    assert_eq!(machine.value(IRQ), "1");
}

#[test]
fn a_journal_that_others_may_write_is_neither_believed_nor_removed() {
    let machine = Machine::new();
    machine.killed("");
    let path = machine.place.path();
    let before = fs::read_to_string(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
    let error = recover(&machine.place, &machine.root).unwrap_err().to_string();
    assert!(error.contains("others may write to it (mode 666)"), "{error}");
    assert!(machine.claim().unwrap_err().to_string().contains("mode 666"));
    assert_eq!(machine.value(IRQ), "1");
    assert_eq!(fs::read_to_string(path).unwrap(), before);
}

#[test]
fn a_journal_that_took_the_place_of_ones_own_stays() {
    let machine = Machine::new();
    let mut first = machine.claim().unwrap();
    machine.change(&mut first);
    // By hand, while its owner lives.
    fs::remove_file(machine.place.path()).unwrap();
    let second = machine.claim().unwrap();
    assert_eq!(first.undo().put_back.len(), 2);
    assert!(machine.place.path().exists(), "it is the second one's");
    drop(second);
    assert!(!machine.place.path().exists());
}

#[test]
fn a_lock_that_was_taken_away_keeps_nobody_from_a_journal_that_is_being_begun() {
    let machine = Machine::new();
    machine.killed("");
    // As the kernel names it.
    let lock = machine.place.path().with_file_name("lock").canonicalize().unwrap();
    let hold = || {
        let file = OpenOptions::new().create(true).append(true).open(&lock).unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o600)).unwrap();
        take_lock(&file).unwrap();
        file
    };
    // Also by the one that waits for it.
    let is_waited_for = || {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|fd| fs::read_link(fd.path()).is_ok_and(|file| file == lock)).count() == 2
    };
    let first = hold();
    std::thread::scope(|scope| {
        let recovering = scope.spawn(|| recover(&machine.place, &machine.root));
        let wait = || {
            while !is_waited_for() {
                assert!(!recovering.is_finished(), "it does not wait for the lock");
                std::thread::yield_now();
            }
        };
        wait();
        // The first one has put everything back and taken the lock away; the next holds its own
        // lock, and its journal is new, and not locked yet.
        fs::remove_file(&lock).unwrap();
        let second = hold();
        fs::write(machine.place.path(), "").unwrap();
        drop(first);
        wait();
        assert!(machine.place.path().exists(), "it is another's");
        fs::remove_file(machine.place.path()).unwrap();
        drop(second);
        assert_eq!(recovering.join().unwrap(), Ok(Recovered::Nothing));
    });
}
