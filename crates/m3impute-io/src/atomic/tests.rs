use super::*;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn written(target: &Path, bytes: &[u8]) -> Result<AtomicFile> {
    let mut file = AtomicFile::create(target)?;
    file.write_all(bytes).unwrap();
    Ok(file)
}

#[test]
fn dropped_it_leaves_the_old_file_whole_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.csv");
    fs::write(&target, "old").unwrap();
    let mut file = written(&target, b"half of the new").unwrap();
    file.flush().unwrap();
    drop(file);
    assert_eq!(fs::read(&target).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.csv"]);
}

#[test]
fn committed_it_replaces_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.csv");
    for old in ["", "old"] {
        if !old.is_empty() {
            fs::write(&target, old).unwrap();
        }
        let file = written(&target, b"new").unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap_or_default(), old);
        file.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }
}

#[test]
fn a_file_that_came_up_meanwhile_is_replaced_too() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("a.csv");
    let file = written(&target, b"new").unwrap();
    fs::write(&target, "by somebody else").unwrap();
    file.commit().unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a.csv"]);
}

#[test]
fn the_longest_name_that_a_file_can_have_is_written_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    for name in [format!("{}.csv", "n".repeat(251)), format!("{}.csv", "é".repeat(125))] {
        let target = folder.path().join(&name);
        for bytes in [b"first", b"again"] {
            written(&target, bytes).unwrap().commit().unwrap();
            assert_eq!(fs::read(&target).unwrap(), bytes);
        }
    }
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn files_that_belong_together_appear_together_or_the_error_says_which_did() {
    let folder = tempfile::tempdir().unwrap();
    let (table, report) = (folder.path().join("a.csv"), folder.path().join("page/a.html"));
    fs::create_dir(folder.path().join("page")).unwrap();
    let both = || vec![written(&table, b"rows").unwrap(), written(&report, b"page").unwrap()];
    AtomicFile::commit_all(both()).unwrap();
    assert_eq!((fs::read(&table).unwrap(), fs::read(&report).unwrap()), (b"rows".to_vec(), b"page".to_vec()));

    fs::remove_file(&table).unwrap();
    fs::remove_file(&report).unwrap();
    let files = both();
    fs::remove_dir(folder.path().join("page")).unwrap();
    let error = AtomicFile::commit_all(files).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write `{}`: ", report.display())), "{error}");
    assert!(error.ends_with(&format!("; written were `{}`", table.display())), "{error}");
    assert!(table.exists());
}

#[cfg(unix)]
#[test]
fn mode_and_links_are_kept_and_a_link_to_nothing_makes_its_file() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.csv"), "old").unwrap();
    fs::set_permissions(at("a.csv"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(at("sub")).unwrap();
    symlink("a.csv", at("link.csv")).unwrap();
    symlink("sub/new.csv", at("dangling.csv")).unwrap();
    symlink("dangling.csv", at("twice.csv")).unwrap();
    symlink("round.csv", at("round.csv")).unwrap();

    written(&at("link.csv"), b"new").unwrap().commit().unwrap();
    assert_eq!(fs::read(at("a.csv")).unwrap(), b"new");
    assert_eq!(fs::metadata(at("a.csv")).unwrap().permissions().mode() & 0o7777, 0o640);

    written(&at("twice.csv"), b"made").unwrap().commit().unwrap();
    assert_eq!(fs::read(at("sub/new.csv")).unwrap(), b"made");
    assert!(["link.csv", "dangling.csv", "twice.csv"].iter().all(|l| at(l).is_symlink()));
    assert!(written(&at("round.csv"), b"").is_err());
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_mode_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    fs::write(folder.path().join("plain.csv"), "").unwrap();
    written(&folder.path().join("ours.csv"), b"").unwrap().commit().unwrap();
    assert_eq!(mode("ours.csv"), mode("plain.csv"));
}

#[cfg(unix)]
#[test]
fn a_device_is_written_and_stays_a_device() {
    written(Path::new("/dev/null"), b"gone").unwrap().commit().unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn a_stream_that_takes_no_more_says_how_much_it_took() {
    let error = written(Path::new("/dev/full"), b"lost").unwrap().commit().unwrap_err();
    assert_eq!(error.to_string(), "cannot write `/dev/full`: the disk is full; 0 bytes were written before");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_with_the_name() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("no/such/a.csv");
    let error = AtomicFile::create(&target).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot write `{}`: no such file or folder", target.display()));
    let error = AtomicFile::create(folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("it is a folder"));
}
