//! How long requests took, by route and by the first digit of their status. The routes of the interface have counters
//! of their own, so that a create takes no lock for them.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use actix_web::http::StatusCode;
use intake_metrics::{Histogram, Kind, LATENCIES, MetricsText, Unit};

use crate::route_name::{API_ROUTES, Route};

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The times of all requests.
pub(crate) struct RequestTimes {
    api: [ByClass; API_ROUTES.len()],
    others: RwLock<BTreeMap<String, ByClass>>,
}

struct ByClass([Histogram<{ LATENCIES.len() }>; CLASSES.len()]);

impl RequestTimes {
    pub(crate) const fn new() -> Self {
        Self { api: [const { ByClass::new() }; API_ROUTES.len()], others: RwLock::new(BTreeMap::new()) }
    }

    /// Counts a request.
    pub(crate) fn observe(&self, route: &Route, status: StatusCode, time: Duration) {
        if let Route::Api(index) = route {
            return self.api.get(*index).into_iter().for_each(|times| times.observe(status, time));
        }
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(times) = others.get(route.as_str()) {
            return times.observe(status, time);
        }
        drop(others);
        // The service has few routes, so this happens a few times.
        let mut others = self.others.write().unwrap_or_else(PoisonError::into_inner);
        others.entry(route.as_str().to_owned()).or_insert_with(ByClass::new).observe(status, time);
    }

    /// Writes all histograms that have counted anything.
    pub(crate) fn write(&self, text: &mut MetricsText) {
        let help = "How long requests took, from their head to their answer, by route and status class.";
        let mut family = text.family("intake_request_duration_seconds", help, Kind::Histogram);
        let others = self.others.read().unwrap_or_else(PoisonError::into_inner);
        let others = others.iter().map(|(route, times)| (route.as_str(), times));
        for (route, times) in API_ROUTES.into_iter().zip(&self.api).chain(others) {
            for (class, histogram) in CLASSES.into_iter().zip(&times.0) {
                if !histogram.is_empty() {
                    histogram.write(&mut family, &[("route", route), ("status", class)]);
                }
            }
        }
    }
}

impl ByClass {
    const fn new() -> Self {
        Self([const { Histogram::new(Unit::Seconds, &LATENCIES) }; CLASSES.len()])
    }

    fn observe(&self, status: StatusCode, time: Duration) {
        let class = usize::from(status.as_u16() / 100).checked_sub(1);
        if let Some(histogram) = class.and_then(|class| self.0.get(class)) {
            histogram.observe_time(time);
        }
    }
}
