//! Fingerprints of several texts, and the ids that git gives to files.

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
        hex::encode(self.0.finalize())
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
    Ok(hex::encode(digest.finalize()))
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
}
