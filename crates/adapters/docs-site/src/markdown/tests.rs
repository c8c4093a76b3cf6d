//! What Markdown becomes: anchors, links, pictures, markup, tables.

use super::links::embedded;
use super::*;

fn rendered(text: &str) -> Rendered {
    render(text, &Links::from_file("docs/guide/offers.md"))
}

#[test]
fn headings_have_anchors_of_their_own_and_passages_below_them() {
    let page = rendered(
        "# The *title*\n\nBefore.\n\n## What `x` is\n\nOne\ntwo.\n\n## What x is\n\n```sh no-run\nls\n```\n",
    );
    assert_eq!(page.title, "The title");
    let ids: Vec<_> = page.headings.iter().map(|heading| heading.id.as_str()).collect();
    assert_eq!(ids, ["what-x-is", "what-x-is-1"]);
    assert!(
        page.html
            .contains("<h2 id=\"what-x-is\">What <code>x</code> is <a class=\"anchor\" href=\"#what-x-is\"")
    );
    let texts: Vec<_> = page.passages.iter().map(|passage| passage.text.trim()).collect();
    assert_eq!(texts, ["Before.", "One two.", "ls"]);
}

#[test]
fn links_between_files_are_links_between_pages() {
    let page = rendered(
        "[a](orders.md#pages) [b](../OPERATIONS.md) [c](../../LICENSE) [d](#x) [e](https://x.example/y)",
    );
    assert_eq!(
        page.html,
        "<p><a href=\"/docs/guide/orders#pages\">a</a> <a href=\"/docs/operations\">b</a> c <a href=\"#x\">d</a> \
         <a href=\"https://x.example/y\">e</a></p>\n"
    );
    assert_eq!(page.unlinked, ["../../LICENSE"]);
}

#[test]
fn pictures_are_in_the_page_itself() {
    let pictures = [("docs/performance/x.svg", "<svg/>")];
    assert_eq!(
        embedded(&pictures, "docs/performance/x.svg").unwrap(),
        "data:image/svg+xml;base64,PHN2Zy8+"
    );
    let page = render(
        "![x](performance/none.svg)",
        &Links::from_file("docs/PERFORMANCE.md"),
    );
    assert_eq!(page.unlinked, ["docs/performance/none.svg"]);
}

#[test]
fn markup_is_text() {
    let page = rendered("a <script>b</script>\n\n<div>c</div>\n");
    assert!(
        !page.html.contains("<script") && !page.html.contains("<div>"),
        "{}",
        page.html
    );
}

#[test]
fn tables_scroll_by_themselves() {
    let page = rendered("| a | b |\n|---|---|\n| 1 | 2 |\n");
    assert!(
        page.html
            .starts_with("<div class=\"scroll\" tabindex=\"0\"><table>"),
        "{}",
        page.html
    );
    assert!(page.html.ends_with("</table>\n</div>\n"), "{}", page.html);
    let numbers = rendered("| a |\n|--:|\n| 1 |\n").html;
    assert!(
        numbers.contains("<td class=\"number\">1</td>") && !numbers.contains("style"),
        "{numbers}"
    );
}
