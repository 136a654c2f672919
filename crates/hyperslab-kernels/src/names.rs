//! Names of files that change places, for which the standard library has no call.

use std::io;
use std::path::Path;

/// Lets what is at two paths of one file system change places in one step: whoever looks, sees both before it or both after it.
///
/// Fails with [`io::ErrorKind::Unsupported`] or [`io::ErrorKind::InvalidInput`] where system or file system cannot do it.
#[cfg(all(target_os = "linux", not(miri)))]
pub fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let one = CString::new(one.as_os_str().as_bytes())?;
    let other = CString::new(other.as_os_str().as_bytes())?;
    // SAFETY: both pointers lead to strings with a zero byte at their end, which live until the call has returned; the system
    // reads them and writes nowhere into this program.
    let done = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            one.as_ptr(),
            libc::AT_FDCWD,
            other.as_ptr(),
            libc::RENAME_EXCHANGE,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The same where there is no such call.
#[cfg(not(all(target_os = "linux", not(miri))))]
pub fn exchange(_one: &Path, _other: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    #[cfg_attr(miri, ignore = "it needs a file system")]
    fn a_folder_and_a_file_change_places_or_nothing_happens() {
        let folder = std::env::temp_dir().join(format!("hyperslab-names-{}", std::process::id()));
        let (a, b) = (folder.join("a"), folder.join("b"));
        fs::create_dir_all(&a).unwrap();
        fs::write(&b, b"file").unwrap();
        match exchange(&a, &b) {
            Ok(()) => assert!(a.is_file() && b.is_dir()),
            Err(e) => {
                assert!(matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput), "{e}");
                assert!(a.is_dir() && b.is_file());
            }
        }
        assert!(exchange(&a, &folder.join("missing")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}
