//! What document, style sheets, scripts and data say, before they are filled up.

use std::fmt::Write as _;

use super::{Kind, Member, Site};

/// Short lines: the greatest thing on the page must be a picture.
const SENTENCE: &str = "Lines of text, as pages have them.";

/// What the page looks like without its style sheets.
const LOOK: &str = "body{margin:8px;font:14px sans-serif}p{width:260px;margin:4px 0}img,div{display:inline-block;margin:1px}\
                    div{width:32px;height:18px}#hero{width:576px;height:320px}";

/// The document: style sheets and deferred scripts in its head; text, pictures, and what others' rules apply to.
pub(super) fn document(site: &Site<'_>, index: usize) -> String {
    let mut head = format!(
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>A page</title><link rel=icon href=\"data:,\">\
         <style>{LOOK}</style>"
    );
    let mut body = format!("<body><h1>A page</h1><p>{SENTENCE}</p>");
    for member in site.brought_by(index) {
        match member.kind {
            Kind::Style => push(&mut head, format_args!("<link rel=stylesheet href=\"{}\">", member.url)),
            Kind::Script => push(&mut head, format_args!("<script defer src=\"{}\"></script>", member.url)),
            _ => push(&mut body, format_args!("<img src=\"{}\" alt=\"\">", member.url)),
        }
    }
    for member in site.members.iter().filter(|member| asks_style(site, member)) {
        let name = &member.object.name;
        match member.kind {
            Kind::Font => push(&mut body, format_args!("<p id={name}>{SENTENCE}</p>")),
            _ => push(&mut body, format_args!("<div id={name}></div>")),
        }
    }
    format!("{head}</head>{body}<p id=end>{SENTENCE}</p></body></html>")
}

/// True if style sheets ask for it.
fn asks_style(site: &Site<'_>, member: &Member<'_>) -> bool {
    let first = member.object.after.first().and_then(|&index| site.members.get(index));
    first.is_some_and(|first| first.kind == Kind::Style)
}

/// A style sheet's rules. Browsers ask for what rules name once all style sheets are there.
pub(super) fn style(site: &Site<'_>, index: usize) -> String {
    let mut text = String::new();
    for member in site.shared_by(index).filter(|member| asks_style(site, member)) {
        let (name, url) = (&member.object.name, &member.url);
        match member.kind {
            Kind::Font => push(
                &mut text,
                format_args!(
                    "@font-face{{font-family:{name};font-display:swap;src:url({url})}}#{name}{{font-family:{name},sans-serif}}"
                ),
            ),
            _ => push(&mut text, format_args!("#{name}{{background:url({url})}}")),
        }
    }
    text
}

/// A script: it keeps the processor busy for as long as the description says, then asks for what waits for it.
pub(super) fn script(site: &Site<'_>, index: usize) -> String {
    let mut text = String::from("(()=>{");
    text.push_str(&busy(site, index));
    for member in site.brought_by(index) {
        match member.kind {
            Kind::Data => push(
                &mut text,
                format_args!(
                    "fetch(\"{}\").then(r=>r.json()).then(d=>{{{}d.images.forEach(add)}});",
                    member.url,
                    site.members
                        .iter()
                        .position(|other| other.file == member.file)
                        .map_or_else(String::new, |data| busy(site, data))
                ),
            ),
            _ => push(&mut text, format_args!("add(\"{}\");", member.url)),
        }
    }
    text.push_str("function add(url){const i=new Image();i.src=url;document.body.append(i)}})();");
    text
}

/// A loop as long as the object takes to be parsed; with nothing but letters and signs that need no escape.
fn busy(site: &Site<'_>, index: usize) -> String {
    let millis = site.members[index].object.parse.as_millis_f64();
    if millis == 0.0 {
        return String::new();
    }
    format!("for(const end=performance.now()+{millis};performance.now()<end;);")
}

/// What a script reads: the pictures that follow.
pub(super) fn data(site: &Site<'_>, index: usize) -> String {
    let urls: Vec<String> = site.brought_by(index).map(|member| format!("\"{}\"", member.url)).collect();
    format!("\"images\":[{}]", urls.join(","))
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = text.write_fmt(more);
}
