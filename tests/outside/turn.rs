//! Who may use the machine when: most tests beside each other, those that change all of it alone.

use std::{
    cell::Cell,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// How the tests of this program share the machine.
struct Users {
    beside: u32,
    /// Somebody is alone, or waits for it.
    alone: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users { beside: 0, alone: false });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// How many turns this test has, and whether it is alone. Only the first waits for others.
    static OWN: Cell<(u32, bool)> = const { Cell::new((0, false)) };
}

/// A test's leave to use the machine, as long as this lives. Stays in the test's own thread.
#[derive(Debug)]
pub(crate) struct Turn(());

impl Turn {
    /// Beside others that do not change the whole machine.
    pub(crate) fn beside() -> Self {
        if OWN.get().0 == 0 {
            wait_while(|users| users.alone).beside += 1;
        }
        OWN.set((OWN.get().0 + 1, OWN.get().1));
        Self(())
    }

    /// With nobody else. Must be the first of its test.
    pub(crate) fn alone() -> Self {
        assert_eq!(OWN.get().0, 0, "it would wait for itself");
        wait_while(|users| users.alone).alone = true;
        drop(wait_while(|users| users.beside > 0));
        OWN.set((1, true));
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (held, alone) = OWN.get();
        OWN.set((held - 1, alone && held > 1));
        if held == 1 {
            let mut users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
            if alone {
                users.alone = false;
            } else {
                users.beside -= 1;
            }
            CHANGED.notify_all();
        }
    }
}

fn wait_while(busy: impl Fn(&Users) -> bool) -> MutexGuard<'static, Users> {
    let users = USERS.lock().unwrap_or_else(PoisonError::into_inner);
    CHANGED.wait_while(users, |users| busy(users)).unwrap_or_else(PoisonError::into_inner)
}
