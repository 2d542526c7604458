use http::HeaderValue;

use super::*;

const TAG: &str = "\"5-17a-17b\"";
/// 1994-11-06 08:49:37 UTC.
const MODIFIED: u64 = 784_111_777;
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

fn validators(etag: &str) -> Validators {
    Validators { etag: etag.to_owned(), modified: Some(UNIX_EPOCH + Duration::from_secs(MODIFIED)) }
}

fn verdict(etag: &str, fields: &[(HeaderName, &str)]) -> Verdict {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(name, HeaderValue::from_str(value).unwrap());
    }
    evaluate(&headers, &validators(etag))
}

const PROCEED: Verdict = Verdict::Proceed { range_applies: true };
const WHOLE: Verdict = Verdict::Proceed { range_applies: false };

#[test]
fn each_precondition_alone() {
    use header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE};
    for (name, value, expected) in [
        (IF_MATCH, TAG, PROCEED),
        (IF_MATCH, "*", PROCEED),
        (IF_MATCH, "\"other\"", Verdict::Failed),
        (IF_MATCH, "\"other\", \"5-17a-17b\"", PROCEED),
        (IF_MATCH, "W/\"5-17a-17b\"", Verdict::Failed),
        (IF_NONE_MATCH, TAG, Verdict::NotModified),
        (IF_NONE_MATCH, "W/\"5-17a-17b\"", Verdict::NotModified),
        (IF_NONE_MATCH, "*", Verdict::NotModified),
        (IF_NONE_MATCH, "\"a,b\" , \"5-17a-17b\"", Verdict::NotModified),
        (IF_NONE_MATCH, "\"other\"", PROCEED),
        (IF_NONE_MATCH, "5-17a-17b", PROCEED),
        (IF_MODIFIED_SINCE, BEFORE, PROCEED),
        (IF_MODIFIED_SINCE, SAME, Verdict::NotModified),
        (IF_MODIFIED_SINCE, AFTER, Verdict::NotModified),
        (IF_MODIFIED_SINCE, "yesterday", PROCEED),
        (IF_UNMODIFIED_SINCE, BEFORE, Verdict::Failed),
        (IF_UNMODIFIED_SINCE, SAME, PROCEED),
        (IF_UNMODIFIED_SINCE, AFTER, PROCEED),
        (IF_UNMODIFIED_SINCE, "yesterday", PROCEED),
        (IF_RANGE, TAG, PROCEED),
        (IF_RANGE, "W/\"5-17a-17b\"", WHOLE),
        (IF_RANGE, "\"other\"", WHOLE),
        (IF_RANGE, SAME, PROCEED),
        (IF_RANGE, BEFORE, WHOLE),
        (IF_RANGE, AFTER, WHOLE),
        (IF_RANGE, "nonsense", WHOLE),
    ] {
        assert_eq!(verdict(TAG, &[(name.clone(), value)]), expected, "{name}: {value}");
    }
}

#[test]
fn tags_take_precedence_over_dates() {
    use header::{IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
    assert_eq!(verdict(TAG, &[(IF_MATCH, TAG), (IF_UNMODIFIED_SINCE, BEFORE)]), PROCEED);
    assert_eq!(verdict(TAG, &[(IF_NONE_MATCH, "\"other\""), (IF_MODIFIED_SINCE, SAME)]), PROCEED);
    assert_eq!(verdict(TAG, &[(IF_NONE_MATCH, TAG), (IF_MODIFIED_SINCE, BEFORE)]), Verdict::NotModified);
}

#[test]
fn a_failed_requirement_comes_before_not_modified() {
    use header::{IF_MATCH, IF_NONE_MATCH, IF_UNMODIFIED_SINCE};
    assert_eq!(verdict(TAG, &[(IF_MATCH, "\"other\""), (IF_NONE_MATCH, TAG)]), Verdict::Failed);
    assert_eq!(verdict(TAG, &[(IF_UNMODIFIED_SINCE, BEFORE), (IF_NONE_MATCH, TAG)]), Verdict::Failed);
    assert_eq!(verdict(TAG, &[(IF_MATCH, TAG), (IF_NONE_MATCH, TAG)]), Verdict::NotModified);
}

#[test]
fn a_weak_tag_serves_revalidation_but_no_ranges() {
    let weak = format!("W/{TAG}");
    assert_eq!(verdict(&weak, &[(header::IF_NONE_MATCH, &weak)]), Verdict::NotModified);
    assert_eq!(verdict(&weak, &[(header::IF_MATCH, &weak)]), Verdict::Failed);
    assert_eq!(verdict(&weak, &[(header::IF_RANGE, &weak)]), WHOLE);
    assert_eq!(verdict(&weak, &[(header::IF_RANGE, SAME)]), WHOLE);
}

#[test]
fn several_fields_are_one_list_and_several_dates_are_none() {
    use header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
    assert_eq!(verdict(TAG, &[(IF_NONE_MATCH, "\"a\""), (IF_NONE_MATCH, TAG)]), Verdict::NotModified);
    assert_eq!(verdict(TAG, &[(IF_MODIFIED_SINCE, SAME), (IF_MODIFIED_SINCE, SAME)]), PROCEED);
}

#[test]
fn validators_follow_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, "one").unwrap();
    let see = |age: Duration| {
        let metadata = std::fs::metadata(&path).unwrap();
        Validators::of(&metadata, metadata.modified().unwrap() + age)
    };
    let settled = see(Duration::from_secs(60));
    assert!(settled.etag.starts_with('"'), "{}", settled.etag);
    assert!(see(Duration::ZERO).etag.starts_with("W/"), "another change could follow in the same tick");
    assert_eq!(see(Duration::from_secs(60)), settled);

    // A change of content that hides its length and its time of modification shows as soon as the file system's
    // clock has ticked.
    let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
    let changed = (0..100_000).any(|_| {
        std::fs::write(&path, "two").unwrap();
        std::fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        see(Duration::from_secs(60)).etag != settled.etag
    });
    assert!(changed || cfg!(not(unix)));
}

#[test]
fn a_file_from_the_future_was_modified_now() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(MODIFIED);
    file.as_file().set_modified(now + Duration::from_secs(3600)).unwrap();
    let validators = Validators::of(&file.as_file().metadata().unwrap(), now);
    assert_eq!(validators.modified, Some(now));
    assert!(validators.etag.starts_with("W/"));
}
