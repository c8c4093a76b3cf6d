//! Paths, and the templates of routes.

/// The variable parts of a path; a path has at most two.
pub type Ids<'a> = [&'a str; 2];

/// Whether `path` equals `part` or is below it.
pub fn is_under(path: &str, part: &str) -> bool {
    path.strip_prefix(part)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The parts of `path` at the template's variables; `None` if the path does not match.
pub fn capture<'a>(mut template: &str, mut path: &'a str) -> Option<Ids<'a>> {
    let mut ids = [""; 2];
    let mut places = ids.iter_mut();
    while let Some((literal, variable)) = template.split_once('{') {
        path = path.strip_prefix(literal)?;
        let (id, rest) = path.find('/').map_or((path, ""), |end| path.split_at(end));
        if id.is_empty() {
            return None;
        }
        *places.next()? = id;
        (template, path) = (variable.split_once('}')?.1, rest);
    }
    (template == path).then_some(ids)
}
