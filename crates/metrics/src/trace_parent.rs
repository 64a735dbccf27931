//! The header `traceparent` of W3C Trace Context: `VERSION-TRACE-PARENT-FLAGS`.

/// The flag of a trace that the caller records.
const SAMPLED: u8 = 1;

/// The span of the caller, of which a request is part. Ids are hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent<'a> {
    /// Id of the trace, 32 digits.
    pub trace_id: &'a str,
    /// Id of the caller's span, 16 digits.
    pub span_id: &'a str,
    /// True if the caller records the trace.
    pub is_sampled: bool,
}

impl<'a> TraceParent<'a> {
    /// Reads a value of the header. None: it is not well formed.
    #[must_use]
    pub fn parse(value: &'a str) -> Option<Self> {
        let mut parts = value.split('-');
        let (version, trace_id, span_id, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let is_id = |text: &str, length: usize| is_hex(text, length) && text.bytes().any(|byte| byte != b'0');
        // Later versions may have further parts.
        let is_version = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        if !(is_version && is_id(trace_id, 32) && is_id(span_id, 16) && is_hex(flags, 2)) {
            return None;
        }
        let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & SAMPLED != 0);
        Some(Self { trace_id, span_id, is_sampled })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn only_a_value_that_is_well_formed_is_read() {
        let usual = format!("00-{TRACE}-{SPAN}-01");
        let expected = |is_sampled| Some(TraceParent { trace_id: TRACE, span_id: SPAN, is_sampled });
        assert_eq!(TraceParent::parse(&usual), expected(true));
        assert_eq!(TraceParent::parse(&format!("01-{TRACE}-{SPAN}-03-more")), expected(true));
        assert_eq!(TraceParent::parse(&format!("00-{TRACE}-{SPAN}-02")), expected(false));
        for value in [
            String::new(),
            TRACE.to_owned(),
            format!("{usual}-more"),
            usual.to_uppercase(),
            usual.replacen("00", "ff", 1),
            usual.replace(TRACE, &"0".repeat(32)),
            usual.replace(SPAN, &"0".repeat(16)),
            usual.replace(TRACE, "Canary-Bird"),
        ] {
            assert_eq!(TraceParent::parse(&value), None, "{value}");
        }
    }
}
