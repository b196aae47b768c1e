//! Run directories that others meddle with.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rustix::{
    fs::{RenameFlags, fstat, mknodat, renameat_with},
    process::geteuid,
};

use super::*;

const NOBODY: u32 = 65_534;

#[test]
fn a_limit_of_open_files_is_no_fault_of_the_place() {
    let said = |number| {
        let source = io::Error::from_raw_os_error(number);
        MakeError::Unwritable { path: "/x".into(), source }.to_string()
    };
    assert!(said(libc::EMFILE).ends_with("(os error 24)"), "{}", said(libc::EMFILE));
    assert!(said(libc::EROFS).ends_with(". Choose another place with -o or --store"));
}

#[test]
fn one_that_is_there_must_be_an_empty_directory_and_no_link() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    symlink(at("empty"), at("link")).unwrap();
    fs::write(at("file"), "").unwrap();
    fs::create_dir(at("full")).unwrap();
    fs::write(at("full/x"), "").unwrap();
    for name in ["link", "file", "full"] {
        let error = RunDirectory::make(&at(name)).unwrap_err();
        assert!(matches!(error, MakeError::Exists(_)), "{name}: {error}");
    }
    let error = RunDirectory::make(&at("file/below")).unwrap_err();
    assert!(matches!(error, MakeError::Unwritable { .. }), "{error}");
    RunDirectory::make(&at("empty")).unwrap();
    RunDirectory::make(&at("new/deep")).unwrap();
}

#[test]
fn what_takes_its_place_gets_nothing_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let directory = RunDirectory::make(&at("run")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/kept"), "kept").unwrap();
    fs::rename(at("run"), at("moved")).unwrap();
    symlink(at("other"), at("run")).unwrap();
    directory.create("a").unwrap();
    directory.replace("b", b"b").unwrap();
    directory.subdirectory("c").unwrap().create("d").unwrap();
    for name in ["a", "b", "c/d"] {
        assert!(at("moved").join(name).exists(), "{name}");
    }
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 1);
    directory.discard();
    assert_eq!(fs::read_dir(at("moved")).unwrap().count(), 0);
    assert_eq!(fs::read_to_string(at("other/kept")).unwrap(), "kept");
}

#[test]
fn a_link_in_it_is_neither_written_nor_read_nor_emptied_through() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let directory = RunDirectory::make(&at("run")).unwrap();
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/kept"), "kept").unwrap();
    symlink(at("other/kept"), at("run/file")).unwrap();
    symlink(at("other"), at("run/samples")).unwrap();
    assert!(directory.create("file").is_err() && directory.read("file").is_err());
    assert!(directory.subdirectory("samples").is_err());
    directory.replace("file", b"new").unwrap();
    assert_eq!(fs::read_to_string(at("run/file")).unwrap(), "new");
    directory.discard();
    assert!(!at("run").exists(), "it was made, and goes");
    assert_eq!(fs::read_to_string(at("other/kept")).unwrap(), "kept");
}

#[test]
fn a_fifo_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let directory = RunDirectory::make(&place.path().join("run")).unwrap();
    mknodat(&*directory.open, "file", FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let error = directory.read("file").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
}

#[test]
fn on_the_way_to_a_place_below_are_only_directories_and_nothing_leads_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let directory = RunDirectory::make(&at("lab")).unwrap();
    let below = |name: &str| directory.below(Path::new(name));
    below("a/b/0").unwrap().create("file").unwrap();
    below("a/b/1").unwrap().discard();
    assert!(at("lab/a/b/0/file").exists() && !at("lab/a/b/1").exists());
    assert_eq!(below("a/b/0").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    fs::create_dir(at("other")).unwrap();
    symlink(at("other"), at("lab/link")).unwrap();
    for name in ["link/0", "link", "../other/0", "a/../../other/0", "/nonexistent", "", "."] {
        assert!(below(name).is_err(), "{name}");
    }
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0);
    fs::rename(at("lab"), at("moved")).unwrap();
    symlink(at("other"), at("lab")).unwrap();
    below("a/c/0").unwrap();
    assert!(at("moved/a/c/0").exists());
    assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0);
}

#[test]
fn root_enters_no_directory_of_another_user() {
    if !geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let place = tempfile::tempdir().unwrap();
    let directory = RunDirectory::make(&place.path().join("lab")).unwrap();
    let theirs = place.path().join("lab/theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
    let error = directory.below(Path::new("theirs/0")).unwrap_err();
    assert_eq!(error.to_string(), "theirs belongs to user 65534");
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
}

#[test]
fn another_users_directory_in_the_place_of_one_just_made_gets_nothing_of_roots() {
    const ROUNDS: usize = 1_000;
    if !geteuid().is_root() {
        return eprintln!("skipped: needs root");
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str, round: usize| place.path().join(format!("{name}{round}"));
    for round in 0..ROUNDS {
        fs::create_dir(at("theirs", round)).unwrap();
        chown(at("theirs", round), Some(NOBODY), None).unwrap();
    }
    let round = AtomicUsize::new(0);
    let taken = thread::scope(|scope| {
        scope.spawn(|| {
            while let now @ 0..ROUNDS = round.load(Ordering::Relaxed) {
                let (own, theirs) = (at("run", now), at("theirs", now));
                // Fails until there is something to be swapped.
                while round.load(Ordering::Relaxed) == now {
                    let _ = renameat_with(CWD, &own, CWD, &theirs, RenameFlags::EXCHANGE);
                }
            }
        });
        let is_theirs = |_: &usize| {
            let made = RunDirectory::make(&at("run", round.load(Ordering::Relaxed)));
            round.fetch_add(1, Ordering::Relaxed);
            made.is_ok_and(|made| fstat(&made.open).is_ok_and(|about| about.st_uid != 0))
        };
        (0..ROUNDS).filter(is_theirs).count()
    });
    assert_eq!(taken, 0, "times that root would have written into their directory");
}
