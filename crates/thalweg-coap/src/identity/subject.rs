//! The subject of a certificate.

use x509_cert::Certificate;
use x509_cert::der::Decode;

/// The subject of a certificate in DER, in the order and with the escapes of RFC 4514; `None` for what is no certificate.
pub(crate) fn read(der: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    Some(certificate.tbs_certificate().subject().to_string())
}
