//! Codes of errors and refusals: stable words in answers and in records.
//!
//! Those that code decides by have a name here, and nothing compares them as text. All others are kept as they are, also
//! what a newer weald wrote.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};

macro_rules! codes {
    ($($variant:ident = $word:literal,)*) => {
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(from = "String")]
        pub enum ErrorCode {
            $(
                #[doc = concat!("`", $word, "`")]
                $variant,
            )*
            /// Made by `from`, so never one of the others.
            #[non_exhaustive]
            Other(Cow<'static, str>),
        }

        impl ErrorCode {
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<Cow<'static, str>> for ErrorCode {
            fn from(word: Cow<'static, str>) -> Self {
                match word.as_ref() {
                    $($word => Self::$variant,)*
                    _ => Self::Other(word),
                }
            }
        }
    };
}

codes! {
    AgentNameTaken = "agent_name_taken",
    ConfigInvalid = "config_invalid",
    DriverNotFound = "driver_not_found",
    DriverNotInstalled = "driver_not_installed",
    DriverNotVisible = "driver_not_visible",
    Interrupted = "interrupted",
    InvalidValue = "invalid_value",
    LandingBusy = "landing_busy",
    MainDirty = "main_dirty",
    LoggedOut = "logged_out",
    NeedsApproval = "needs_approval",
    NoAnswer = "no_answer",
    NoCommand = "no_command",
    NoCommit = "no_commit",
    NoMandate = "no_mandate",
    NotARepository = "not_a_repository",
    NotAllowedInside = "not_allowed_inside",
    NotCommitted = "not_committed",
    NotExecutable = "not_executable",
    NotFastForward = "not_fast_forward",
    NotReadyToLand = "not_ready_to_land",
    NotFetched = "not_fetched",
    NothingReady = "nothing_ready",
    NoTree = "no_tree",
    OutsideTree = "outside_tree",
    PathReserved = "path_reserved",
    PlanNotApproved = "plan_not_approved",
    RebaseDiffers = "rebase_differs",
    SandboxUnavailable = "sandbox_unavailable",
    SessionTaken = "session_taken",
    TargetBusy = "target_busy",
    TargetDirty = "target_dirty",
    TargetInOperation = "target_in_operation",
    TaskNotFound = "task_not_found",
    TokenRequired = "token_required",
    TreeDirty = "tree_dirty",
    TreeInOperation = "tree_in_operation",
    TreeLost = "tree_lost",
    Usage = "usage",
}

impl From<&'static str> for ErrorCode {
    fn from(word: &'static str) -> Self {
        Cow::Borrowed(word).into()
    }
}

impl From<String> for ErrorCode {
    fn from(word: String) -> Self {
        Cow::<'static, str>::Owned(word).into()
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_stored_as_their_words_and_those_of_newer_versions_are_kept() {
        for (word, code) in [
            ("target_dirty", ErrorCode::TargetDirty),
            ("not_yet_known", ErrorCode::from("not_yet_known")),
        ] {
            let json = serde_json::to_string(&code).unwrap();
            assert_eq!(json, format!("{word:?}"));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), code);
        }
    }
}
