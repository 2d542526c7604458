use std::collections::BTreeSet;

use super::*;

fn text(site: &Site<'_>, file: &str) -> String {
    let content = site.files().find(|(name, _)| *name == file).map(|(_, content)| content);
    String::from_utf8(content.expect(file)).expect("text")
}

#[test]
fn every_object_has_the_bytes_of_the_description() {
    for name in Page::names() {
        let page = Page::named(name).unwrap();
        let site = Site::new(&page);
        let sizes: Vec<u64> = site.files().map(|(_, content)| content.len() as u64).collect();
        let wanted: Vec<u64> = page.objects.iter().map(|object| object.bytes).collect();
        assert_eq!(sizes, wanted, "{name}");
        let again: Vec<_> = site.files().collect();
        assert!(site.files().eq(again), "the same page gives the same files");
    }
}

#[test]
fn every_object_is_named_by_exactly_one_other() {
    for name in Page::names() {
        let page = Page::named(name).unwrap();
        let site = Site::new(&page);
        let files: Vec<(String, String)> = site
            .files()
            .map(|(file, content)| (file.to_owned(), String::from_utf8_lossy(&content).into_owned()))
            .collect();
        for member in site.members.iter().filter(|member| member.kind != Kind::Document) {
            let by: BTreeSet<&str> = files
                .iter()
                .filter(|(_, content)| content.matches(&member.url).count() > 0)
                .map(|(file, _)| file.as_str())
                .collect();
            assert_eq!(by.len(), 1, "{name}: {} is asked for by {by:?}", member.url);
            let who = by.first().expect("one");
            let who = site.members.iter().find(|other| other.file == **who).expect("a file");
            let names: Vec<&str> =
                member.object.after.iter().map(|&index| page.objects[index].name.as_str()).collect();
            assert!(names.contains(&who.object.name.as_str()), "{}: {} brings it", member.file, who.file);
        }
    }
}

#[test]
fn gr_page_is_what_the_paper_says() {
    let page = Page::named("gr-page").unwrap();
    let site = Site::new(&page);
    assert_eq!(site.members.len(), 100);
    assert_eq!(site.files().map(|(_, content)| content.len()).sum::<usize>(), 1_311_000);
    let origins: BTreeSet<&str> = site
        .members
        .iter()
        .filter_map(|member| member.url.rsplit_once('/'))
        .map(|(origin, _)| origin)
        .collect();
    assert_eq!(origins.len(), 3, "{origins:?}");
}

#[test]
fn news_has_its_chain_of_dependencies() {
    let page = Page::named("news").unwrap();
    let site = Site::new(&page);
    let document = text(&site, DOCUMENT);
    assert!(document.contains("<script defer src=\"https://posthaste.test:4434/app.js\">"), "{document}");
    assert!(!document.contains("hero.bmp") && document.contains("<div id=hero>"));
    let app = text(&site, "app.js");
    assert!(
        app.contains("performance.now()+60")
            && app.contains("fetch(\"https://posthaste.test:4433/headlines.json\")")
    );
    let headlines: serde_json::Value = serde_json::from_str(&text(&site, "headlines.json")).expect("JSON");
    assert_eq!(headlines["images"].as_array().map(Vec::len), Some(8));
    // What a page fetches across origins, fonts among it, servers would have to permit in so many words.
    let document_host = page.objects[0].host;
    for member in site.members.iter().filter(|member| matches!(member.kind, Kind::Font | Kind::Data)) {
        assert_eq!(member.object.host, document_host, "{}", member.file);
    }
}

#[test]
fn pictures_have_as_many_pixels_as_their_headers_say() {
    for bytes in [302, 4096, 4097, 186_000] {
        let file = content::Filler::new("x.bmp").image(bytes);
        assert_eq!(file.len(), bytes);
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (start, width, height) = (word(10), word(18), word(22));
        let bits = u32::from(u16::from_le_bytes([file[28], file[29]]));
        assert!(start + width * bits / 8 * height <= bytes as u32, "{bytes}: {width} x {height}");
        assert!(width * bits % 32 == 0 && width * height * bits / 8 * 10 > (bytes as u32 - start) * 8);
    }
}
