//! Enums whose variants have words: what a setting may be, and what code compares instead of texts.

/// One of a few words.
pub trait Choice: Sized {
    fn of_word(word: &str) -> Option<Self>;
}

/// An enum whose variants have words: the only ones that its key takes. For a guarded key, loosest first.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$note])* $variant,)*
        }

        impl $name {
            pub const WORDS: &[&str] = &[$($word),*];
            /// The same for a key that may be unset.
            pub const NONE_OR_WORDS: &[&str] = &["none", $($word),*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            pub fn of(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }

        impl $crate::choice::Choice for $name {
            fn of_word(word: &str) -> Option<Self> {
                Self::of(word)
            }
        }
    };
}

pub(crate) use choice;
