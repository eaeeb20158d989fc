//! The files of the page.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A file of the page: its path, its type and its content.
type Asset = (&'static str, &'static str, &'static str);

const SCRIPT: &str = "text/javascript; charset=utf-8";

const ASSETS: [Asset; 12] = [
    ("/", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("/main.js", SCRIPT, include_str!("page/main.js")),
    ("/connection.js", SCRIPT, include_str!("page/connection.js")),
    ("/canvas.js", SCRIPT, include_str!("page/canvas.js")),
    ("/map.js", SCRIPT, include_str!("page/map.js")),
    ("/charts.js", SCRIPT, include_str!("page/charts.js")),
    ("/agent.js", SCRIPT, include_str!("page/agent.js")),
    ("/log.js", SCRIPT, include_str!("page/log.js")),
    ("/shown.js", SCRIPT, include_str!("page/shown.js")),
    ("/weights.js", SCRIPT, include_str!("page/weights.js")),
    ("/timeline.js", SCRIPT, include_str!("page/timeline.js")),
];

/// The page runs only its own scripts and cannot be framed.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The file at `path`, or that there is none.
pub(crate) fn response(path: &str) -> Response {
    let Some((_, kind, content)) = ASSETS.iter().find(|asset| asset.0 == path) else {
        return (StatusCode::NOT_FOUND, "there is no such page\n").into_response();
    };
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::CONTENT_TYPE, *kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    (headers, *content).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_loads_only_bundled_assets() {
        for (path, _, content) in ASSETS {
            assert!(!content.contains("https://") && !content.contains("http://"), "{path}");
            for import in content.split("from \"./").skip(1) {
                let name = import.split('"').next().unwrap();
                assert!(ASSETS.iter().any(|asset| asset.0 == format!("/{name}")), "{path} imports {name}");
            }
        }
        let index = ASSETS[0].2;
        for part in index.split("=\"/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(ASSETS.iter().any(|asset| asset.0 == format!("/{name}")), "{name}");
        }
    }

    #[test]
    fn scripts_never_make_markup_from_text() {
        for (path, _, content) in ASSETS {
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!content.contains(way), "{path} uses {way}");
            }
        }
    }
}
