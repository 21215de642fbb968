//! The resources below `/.thalweg`.

use super::{FigureSource, to_document, to_open_metrics};
use crate::interaction::handler::{ClassId, Function};
use crate::interaction::routes::Routes;
use crate::message::{CoapRequest, Code, Response, content_format};
use crate::resource::representation::negotiate;

/// All figures as JSON or CBOR.
pub const STATISTICS_PATH: &str = "/.thalweg/statistics";
/// All figures as OpenMetrics.
pub const METRICS_PATH: &str = "/.thalweg/metrics";

/// Adds the figures as resources; `/.well-known/core` does not list them.
pub fn add_resources(routes: Routes, source: &FigureSource) -> Routes {
    let (for_statistics, for_metrics) = (source.clone(), source.clone());
    // Reading them looks at every thread, so it does not run on the receiver.
    routes
        .add_hidden(
            STATISTICS_PATH,
            Function::pooled(ClassId::BLOCKING, move |request| statistics(&for_statistics, request)),
        )
        .add_hidden(METRICS_PATH, Function::pooled(ClassId::BLOCKING, move |request| metrics(&for_metrics, request)))
}

fn statistics(source: &FigureSource, request: &CoapRequest<'_>) -> Response {
    if request.code != Code::GET {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    let Ok(format) = negotiate(&[content_format::JSON, content_format::CBOR], request.accept()) else {
        return Response::new(Code::NOT_ACCEPTABLE);
    };
    let Some(figures) = source.read() else { return not_yet() };
    let document = to_document(&figures);
    let written = if format == content_format::JSON { document.to_json() } else { document.to_cbor() };
    match written {
        Ok(bytes) => Response::content(bytes, format).with_max_age(1),
        Err(error) => Response::error(Code::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn metrics(source: &FigureSource, request: &CoapRequest<'_>) -> Response {
    if request.code != Code::GET {
        return Response::new(Code::METHOD_NOT_ALLOWED);
    }
    if request.accept().is_some_and(|format| format != content_format::TEXT) {
        return Response::new(Code::NOT_ACCEPTABLE);
    }
    let Some(figures) = source.read() else { return not_yet() };
    Response::content(to_open_metrics(&figures), content_format::TEXT).with_max_age(1)
}

fn not_yet() -> Response {
    Response::error(Code::SERVICE_UNAVAILABLE, "the server starts").with_max_age(1)
}
