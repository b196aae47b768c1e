//! The parts of this directory together, on packages and kernels that are made up.

use std::cell::RefCell;

use super::{
    made::{elf, image},
    *,
};

const RELEASE: &str = "1.2-x";

/// What a complete kernel has.
const CONFIG: &str = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_SERIAL_8250_CONSOLE=y\nCONFIG_BINFMT_ELF=y\n\
    CONFIG_PROC_FS=y\nCONFIG_SYSFS=y\nCONFIG_DEVTMPFS=y\nCONFIG_DEBUG_INFO_BTF=y\n\
    CONFIG_HIGH_RES_TIMERS=y\nCONFIG_MODULES=y\nCONFIG_PREEMPT_RT=y\n";

/// A package whose kernel is `kernel`.
fn package_file(directory: &Path, kernel: &[u8]) -> PathBuf {
    let root = directory.join("made");
    for part in ["DEBIAN", "boot", &format!("lib/modules/{RELEASE}/kernel")] {
        fs::create_dir_all(root.join(part)).unwrap();
    }
    let control = "Package: linux-image-1.2-x\nVersion: 1\nArchitecture: all\n\
                   Maintainer: nobody <nobody@localhost>\nDescription: a test\n";
    fs::write(root.join("DEBIAN/control"), control).unwrap();
    fs::write(root.join("boot").join(format!("vmlinuz-{RELEASE}")), kernel).unwrap();
    fs::write(root.join("boot").join(format!("config-{RELEASE}")), CONFIG).unwrap();
    let deb = directory.join("linux-image-1.2-x.deb");
    let mut made = Command::new("dpkg-deb");
    package::run(made.args(["--build", "-Znone"]).arg(&root).arg(&deb)).unwrap();
    deb
}

fn source(path: &Path) -> KernelSource {
    KernelSource::parse(path.to_str().unwrap()).unwrap()
}

fn fetched(text: &str, cache: &Path) -> Result<Kernel> {
    get(&KernelSource::parse(text)?, cache, &|_| {})
}

fn error(text: &str, cache: &Path) -> String {
    format!("{:#}", fetched(text, cache).unwrap_err())
}

/// Names in a cache, without its lock.
fn names(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn whoever_asks_at_the_same_time_finds_a_whole_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let kernel = image(&elf(true));
    let source = source(&package_file(directory.path(), &kernel));
    for round in 0..5 {
        let cache = directory.path().join(format!("cache{round}"));
        let ask = || {
            let found = get(&source, &cache, &|_| {}).unwrap();
            assert_eq!(fs::read(found.image).unwrap(), kernel);
            assert_eq!(fs::read(found.boot).unwrap(), elf(true));
        };
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(ask))));
        assert_eq!(names(&cache).len(), 1, "{:?}", names(&cache));
    }
}

#[test]
fn a_package_file_has_everything_that_a_guest_needs() {
    let directory = tempfile::tempdir().unwrap();
    let deb = package_file(directory.path(), &image(&elf(true)));
    let cache = directory.path().join("cache");
    let asked = format!("{}+maxcpus=1+nosmt", deb.display());
    let kernel = fetched(&asked, &cache).unwrap();
    assert_eq!((kernel.asked, kernel.name.as_str()), (asked, RELEASE));
    assert_eq!(kernel.append, "maxcpus=1 nosmt");
    assert_eq!(kernel.hash, cache::sha256(&kernel.image).unwrap());
    assert!(kernel.root.unwrap().join("lib/modules/1.2-x/modules.dep").exists());
    assert_eq!(kernel.config.preemption(), Some("rt"));
    assert_eq!(kernel.lacks, []);
}

#[test]
fn what_changed_in_the_cache_is_unpacked_again() {
    let directory = tempfile::tempdir().unwrap();
    let deb = package_file(directory.path(), &image(&elf(true)));
    let cache = directory.path().join("cache");
    let kernel = fetched(deb.to_str().unwrap(), &cache).unwrap();
    for file in [&kernel.boot, &kernel.image] {
        let whole = fs::read(file).unwrap();
        fs::write(file, &whole[..whole.len() / 2]).unwrap();
        let damaged = list::content(&cache).unwrap();
        assert!(!damaged.packages[0].is_whole);
        assert_eq!(fetched(deb.to_str().unwrap(), &cache).unwrap(), kernel);
        assert_eq!(fs::read(file).unwrap(), whole);
    }
    assert!(list::content(&cache).unwrap().packages[0].is_whole);
    assert_eq!(names(&cache).len(), 1, "nothing is left over: {:?}", names(&cache));
}

#[test]
fn another_package_of_the_same_name_is_another_kernel() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let deb = package_file(directory.path(), &image(&elf(true)));
    let first = fetched(deb.to_str().unwrap(), &cache).unwrap();
    fs::remove_dir_all(directory.path().join("made")).unwrap();
    let other = [elf(true), b"another build".to_vec()].concat();
    package_file(directory.path(), &image(&other));
    let second = fetched(deb.to_str().unwrap(), &cache).unwrap();
    assert_ne!(first.hash, second.hash);
    assert_eq!(fs::read(second.boot).unwrap(), other);
    assert_eq!(fs::read(first.boot).unwrap(), elf(true), "which may be in use");
}

#[test]
fn a_damaged_package_or_one_without_a_kernel_is_an_error_that_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let deb = package_file(directory.path(), &image(&elf(true)));
    let whole = fs::read(&deb).unwrap();
    let cases: [(&[u8], &str); 3] = [
        (b"no package at all", "not a whole Debian package"),
        (&whole[..100], "not a whole Debian package"),
        (&whole[..whole.len() - 1500], "cannot unpack"),
    ];
    for (content, part) in cases {
        fs::write(&deb, content).unwrap();
        let error = error(deb.to_str().unwrap(), &cache);
        assert!(error.contains(part) && error.contains("linux-image-1.2-x.deb"), "{error}");
        assert_eq!(names(&cache), [""; 0]);
    }
    package_file(directory.path(), b"once upon a time");
    let said = error(deb.to_str().unwrap(), &cache);
    assert!(said.contains("vmlinuz-1.2-x: not a bzImage: the file is text"), "{said}");
    fs::remove_file(directory.path().join("made/boot/vmlinuz-1.2-x")).unwrap();
    let mut made = Command::new("dpkg-deb");
    made.args(["--build", "-Znone"]).arg(directory.path().join("made")).arg(&deb);
    package::run(&mut made).unwrap();
    assert!(error(deb.to_str().unwrap(), &cache).contains("has no kernel in it"));
    assert_eq!(names(&cache), [""; 0]);
}

#[test]
fn a_kernel_of_ones_own_brings_its_modules_and_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let (place, cache) = (directory.path(), directory.path().join("cache"));
    let file = place.join("bzImage");
    let release = "1.2-x+";
    fs::write(&file, image(&elf(true))).unwrap();
    let bare = fetched(file.to_str().unwrap(), &cache).unwrap();
    assert_eq!((bare.name.as_str(), &bare.root), (release, &None));
    let codes: Vec<&str> = bare.lacks.iter().map(|lack| lack.code.as_str()).collect();
    assert_eq!(codes, ["no_config", "no_module_files"]);
    assert_eq!(fs::read(&bare.boot).unwrap(), elf(true));
    fs::write(place.join(format!("config-{release}")), CONFIG).unwrap();
    let modules = place.join("m/lib/modules").join(release);
    let with = |part: &str| format!("{},modules={}", file.display(), place.join(part).display());
    fs::create_dir_all(&modules).unwrap();
    assert!(error(&with("m"), &cache).contains("depmod -b"));
    fs::write(modules.join("modules.dep"), "").unwrap();
    for part in ["m", "m/lib", "m/lib/modules", "m/lib/modules/1.2-x+"] {
        let kernel = fetched(&with(part), &cache).unwrap();
        assert_eq!(kernel.root, Some(place.join("m").canonicalize().unwrap()), "{part}");
        assert_eq!(kernel.lacks, []);
    }
    for part in ["cache", "nowhere"] {
        let error = error(&with(part), &cache);
        assert!(error.contains(&format!("modules={}", place.join(part).display())), "{error}");
    }
    assert_eq!(list::content(&cache).unwrap().own, 1);
}

#[test]
fn what_is_no_kernel_is_an_error_that_names_the_file_and_what_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let file = directory.path().join("vmlinuz");
    let path = file.to_str().unwrap();
    fs::write(&file, "a story\n").unwrap();
    assert!(error(path, &cache).contains("vmlinuz: not a bzImage: the file is text"));
    fs::write(&file, elf(false)).unwrap();
    assert!(error(path, &cache).contains("no CONFIG_PVH; give its bzImage"));
    assert!(error("/nowhere/vmlinuz", &cache).starts_with("kernel /nowhere/vmlinuz: No such"));
    assert!(error("/nowhere/x.deb", &cache).contains("no such file"));
    assert!(error(&format!("{}/", directory.path().display()), &cache).contains("not a file"));
    assert!(error("host", &cache).contains("does not boot in a guest"));
    assert!(!cache.exists(), "none of them needs a cache");
}

#[test]
fn a_variant_that_the_kernel_would_ignore_is_refused_and_another_model_reported() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let deb = package_file(directory.path(), &image(&elf(true)));
    let said = error(&format!("{}+preempt=full", deb.display()), &cache);
    assert!(said.contains("CONFIG_PREEMPT_DYNAMIC"), "{said}");
    let kernel = fetched(deb.to_str().unwrap(), &cache).unwrap();
    assert_eq!(kernel.preemption(), Some("rt"));
    let full = Kernel { append: "nosmt preempt=full".into(), ..kernel };
    assert_eq!(full.preemption(), Some("full"));
}

#[test]
fn a_kernel_that_cannot_boot_here_is_refused_with_the_reason() {
    let config = KernelConfig::parse(&CONFIG.replace("CONFIG_SERIAL_8250_CONSOLE=y", ""));
    let kernel = Kernel {
        name: "1.2-x".into(),
        lacks: missing_feature::of_config(&config),
        ..Kernel::default()
    };
    let error = kernel.check().unwrap_err().to_string();
    assert!(error.contains("1.2-x") && error.contains("SERIAL_8250_CONSOLE"), "{error}");
    assert!(Kernel::default().check().is_ok());
}

#[test]
fn who_has_to_wait_sees_why() {
    let directory = tempfile::tempdir().unwrap();
    let first = Cache::open(directory.path(), &|_| {}).unwrap();
    let held = RefCell::new(None::<Cache>);
    let said = RefCell::new(String::new());
    *held.borrow_mut() = Some(first);
    let second = Cache::open(directory.path(), &|line| {
        said.borrow_mut().push_str(line);
        // Now it is free.
        held.borrow_mut().take();
    });
    assert!(second.is_ok());
    assert!(said.borrow().contains("waiting for another tardy"), "{}", said.borrow());
}

/// Builds what lies in `made` anew, as [`package_file`] does.
fn rebuild(directory: &Path) -> PathBuf {
    let deb = directory.join("linux-image-1.2-x.deb");
    let mut made = Command::new("dpkg-deb");
    made.args(["--build", "-Znone"]).arg(directory.join("made")).arg(&deb);
    package::run(&mut made).unwrap();
    deb
}

#[test]
fn a_package_with_more_in_it_than_a_kernel_has_is_refused_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let deb = package_file(directory.path(), &image(&elf(true)));
    let cache = Cache::open(&directory.path().join("cache"), &|_| {}).unwrap();
    let extracted = |bytes, files| {
        let scratch = cache.scratch().unwrap();
        let limits = archive::ArchiveLimits { bytes, files };
        archive::extract(&deb, &scratch.path().join("root"), &cache, limits)
    };
    assert!(extracted(1 << 20, 100).is_ok());
    let error = |result: Result<()>| format!("{:#}", result.unwrap_err());
    assert!(error(extracted(4 << 10, 100)).contains("more than 0 MiB are in this package"));
    assert!(error(extracted(1 << 20, 4)).contains("more than 4 files are in this package"));
    // The size that it states is for its author to choose.
    let control = directory.path().join("made/DEBIAN/control");
    let mut text = fs::read_to_string(&control).unwrap();
    text.push_str("Installed-Size: 18446744073709551615\n");
    fs::write(&control, text).unwrap();
    assert_eq!(archive::size_of(&rebuild(directory.path())).unwrap(), u64::MAX);
}

#[test]
fn a_release_that_could_be_an_option_or_steer_a_terminal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    package_file(directory.path(), &image(&elf(true)));
    let boot = directory.path().join("made/boot");
    let mut before = format!("vmlinuz-{RELEASE}");
    let long = "1".repeat(65);
    for release in ["-x", "", "..", "1\u{1b}[2J", "1 2", long.as_str()] {
        let name = format!("vmlinuz-{release}");
        fs::rename(boot.join(&before), boot.join(&name)).unwrap();
        before = name;
        let said = error(rebuild(directory.path()).to_str().unwrap(), &cache);
        assert!(said.contains("names no release of a kernel"), "{release:?}: {said}");
    }
    assert_eq!(names(&cache), [""; 0]);
}

#[test]
fn of_a_kernel_that_a_record_names_only_what_is_in_the_cache_is_taken() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    let deb = package_file(directory.path(), &image(&elf(true)));
    let absent = |asked: &str, hash: &str| format!("{:#}", known(asked, hash, &cache).unwrap_err());
    assert!(absent("standard", "00").contains("--kernel"));
    assert!(!cache.exists(), "nothing is made");
    let hash = fetched(deb.to_str().unwrap(), &cache).unwrap().hash;
    let kernel = known("rt+nosmt", &hash, &cache).unwrap();
    assert_eq!((kernel.asked.as_str(), kernel.append.as_str()), ("rt+nosmt", "nosmt"));
    assert_eq!(kernel.hash, hash);
    assert!(absent("rt", "00").contains("is not in "));
    // Which would be there.
    assert!(absent(deb.to_str().unwrap(), &hash).contains("which is not a package"));
    fs::write(&kernel.image, "changed").unwrap();
    assert!(absent("rt", &hash).contains("is not in "), "damaged");
}

#[test]
fn what_lies_beside_a_kernel_of_ones_own_is_read_where_it_is_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let (place, cache) = (directory.path(), directory.path().join("cache"));
    let (file, config) = (place.join("bzImage"), place.join("config-1.2-x+"));
    fs::write(&file, image(&elf(true))).unwrap();
    fs::write(place.join("secret"), CONFIG).unwrap();
    let said = RefCell::new(String::new());
    let read = || {
        said.borrow_mut().clear();
        let notify = |line: &str| said.borrow_mut().push_str(line);
        let kernel = get(&source(&file), &cache, &notify).unwrap();
        !kernel.config.is_empty()
    };
    symlink(place.join("secret"), &config).unwrap();
    assert!(!read() && said.borrow().contains("config-1.2-x+ is not used"), "{said:?}");
    fs::remove_file(&config).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &config, fifo, 0o600.into(), 0).unwrap();
    assert!(!read() && said.borrow().contains("config-1.2-x+ is not used"), "{said:?}");
    fs::remove_file(&config).unwrap();
    // The lock of the cache may be said to be waited for: until it is another program, a process
    // that another test has forked holds it, too.
    assert!(!read() && !said.borrow().contains("config-"), "it is missing: {said:?}");
    let large = fs::File::create(&config).unwrap();
    large.set_len(LARGEST_CONFIG + 1).unwrap();
    assert!(!read() && said.borrow().contains("4 MiB"), "{said:?}");
    fs::write(&config, CONFIG).unwrap();
    assert!(read());
}

#[test]
fn links_in_a_package_are_followed_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("cache");
    package_file(directory.path(), &image(&elf(true)));
    let made = directory.path().join("made");
    let modules = made.join("lib/modules").join(RELEASE);
    symlink("/etc/passwd", modules.join("kernel/secret.ko")).unwrap();
    symlink("/", modules.join("build")).unwrap();
    fs::write(modules.join("kernel/veth.ko"), b"module").unwrap();
    fs::remove_file(made.join("boot").join(format!("config-{RELEASE}"))).unwrap();
    symlink("/dev/zero", made.join("boot").join(format!("config-{RELEASE}"))).unwrap();
    let kernel = fetched(rebuild(directory.path()).to_str().unwrap(), &cache).unwrap();
    let modules = kernel.root.unwrap().join("lib/modules").join(RELEASE);
    assert!(modules.join("kernel/veth.ko").is_file());
    for name in ["kernel/secret.ko", "build"] {
        assert!(modules.join(name).symlink_metadata().is_err(), "{name} is gone");
    }
    assert!(kernel.config.is_empty(), "it was a link");
    let vmlinuz = made.join("boot").join(format!("vmlinuz-{RELEASE}"));
    fs::remove_file(&vmlinuz).unwrap();
    symlink("/dev/zero", &vmlinuz).unwrap();
    let said = error(rebuild(directory.path()).to_str().unwrap(), &cache);
    assert!(said.contains("has no kernel in it"), "{said}");
    assert_eq!(names(&cache).len(), 1, "nothing is left over");
}
