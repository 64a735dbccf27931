//! The page Help, for people at a clinic: in the menu, for everybody to read, and the guide word for word.

use intake_test_support::{Browser, request};

use crate::dashboard::layout::page_width;
use crate::fixtures::{Member, TestApp};

const GUIDE: &str = include_str!("../../../../../docs/clinics.md");

/// The page without what screen readers pass over.
fn without_icons(page: &str) -> String {
    let (first, parts) = page.split_once("<svg class=\"icon\"").unwrap();
    let words = parts.split("<svg class=\"icon\"").map(|part| part.split_once("</svg>").unwrap().1);
    [first].into_iter().chain(words).collect()
}

#[test]
fn help_is_in_the_menu_of_every_role_and_holds_the_guide_for_clinics() {
    let app = TestApp::start();
    let ada = app.member("ada@clinic.example");
    let grace = ada.invite_as("grace@clinic.example", "key-manager");
    let grace = Member::join(app.service.client(), &grace, "Grace");
    for member in [&ada, &grace] {
        assert!(without_icons(&member.get("/settings/api-keys").text()).contains("<a href=\"/help\">Help</a>"));
        let page = without_icons(&member.get("/help").text());
        assert!(page.contains("<a href=\"/help\" aria-current=\"page\">Help</a>"), "{page}");
    }
    let stranger = app.service.client().send(&request("GET", "/help", &[], b""));
    let page = stranger.text();
    assert!(stranger.status == 200 && page.contains("<a href=\"/sign-in\">Sign in</a>"), "{page}");
    assert!(!page.contains("Sign out"), "{page}");
    let headings: Vec<_> = GUIDE.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    assert!(headings.len() > 5, "{headings:?}");
    for heading in headings {
        let id = heading.to_lowercase().replace(' ', "-");
        assert!(page.contains(&format!("<h2 id=\"{id}\">")), "{id}: {page}");
        assert!(page.contains(&format!("<li><a href=\"#{id}\">{heading}</a></li>")), "{id}: {page}");
    }
    // Each link of the guide leads somewhere for a reader of the page.
    let links = GUIDE.split("](").skip(1).filter(|link| !link.starts_with("images/"));
    assert!(links.clone().count() > 0 && links.clone().all(|link| link.starts_with("https://")));
    let pictures: Vec<_> = page.split('"').filter(|part| part.starts_with("/assets/help-")).collect();
    assert_eq!(pictures.len(), 2 * GUIDE.matches("](images/").count(), "light and dark: {pictures:?}");
    for picture in pictures {
        let served = app.service.client().send(&request("GET", picture, &[], b""));
        assert_eq!((served.status, served.header("content-type")), (200, Some("image/png")), "{picture}");
    }
}

#[test]
fn help_is_no_wider_than_any_screen() {
    for browser in Browser::each() {
        let app = TestApp::start();
        browser.open(&app.url("/help"));
        for width in [320, 768, 1_280] {
            browser.on_a_screen(width);
            intake_test_support::wait_for(&format!("a page of {width} px in {browser:?}"), || {
                page_width(&browser) <= u64::from(width)
            });
        }
    }
}
