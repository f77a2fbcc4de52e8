//! Enums whose variants have words: in records and answers, in the settings, and where code would compare texts.

/// One of a few words.
pub trait Choice: Sized {
    fn of_word(word: &str) -> Option<Self>;
}

/// Enums with the word of each variant. One that is part of a record derives serde's traits itself.
macro_rules! words {
    ($($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$note])* $variant,)*
        }

        impl $name {
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant),*];

            /// The word in JSON, in the store and on the command line.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    )*};
}

/// Enums whose words are the only ones that a key takes. For a guarded key, loosest first.
macro_rules! choice {
    ($($(#[$meta:meta])* pub enum $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $crate::choice::words! {
            $(#[$meta])*
            pub enum $name { $($(#[$note])* $variant = $word,)* }
        }

        impl $name {
            pub const WORDS: &[&str] = &[$($word),*];
            /// The same for a key that may be unset.
            pub const NONE_OR_WORDS: &[&str] = &["none", $($word),*];

            pub fn of(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == word)
            }
        }

        impl $crate::choice::Choice for $name {
            fn of_word(word: &str) -> Option<Self> {
                Self::of(word)
            }
        }
    )*};
}

pub(crate) use {choice, words};
