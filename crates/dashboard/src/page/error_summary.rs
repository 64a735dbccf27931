//! What says that a form was refused to readers who do not see the whole page: a title that begins with "Error:", and
//! above a form with several faults their list, which gets the focus. Each fault leads to its field. Made from the
//! rendered page, so that no form can forget it.

/// Begins the message about a field.
const FAULT: &str = "<p class=\"error\" id=\"";

/// The page of a refused form.
pub(crate) fn with_error_summary(page: &str) -> String {
    let page = page.replacen("<title>", "<title>Error: ", 1);
    let faults: Vec<_> = page.split(FAULT).skip(1).filter_map(|rest| fault(&page, rest)).collect();
    let (true, Some((before, after))) = (faults.len() > 1, page.split_once("</h1>")) else { return page };
    let links: String =
        faults.iter().map(|(field, text)| format!("<li><a href=\"#{field}\">{text}</a></li>")).collect();
    format!(
        "{before}</h1>\n<div class=\"alert\" role=\"alert\" tabindex=\"-1\" autofocus>\
         <p><strong>Check {} fields:</strong></p><ul>{links}</ul></div>{after}",
        faults.len()
    )
}

/// The field on the page and what is wrong with it, from what follows the beginning of its message.
fn fault<'a>(page: &str, rest: &'a str) -> Option<(&'a str, &'a str)> {
    let (id, rest) = rest.split_once('"')?;
    let text = rest.split_once('>')?.1.split("</p>").next()?;
    let field = id.strip_suffix("-error").filter(|field| page.contains(&format!(" id=\"{field}\"")))?;
    Some((field, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "<title>Create · intake</title><h1>Create</h1>\
        <input id=\"name\"><p class=\"error\" id=\"name-error\">The name must not be blank.</p>\
        <input id=\"expires\"><p class=\"error\" id=\"expires-error\" role=\"alert\">Enter a date.</p>";

    #[test]
    fn several_faults_are_listed_above_the_form_and_lead_to_their_fields() {
        let page = with_error_summary(PAGE);
        assert!(
            page.starts_with("<title>Error: Create · intake</title><h1>Create</h1>\n<div class=\"alert\""),
            "{page}"
        );
        let list = "<strong>Check 2 fields:</strong></p><ul><li><a href=\"#name\">The name must not be blank.</a></li>\
            <li><a href=\"#expires\">Enter a date.</a></li></ul>";
        assert!(page.contains(list), "{page}");
    }

    #[test]
    fn a_single_fault_is_beside_its_field_alone() {
        let page = PAGE.replace("<p class=\"error\" id=\"expires", "<p id=\"expires").replace("<h1>", "<h1 id=\"a\">");
        assert_eq!(with_error_summary(&page), page.replace("<title>", "<title>Error: "));
    }
}
