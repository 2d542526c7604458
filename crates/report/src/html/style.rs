//! How the page looks: colours, line styles, the style sheet, and the little script that it can do without.

/// How one series looks in every figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    /// One of [`HUES`] colours.
    pub(super) hue: usize,
    /// One of [`DASHES`] line styles, 0 solid.
    pub(super) dash: usize,
    /// Our own stacks have stronger lines.
    pub(super) is_ours: bool,
}

const HUES: usize = 8;
const DASHES: usize = 4;

/// Series up to which each has a colour of its own.
const DISTINCT: usize = 6;

/// Looks for the values of a series axis. Few series have a colour each. Many have a colour for each stack and a
/// line style for each kind of controller, where the names permit.
pub(super) fn looks(names: &[&str]) -> Vec<Look> {
    let is_ours = |name: &str| !name.contains(':');
    let families: Vec<usize> = names.iter().map(|name| family(name)).collect();
    let is_crowded = (0..HUES).any(|one| families.iter().filter(|family| **family == one).count() > DASHES);
    let is_mixed = families.iter().any(|family| *family != families[0]);
    let by_family = names.len() > DISTINCT && is_mixed && !is_crowded;
    let mut looks: Vec<Look> = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let (hue, mut dash) = if by_family {
            (families[index], style_of_controller(name))
        } else {
            (index % HUES, index / HUES % DASHES)
        };
        while by_family && looks.iter().any(|look| look.hue == hue && look.dash == dash) {
            dash = (dash + 1) % DASHES;
        }
        looks.push(Look { hue, dash, is_ours: is_ours(name) });
    }
    looks
}

fn family(name: &str) -> usize {
    match name.split_once(':') {
        None => 0,
        Some(("quinn", _)) => 1,
        Some(("noq", _)) => 2,
        Some(("tcp", _)) => 3,
        Some(_) => 6,
    }
}

fn style_of_controller(name: &str) -> usize {
    let controller = name.split_once(':').map_or(name, |(_, controller)| controller);
    match controller.split('/').next().unwrap_or_default() {
        "newreno" | "standard" => 1,
        controller if controller.starts_with("bbr") => 2,
        "cubic" => 0,
        _ => 3,
    }
}

impl Look {
    /// Classes for the style sheet; `series` is the index that the script toggles.
    pub(super) fn classes(self, series: usize) -> String {
        let ours = if self.is_ours { " ours" } else { "" };
        format!("s h{} d{}{ours} i{series}", self.hue, self.dash)
    }
}

/// The style sheet. Colours were checked for contrast and for red-green and blue-yellow blindness.
pub(super) const STYLE: &str = r#"
:root { color-scheme: light dark;
  --paper:#fff; --ink:#15191e; --muted:#5b6570; --faint:#8a939d; --grid:#e5e8ec; --axis:#aeb6bf; --card:#f7f8fa; --edge:#dfe3e8;
  --mark:#15191e; --good:#00704f; --bad:#a83200;
  --c0:#0b5fb5; --c1:#be3e08; --c2:#008f6b; --c3:#ae4ba6; --c4:#4a9fe0; --c5:#bc8f00; --c6:#76808b; --c7:#1f2a36; }
@media (prefers-color-scheme: dark) { @media screen { :root {
  --paper:#12161c; --ink:#e9ecf0; --muted:#a2acb7; --faint:#7d8792; --grid:#262d36; --axis:#55606c; --card:#191f27; --edge:#2c343e;
  --mark:#f4f6f8; --good:#3ecb9a; --bad:#ff9166;
  --c0:#4c93e6; --c1:#ff7a3d; --c2:#25be8e; --c3:#de8fd8; --c4:#a9d8ff; --c5:#ebcb55; --c6:#8e99a5; --c7:#f1f4f7; } } }
* { box-sizing:border-box; }
html { scroll-behavior:smooth; }
body { margin:0; background:var(--paper); color:var(--ink); font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif; }
main, .top { max-width:1200px; margin:0 auto; padding:0 28px; }
.top { padding-top:36px; }
.brand { font-size:13px; font-weight:650; letter-spacing:.08em; text-transform:uppercase; color:var(--muted); }
nav { margin:10px 0 0; display:flex; flex-wrap:wrap; gap:6px 20px; font-size:14px; }
a { color:inherit; text-decoration-color:var(--axis); text-underline-offset:3px; }
section { padding:34px 0 42px; border-bottom:1px solid var(--edge); }
section:last-of-type { border-bottom:0; }
.name { font:600 13px/1.4 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace; color:var(--muted); }
h1, h2 { font-size:34px; line-height:1.15; letter-spacing:-.02em; margin:4px 0 10px; font-weight:700; text-wrap:balance; }
h3 { font-size:20px; line-height:1.3; letter-spacing:-.01em; margin:44px 0 4px; font-weight:650; }
.question { font-size:19px; line-height:1.45; color:var(--muted); max-width:62em; margin:0 0 14px; text-wrap:pretty; }
.facts { display:flex; flex-wrap:wrap; gap:4px 28px; font-size:14px; color:var(--muted); margin:0 0 6px; padding:0; list-style:none; }
.facts b { color:var(--ink); font-weight:600; }
.note { border-left:3px solid var(--c5); padding:8px 14px; margin:16px 0; background:var(--card); font-size:15px; max-width:75em; }
.findings { margin:20px 0 0; padding:0; list-style:none; display:grid; gap:8px; }
.findings li { font-size:16px; line-height:1.45; padding-left:16px; max-width:78em; border-left:3px solid var(--c0); }
.findings li.lead { font-size:19px; line-height:1.4; border-color:var(--ink); margin-bottom:2px; } .findings li.bad { border-color:var(--c1); }
.findings .where { color:var(--muted); }
.caption { font-size:14px; color:var(--muted); margin:0 0 14px; max-width:80em; }
.panels { display:grid; grid-template-columns:repeat(auto-fill,minmax(min(100%,520px),1fr)); gap:26px 32px; }
.panels > figure:only-child { grid-column:1/-1; max-width:760px; }
figure { margin:0; min-width:0; }
figcaption { font-size:15px; font-weight:650; display:flex; gap:10px; align-items:baseline; flex-wrap:wrap; margin-bottom:2px; }
figcaption span { font-weight:400; color:var(--muted); font-size:13px; }
svg { display:block; width:100%; height:auto; font:11.5px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif; font-variant-numeric:tabular-nums; overflow:visible; }
svg text { fill:var(--ink); }
svg text.tick, svg text.unit { fill:var(--muted); }
svg text.unit { font-size:11px; }
svg text.soft { fill:var(--faint); }
svg text.head { font-weight:650; font-size:12px; }
svg text.limit { fill:var(--ink); font-size:11px; font-style:italic; }
.grid { stroke:var(--grid); stroke-width:1; shape-rendering:crispEdges; }
.axis { stroke:var(--axis); stroke-width:1; shape-rendering:crispEdges; }
.limitline { stroke:var(--mark); stroke-width:1.3; stroke-dasharray:2 3; fill:none; }
.h0 { --c:var(--c0); } .h1 { --c:var(--c1); } .h2 { --c:var(--c2); } .h3 { --c:var(--c3); }
.h4 { --c:var(--c4); } .h5 { --c:var(--c5); } .h6 { --c:var(--c6); } .h7 { --c:var(--c7); }
.s .curve { fill:none; stroke:var(--c); stroke-width:1.7; stroke-linejoin:round; stroke-linecap:butt; }
.s.ours .curve { stroke-width:2.5; }
.many .s .curve { stroke-width:1.25; } .many .s.ours .curve { stroke-width:2; }
.d1 .curve { stroke-dasharray:6 3; } .d2 .curve { stroke-dasharray:2.2 1.8; stroke-width:2; } .many .s.d2 .curve { stroke-width:1.7; } .d3 .curve { stroke-dasharray:9 3 2 3; }
.s .dot { fill:var(--c); stroke:var(--paper); stroke-width:1.2; }
.s .arrow { fill:none; stroke:var(--c); stroke-width:1.4; }
.s .open { fill:var(--paper); stroke:var(--c); stroke-width:1.6; }
.s .bar { fill:var(--c); opacity:.82; }
.s .far { fill:url(#hatch); stroke:var(--c); stroke-width:1; opacity:.9; }
.s .whisker { stroke:var(--mark); stroke-width:1.5; }
.s .tail { stroke:var(--c); stroke-width:1.2; opacity:.75; }
.s text.own { fill:var(--c); font-weight:600; }
.s.ours text.name0 { font-weight:650; }
svg .hatchline { stroke:var(--faint); stroke-width:1.4; }
.defs { position:absolute; width:0; height:0; }
.scroll { overflow-x:auto; }
table { border-collapse:collapse; font-size:13.5px; width:100%; font-variant-numeric:tabular-nums; }
th, td { padding:4px 10px; text-align:right; white-space:nowrap; border-bottom:1px solid var(--grid); }
th { font-weight:600; color:var(--muted); vertical-align:bottom; font-size:12.5px; }
thead th { border-bottom:1px solid var(--axis); }
th:first-child, td:first-child, .left { text-align:left; }
tr.group th { color:var(--ink); padding-top:16px; font-size:14px; border-bottom:1px solid var(--axis); text-align:left; }
tr.group th span { color:var(--muted); font-weight:400; margin-left:10px; }
td.best { font-weight:700; }
td small, .ci { color:var(--muted); font-size:12px; }
.faster { color:var(--good); } .slower, .warn { color:var(--bad); }
.wrap { white-space:normal; min-width:16em; }
.swatch { display:inline-block; width:22px; height:10px; vertical-align:baseline; margin-right:8px; }
.ours > .label { font-weight:650; }
.key { display:flex; flex-wrap:wrap; gap:6px 8px; margin:22px 0 0; padding:0; list-style:none; font-size:13.5px; }
.key li { padding:3px 10px 3px 8px; border:1px solid var(--edge); border-radius:99px; user-select:none; }
.dagger { margin:8px 0 0; } .js .key li { cursor:pointer; } .key li.off { opacity:.4; text-decoration:line-through; }
.second { margin-top:26px; } .second table { width:auto; } .second th, .second td { padding-left:22px; } .second th:first-child, .second td:first-child { padding-left:10px; }
details { margin:14px 0 0; } details > figure { overflow-x:auto; } details > figure > svg { min-width:760px; } details > figure, details > .panels { margin-top:10px; } details[open] > summary { margin-bottom:8px; } summary span { font-weight:400; color:var(--muted); font-size:13px; margin-left:8px; } summary { cursor:pointer; font-weight:600; font-size:15px; }
dl { display:grid; grid-template-columns:max-content 1fr; gap:5px 18px; font-size:14px; margin:10px 0; }
dt { color:var(--muted); } dd { margin:0; overflow-wrap:anywhere; }
code { font:12.5px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace; overflow-wrap:anywhere; }
code.copy { user-select:all; background:var(--card); border:1px solid var(--edge); border-radius:4px; padding:1px 6px; }
button { font:inherit; font-size:12px; color:var(--muted); background:none; border:1px solid var(--edge); border-radius:4px; margin-left:6px; cursor:pointer; }
footer { max-width:1200px; margin:0 auto; padding:8px 28px 48px; font-size:13.5px; color:var(--muted); }
@media (max-width:640px) { main, .top, footer { padding-left:16px; padding-right:16px; } h1, h2 { font-size:26px; } .question { font-size:17px; } dl { grid-template-columns:1fr; } dd { margin-bottom:6px; } }
@media print { body { font-size:11pt; } main, .top, footer { max-width:none; padding-left:0; padding-right:0; } section { break-before:page; border:0; padding-top:0; } section:first-of-type { break-before:auto; }
  figure, tr, .findings li { break-inside:avoid; } h3 { break-after:avoid; } .caption { break-after:avoid; } button, nav { display:none; } .panels { grid-template-columns:1fr 1fr; gap:14px 20px; } .scroll { overflow:visible; } table { font-size:8.5pt; } th, td { padding:2px 5px; }
  details > figure > svg { min-width:0; } details::details-content { content-visibility:visible; block-size:auto; } * { print-color-adjust:exact; -webkit-print-color-adjust:exact; } }
"#;

/// The script: toggling of series, and buttons that copy commands. The page says everything without it.
pub(super) const SCRIPT: &str = r#"
document.documentElement.classList.add("js");
for (const key of document.querySelectorAll(".key li")) {
  key.tabIndex = 0; key.setAttribute("role", "switch"); key.setAttribute("aria-checked", "true");
  const flip = () => {
    const off = key.classList.toggle("off");
    key.setAttribute("aria-checked", String(!off));
    for (const g of key.closest("section").querySelectorAll("g.i" + key.dataset.i)) g.style.display = off ? "none" : "";
  };
  key.addEventListener("click", flip);
  key.addEventListener("keydown", e => { if (e.key === " " || e.key === "Enter") { e.preventDefault(); flip(); } });
}
if (navigator.clipboard) for (const code of document.querySelectorAll("code.copy")) {
  const b = document.createElement("button"); b.textContent = "copy"; b.type = "button";
  b.addEventListener("click", () => navigator.clipboard.writeText(code.textContent).then(() => { b.textContent = "copied"; setTimeout(() => b.textContent = "copy", 1200); }));
  code.after(b);
}
addEventListener("beforeprint", () => { for (const d of document.querySelectorAll("details")) d.open = true; });
"#;
