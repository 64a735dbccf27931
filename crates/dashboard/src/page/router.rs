//! The addresses of the dashboard. Each answers the methods that were added, HEAD like GET, and OPTIONS; every other
//! method gets 405 with `Allow`.

use actix_web::web::{self, Payload};
use actix_web::{FromRequest, Handler, HttpRequest, HttpResponse, Resource, Responder, Route, Scope};
use intake_http::Methods;

use crate::page::error::PageError;

/// The addresses, in the order in which they are tried.
#[derive(Default)]
pub(crate) struct Pages(Vec<Address>);

struct Address {
    path: &'static str,
    methods: Methods,
    routes: Vec<Route>,
}

impl Pages {
    pub(crate) fn get<F, Args>(self, path: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(path, Methods::Get, web::get().to(handler))
    }

    pub(crate) fn post<F, Args>(self, path: &'static str, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.add(path, Methods::Post, web::post().to(handler))
    }

    fn add(mut self, path: &'static str, methods: Methods, route: Route) -> Self {
        match self.0.iter_mut().find(|address| address.path == path) {
            Some(address) => {
                address.methods = address.methods.and(methods);
                address.routes.push(route);
            }
            None => self.0.push(Address { path, methods, routes: vec![route] }),
        }
        self
    }

    /// Adds the addresses to a scope, which answers for every other path as well.
    pub(crate) fn add_to(self, scope: Scope) -> Scope {
        let scope = self.0.into_iter().fold(scope, |scope, address| scope.service(address.resource()));
        scope.default_service(web::to(not_found))
    }
}

impl Address {
    fn resource(self) -> Resource {
        let methods = self.methods;
        let resource = self.routes.into_iter().fold(intake_http::resource(self.path, methods), Resource::route);
        resource.default_service(web::to(move |request, payload| wrong_method(methods, request, payload)))
    }
}

async fn not_found(request: HttpRequest, payload: Payload) -> HttpResponse {
    if wants_page(&request) {
        HttpResponse::from_error(PageError::NotFound)
    } else {
        intake_http::not_found(request, payload).await
    }
}

async fn wrong_method(methods: Methods, request: HttpRequest, payload: Payload) -> HttpResponse {
    if wants_page(&request) {
        HttpResponse::from_error(PageError::WrongMethod(methods))
    } else {
        intake_http::wrong_method(methods, request, payload).await
    }
}

/// Browsers are answered with a page, and other programs with the API's error.
fn wants_page(request: &HttpRequest) -> bool {
    let accept = request.headers().get(actix_web::http::header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.contains("text/html")) && !request.path().starts_with("/api/")
}
