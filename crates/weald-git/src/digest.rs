//! Fingerprints of several texts, and seals that only the holder of a secret can make.

use std::io::{self, Read};

use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// Texts, one after the other; the same texts in the same order give the same fingerprint.
#[derive(Debug, Clone, Default)]
pub struct Digest(Sha256);

impl Digest {
    pub fn add(&mut self, text: &[u8]) {
        self.0.update((text.len() as u64).to_be_bytes());
        self.0.update(text);
    }

    pub fn finish(self) -> String {
        let bytes = self.0.finalize();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The id that git gives to a file that holds exactly these bytes, `length` of them.
pub fn blob_id(content: impl Read, length: u64, is_sha256: bool) -> io::Result<String> {
    match is_sha256 {
        true => blob_id_by::<Sha256>(content, length),
        false => blob_id_by::<Sha1>(content, length),
    }
}

fn blob_id_by<D: sha2::Digest>(mut content: impl Read, length: u64) -> io::Result<String> {
    let mut digest = D::new();
    digest.update(format!("blob {length}\0"));
    let mut part = vec![0; 64 * 1024];
    loop {
        match content.read(&mut part) {
            Ok(0) => break,
            Ok(count) => digest.update(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let bytes = digest.finalize();
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The bytes that SHA-256 works on at once.
const BLOCK: usize = 64;

/// A seal of a text: HMAC-SHA256 (RFC 2104), in hexadecimal digits.
pub fn seal(secret: &[u8], text: &[u8]) -> String {
    let mut key = [0; BLOCK];
    match secret.len() <= BLOCK {
        true => key[..secret.len()].copy_from_slice(secret),
        false => key[..32].copy_from_slice(&Sha256::digest(secret)),
    }
    let padded = |with: u8| key.map(|byte| byte ^ with);
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text);
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner.finalize());
    let bytes = outer.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether two seals are the same; takes as long for any two of the same length.
pub fn is_same_seal(one: &str, other: &str) -> bool {
    let bytes = one.bytes().zip(other.bytes());
    let differing = bytes.fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_ids_that_git_gives_them() {
        let id = |is_sha256| blob_id(&b"hello\n"[..], 6, is_sha256).unwrap();
        assert_eq!(id(false), "ce013625030ba8dba906f756967f9e9ca394464a");
        let long = "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4";
        assert_eq!(id(true), long);
    }

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
            let made = seal(secret, text);
            assert_eq!(made, expected);
            assert!(is_same_seal(&made, expected));
            assert!(!is_same_seal(&made, &expected[1..]));
            assert!(!is_same_seal(&made, &expected.replace('0', "1")));
        }
    }
}
