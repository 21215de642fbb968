//! Method and response codes.

use std::fmt;

/// The code of a request or response: three bits of class and five of detail, written `c.dd` (RFC 7252 §12.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(u8);

/// Codes with their names, for people.
const NAMES: [(Code, &str); 35] = [
    (Code::EMPTY, "Empty"),
    (Code::GET, "GET"),
    (Code::POST, "POST"),
    (Code::PUT, "PUT"),
    (Code::DELETE, "DELETE"),
    (Code::FETCH, "FETCH"),
    (Code::PATCH, "PATCH"),
    (Code::IPATCH, "iPATCH"),
    (Code::CREATED, "Created"),
    (Code::DELETED, "Deleted"),
    (Code::VALID, "Valid"),
    (Code::CHANGED, "Changed"),
    (Code::CONTENT, "Content"),
    (Code::CONTINUE, "Continue"),
    (Code::BAD_REQUEST, "Bad Request"),
    (Code::UNAUTHORIZED, "Unauthorized"),
    (Code::BAD_OPTION, "Bad Option"),
    (Code::FORBIDDEN, "Forbidden"),
    (Code::NOT_FOUND, "Not Found"),
    (Code::METHOD_NOT_ALLOWED, "Method Not Allowed"),
    (Code::NOT_ACCEPTABLE, "Not Acceptable"),
    (Code::REQUEST_ENTITY_INCOMPLETE, "Request Entity Incomplete"),
    (Code::CONFLICT, "Conflict"),
    (Code::PRECONDITION_FAILED, "Precondition Failed"),
    (Code::REQUEST_ENTITY_TOO_LARGE, "Request Entity Too Large"),
    (Code::UNSUPPORTED_CONTENT_FORMAT, "Unsupported Content-Format"),
    (Code::UNPROCESSABLE_ENTITY, "Unprocessable Entity"),
    (Code::TOO_MANY_REQUESTS, "Too Many Requests"),
    (Code::INTERNAL_SERVER_ERROR, "Internal Server Error"),
    (Code::NOT_IMPLEMENTED, "Not Implemented"),
    (Code::BAD_GATEWAY, "Bad Gateway"),
    (Code::SERVICE_UNAVAILABLE, "Service Unavailable"),
    (Code::GATEWAY_TIMEOUT, "Gateway Timeout"),
    (Code::PROXYING_NOT_SUPPORTED, "Proxying Not Supported"),
    (Code::HOP_LIMIT_REACHED, "Hop Limit Reached"),
];

impl Code {
    /// 0.00: neither request nor response.
    pub const EMPTY: Code = Code::new(0, 0);
    /// 0.01: retrieves a representation.
    pub const GET: Code = Code::new(0, 1);
    /// 0.02: has the enclosed representation processed.
    pub const POST: Code = Code::new(0, 2);
    /// 0.03: creates or replaces the resource.
    pub const PUT: Code = Code::new(0, 3);
    /// 0.04: deletes the resource.
    pub const DELETE: Code = Code::new(0, 4);
    /// 0.05: retrieves the data that the payload describes (RFC 8132 §2).
    pub const FETCH: Code = Code::new(0, 5);
    /// 0.06: changes a part of the resource (RFC 8132 §3).
    pub const PATCH: Code = Code::new(0, 6);
    /// 0.07: changes a part of the resource, with the same effect when repeated (RFC 8132 §3).
    pub const IPATCH: Code = Code::new(0, 7);
    /// 2.01
    pub const CREATED: Code = Code::new(2, 1);
    /// 2.02
    pub const DELETED: Code = Code::new(2, 2);
    /// 2.03: the representation that the client's ETag names is still right.
    pub const VALID: Code = Code::new(2, 3);
    /// 2.04
    pub const CHANGED: Code = Code::new(2, 4);
    /// 2.05
    pub const CONTENT: Code = Code::new(2, 5);
    /// 2.31: the block arrived, more are expected (RFC 7959 §2.9.1).
    pub const CONTINUE: Code = Code::new(2, 31);
    /// 4.00
    pub const BAD_REQUEST: Code = Code::new(4, 0);
    /// 4.01; with an Echo option: repeat the request with it (RFC 9175 §2.3).
    pub const UNAUTHORIZED: Code = Code::new(4, 1);
    /// 4.02: a critical option was not understood.
    pub const BAD_OPTION: Code = Code::new(4, 2);
    /// 4.03
    pub const FORBIDDEN: Code = Code::new(4, 3);
    /// 4.04
    pub const NOT_FOUND: Code = Code::new(4, 4);
    /// 4.05
    pub const METHOD_NOT_ALLOWED: Code = Code::new(4, 5);
    /// 4.06
    pub const NOT_ACCEPTABLE: Code = Code::new(4, 6);
    /// 4.08: blocks of the request are missing (RFC 7959 §2.9.2).
    pub const REQUEST_ENTITY_INCOMPLETE: Code = Code::new(4, 8);
    /// 4.09 (RFC 8132 §3.4)
    pub const CONFLICT: Code = Code::new(4, 9);
    /// 4.12
    pub const PRECONDITION_FAILED: Code = Code::new(4, 12);
    /// 4.13
    pub const REQUEST_ENTITY_TOO_LARGE: Code = Code::new(4, 13);
    /// 4.15
    pub const UNSUPPORTED_CONTENT_FORMAT: Code = Code::new(4, 15);
    /// 4.22 (RFC 8132 §3.4)
    pub const UNPROCESSABLE_ENTITY: Code = Code::new(4, 22);
    /// 4.29: this client asks too often; Max-Age says when to come back (RFC 8516).
    pub const TOO_MANY_REQUESTS: Code = Code::new(4, 29);
    /// 5.00
    pub const INTERNAL_SERVER_ERROR: Code = Code::new(5, 0);
    /// 5.01
    pub const NOT_IMPLEMENTED: Code = Code::new(5, 1);
    /// 5.02: the answer of another server is invalid.
    pub const BAD_GATEWAY: Code = Code::new(5, 2);
    /// 5.03: overloaded; Max-Age says when to come back.
    pub const SERVICE_UNAVAILABLE: Code = Code::new(5, 3);
    /// 5.04
    pub const GATEWAY_TIMEOUT: Code = Code::new(5, 4);
    /// 5.05
    pub const PROXYING_NOT_SUPPORTED: Code = Code::new(5, 5);
    /// 5.08: the request has passed too many proxies (RFC 8768 §6.1).
    pub const HOP_LIMIT_REACHED: Code = Code::new(5, 8);

    /// The code `class.detail`; the class keeps three bits, the detail five.
    pub const fn new(class: u8, detail: u8) -> Code {
        Code((class & 7) << 5 | (detail & 31))
    }

    /// The code that `byte` stands for on the wire.
    pub const fn from_byte(byte: u8) -> Code {
        Code(byte)
    }

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        self.0
    }

    /// 0 for requests, 2 for success, 4 for errors of the client, 5 for errors of the server.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// The two digits after the dot.
    pub const fn detail(self) -> u8 {
        self.0 & 31
    }

    /// True for methods.
    pub const fn is_request(self) -> bool {
        self.class() == 0 && self.detail() != 0
    }

    /// True for classes 2, 4 and 5.
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }

    /// True for class 2.
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// True for methods that change nothing, so that running them again for a duplicate does no harm
    /// (RFC 7252 §5.1 and §4.5).
    pub const fn is_safe(self) -> bool {
        matches!(self, Code::GET | Code::FETCH)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.class(), self.detail())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")?;
        match NAMES.iter().find(|(code, _)| code == self) {
            Some((_, name)) => write!(formatter, " {name}"),
            None => Ok(()),
        }
    }
}
