//! Access control of the servers.

use axum::http::{HeaderMap, StatusCode, Uri, header};

/// Access rule of one server.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Asked for on every address that is not loopback.
    token: Option<String>,
}

impl Access {
    /// Admits any process of this machine.
    pub(crate) const fn on_this_machine() -> Self {
        Self { token: None }
    }

    /// Admits requests with a token, which is drawn at random.
    pub(crate) fn by_token() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self { token: Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()) })
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Checks that a request may have the page, which holds no data: its host must be a name of this machine, or else a site
    /// elsewhere could have its own name lead here. The error is the status to answer with.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), StatusCode> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        match (&self.token, host) {
            (_, None) => Err(StatusCode::BAD_REQUEST),
            (Some(_), Some(_)) => Ok(()),
            (None, Some(host)) if is_loopback(host) => Ok(()),
            (None, Some(_)) => Err(StatusCode::FORBIDDEN),
        }
    }

    /// Checks that a request may have data. The error is the status to answer with.
    pub(crate) fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), StatusCode> {
        self.check_host(headers)?;
        // Browsers name the page that asks; other programs need not.
        if let Some(origin) = headers.get(header::ORIGIN) {
            let host = headers.get(header::HOST).map(|host| host.as_bytes());
            if origin.as_bytes().strip_prefix(b"http://") != host {
                return Err(StatusCode::FORBIDDEN);
            }
        }
        let Some(token) = &self.token else { return Ok(()) };
        let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        let pairs = uri.query().into_iter().flat_map(|query| query.split('&'));
        let query = pairs.filter_map(|pair| pair.strip_prefix("token=")).next();
        match bearer.or(query) {
            Some(given) if is_equal(given, token) => Ok(()),
            _ => Err(StatusCode::UNAUTHORIZED),
        }
    }
}

/// Returns whether a `Host` header names this machine, by any port.
fn is_loopback(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

/// Compares in a time that does not tell how much of it is right.
fn is_equal(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |seen, (given, own)| seen | (given ^ own));
    given.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn hosts_other_than_loopback_are_forbidden() {
        let access = Access::on_this_machine();
        let check = |host: &str| access.check(&headers(&[("host", host)]), &Uri::from_static("/socket"));
        for host in ["localhost:8420", "127.0.0.1:8420", "[::1]:8420", "localhost"] {
            assert_eq!(check(host), Ok(()), "{host}");
        }
        for host in ["evil.example:8420", "127.0.0.1.evil.example", "localhost:8420.evil.example", "::1"] {
            assert_eq!(check(host), Err(StatusCode::FORBIDDEN), "{host}");
        }
        assert_eq!(access.check(&HeaderMap::new(), &Uri::from_static("/")), Err(StatusCode::BAD_REQUEST));
    }

    #[test]
    fn other_origins_are_forbidden() {
        let access = Access::on_this_machine();
        let check = |origin: &str| {
            let headers = headers(&[("host", "localhost:8420"), ("origin", origin)]);
            access.check(&headers, &Uri::from_static("/socket"))
        };
        assert_eq!(check("http://localhost:8420"), Ok(()));
        for origin in ["http://localhost:9999", "https://localhost:8420", "http://evil.example", "null"] {
            assert_eq!(check(origin), Err(StatusCode::FORBIDDEN), "{origin}");
        }
    }

    #[test]
    fn request_without_token_is_unauthorized() {
        let access = Access::by_token().unwrap();
        let token = access.token().unwrap().to_owned();
        assert_eq!(token.len(), 32);
        assert_ne!(Access::by_token().unwrap().token(), Some(&*token));
        let host = ("host", "192.168.0.7:8420");
        let check =
            |pairs: &[(&'static str, &str)], uri: &str| access.check(&headers(pairs), &uri.parse().unwrap());
        assert_eq!(check(&[host], &format!("/socket?token={token}")), Ok(()));
        assert_eq!(check(&[host, ("authorization", &format!("Bearer {token}"))], "/metrics"), Ok(()));
        for wrong in ["", &token[1..], &format!("{token}0"), &token.replace(&token[..1], "x")] {
            let denied = Err(StatusCode::UNAUTHORIZED);
            assert_eq!(check(&[host], &format!("/socket?token={wrong}")), denied, "{wrong}");
        }
        assert_eq!(check(&[host], "/socket"), Err(StatusCode::UNAUTHORIZED));
        assert_eq!(access.check_host(&headers(&[host])), Ok(()));
    }
}
