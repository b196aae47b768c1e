//! tardy as root where other users may write, and with rights that its user does not have: what is
//! theirs is neither followed nor believed.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
};

use super::support::{NOBODY, SHORT, Store, is_root, skip};

#[test]
fn root_refuses_a_run_directory_of_another_user() {
    if !is_root() {
        return skip("needs root");
    }
    let store = Store::new();
    let place = store.path().join("theirs");
    fs::create_dir(&place).unwrap();
    chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
    let run = [&SHORT[..], &["--duration", "200ms", "-o", "theirs"]].concat();
    let said = store.run(&run);
    assert_eq!((said.code, said.out.as_str()), (Some(2), ""), "{said:?}");
    assert!(said.err.contains("theirs belongs to user 65534"), "{said:?}");
    assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "nothing was written");
    chown(&place, Some(0), Some(0)).unwrap();
    let said = store.run(&run);
    assert_eq!(said.code, Some(0), "root's own will do: {said:?}");
}

#[test]
fn a_page_is_not_written_through_links_that_were_there_before() {
    let store = Store::new();
    store.made_up("1000");
    let at = |name: &str| store.path().join(name);
    fs::write(at("other"), "kept").unwrap();
    for name in ["page.html", "page.html.tmp", "page.tmp", ".page.html.tmp"] {
        symlink(at("other"), at(name)).unwrap();
    }
    let said = store.run(&["report", "r", "-o", "page.html"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(fs::read_to_string(at("other")).unwrap(), "kept");
    assert!(fs::symlink_metadata(at("page.html")).unwrap().is_file(), "the link was replaced");
}
