//! `NAME=VALUE` of `--set`.

use std::str::FromStr;

use super::{NOW, target::SettingTarget};

/// A setting and the value that it is to have.
#[derive(Debug, Clone)]
pub struct SettingChoice {
    /// As typed.
    pub name: String,
    /// As typed; [`NOW`] for what it has.
    pub value: String,
    pub(super) target: SettingTarget,
}

impl PartialEq for SettingChoice {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.value) == (&other.name, &other.value)
    }
}

impl Eq for SettingChoice {}

impl SettingChoice {
    /// Whether nothing is to be changed.
    #[must_use]
    pub fn is_now(&self) -> bool {
        self.value == NOW
    }

    /// As it is typed, `--set NAME=VALUE`.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--set {}={}", self.name, self.value)
    }
}

impl FromStr for SettingChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
        let target = SettingTarget::find(name)?;
        if value != NOW {
            target.check(value).map_err(|why| format!("{name}={value:?}: {why}; or now"))?;
        }
        Ok(Self { name: name.into(), value: value.into(), target })
    }
}
