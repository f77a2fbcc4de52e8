//! The secret that approvals are sealed with: one a user, made on first use, in a folder that no sandbox shows.
//!
//! The folder is made before anything runs, because only what is there can be hidden.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hmac::{Hmac, Mac};
use sha2::Sha256;

use weald_control::files;

/// How long it is.
const LENGTH: usize = 32;

/// The folder of the secret, below the user's state directory; it is there afterwards if it can be.
pub fn approval_folder(state: &Path) -> PathBuf {
    let folder = state.join("approval");
    if !folder.is_dir() {
        // Where it can't be made no secret can be either.
        let _ = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder);
    }
    folder
}

pub(super) struct Secret(Vec<u8>);

impl Secret {
    /// Reads it; `None` if nobody approved anything yet.
    pub(super) fn load(state: &Path) -> io::Result<Option<Self>> {
        let path = secret_file(state);
        let nothing_linked = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(nothing_linked.bits() as i32)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let found = file.metadata()?;
        if !found.is_file() || found.mode() & 0o077 != 0 {
            return Err(io::Error::other("others can read it, so it proves nothing"));
        }
        let mut bytes = Vec::new();
        file.take(LENGTH as u64 + 1).read_to_end(&mut bytes)?;
        match bytes.len() == LENGTH {
            true => Ok(Some(Self(bytes))),
            false => Err(io::Error::other("it has the wrong length")),
        }
    }

    /// Reads it, or makes it.
    pub(super) fn load_or_make(state: &Path) -> io::Result<Self> {
        let path = secret_file(state);
        let made = files::edit_alone(&path, || match Self::load(state)? {
            Some(secret) => Ok(secret),
            None => {
                let mut bytes = [0; LENGTH];
                File::open("/dev/urandom")?.read_exact(&mut bytes)?;
                let building = path.with_extension("new");
                let _ = fs::remove_file(&building);
                let mut file = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&building)?;
                file.write_all(&bytes)?;
                file.sync_all()?;
                fs::rename(&building, &path)?;
                Ok(Self(bytes.to_vec()))
            }
        });
        made?
    }

    /// HMAC-SHA256, in hexadecimal digits.
    pub(super) fn seal(&self, text: &[u8]) -> String {
        hex::encode(self.mac(text).finalize().into_bytes())
    }

    /// Takes as long for any seal that is wrong.
    pub(super) fn is_seal_of(&self, given: &str, text: &[u8]) -> bool {
        hex::decode(given).is_ok_and(|given| self.mac(text).verify_slice(&given).is_ok())
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        mac.expect("a key of any length will do").chain_update(text)
    }
}

/// Where it is; errors name it.
pub(super) fn secret_file(state: &Path) -> PathBuf {
    approval_folder(state).join("key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m18_seals_are_those_of_rfc_4231() {
        let long = [0xaa; 131];
        let counted: Vec<u8> = (1..=25).collect();
        for (secret, text, expected) in [
            (
                &[0x0b; 20][..],
                &b"Hi There"[..],
                "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
            ),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 20],
                &[0xdd; 50],
                "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
            ),
            (
                &counted,
                &[0xcd; 50],
                "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
            ),
            (
                &long,
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            let secret = Secret(secret.to_vec());
            assert_eq!(secret.seal(text), expected);
            assert!(secret.is_seal_of(expected, text));
            for wrong in [
                &expected[1..],
                &expected[2..],
                &expected.replace('0', "1"),
                "",
            ] {
                assert!(!secret.is_seal_of(wrong, text), "{wrong}");
            }
        }
    }
}
