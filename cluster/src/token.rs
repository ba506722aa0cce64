//! The secret that all parts of a cluster share. Who does not know it, or is of another build, is refused.
//!
//! It travels in the `user-agent` of every request, which is the one header that the engine lets all of its clients set. It also
//! stands before every plan: the engine's server for tasks takes no check of ours, but has to decode plans with our codec.
use std::{env, fmt, sync::Arc};

use ballista_core::extension::EndpointOverrideFn;
use quietly::{Build, Foreign, Key};
use subtle::ConstantTimeEq;
use tonic::{Request, Status, service::Interceptor, transport::Endpoint};

/// The variable that holds it.
pub(crate) const VARIABLE: &str = "QUIETLY_CLUSTER_TOKEN";
/// Its bytes: 256 bits.
pub(crate) const LENGTH: usize = 32;
/// What our requests begin with.
const AGENT: &str = "quietly-cluster ";

#[derive(Clone)]
pub(crate) struct Token([u8; LENGTH]);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A new one, from the operating system.
    pub(crate) fn fresh() -> Result<Self, String> {
        let key = Key::from_os().map_err(|e| e.to_string())?;
        let secret = key.stream("the token of a cluster").secret();
        secret.as_slice().try_into().map(Token).map_err(|_| "no token of 256 bits".into())
    }

    /// The one that the variable holds, if it is set.
    pub(crate) fn given() -> Result<Option<Self>, String> {
        match env::var(VARIABLE) {
            Ok(text) => Token::from_hex(text.trim()).map(Some).ok_or_else(|| {
                format!("{VARIABLE} must be the 64 hexadecimal digits that the scheduler printed")
            }),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(_) => Err(format!("{VARIABLE} must be 64 hexadecimal digits")),
        }
    }

    /// The same, where it must be set.
    pub(crate) fn wanted() -> Result<Self, String> {
        Token::given()?.ok_or_else(|| {
            format!(
                "{VARIABLE} is not set: it holds the token that `quietly-cluster scheduler` printed"
            )
        })
    }

    pub(crate) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_hex(text: &str) -> Option<Self> {
        let good = text.len() == 2 * LENGTH && text.bytes().all(|b| b.is_ascii_hexdigit());
        let byte = |k: usize| u8::from_str_radix(&text[2 * k..2 * k + 2], 16).ok();
        let bytes: Option<Vec<u8>> = good.then(|| (0..LENGTH).map(byte).collect())?;
        bytes?.try_into().ok().map(Token)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether these bytes are the token, in a time that does not depend on where they differ.
    pub(crate) fn is(&self, bytes: &[u8]) -> bool {
        self.0.ct_eq(bytes).into()
    }

    /// What all clients of the engine do with a connection before it is made.
    pub(crate) fn endpoint(&self) -> EndpointOverrideFn {
        let agent = self.agent();
        Arc::new(move |endpoint: Endpoint| Ok(endpoint.user_agent(agent.clone())?))
    }

    fn agent(&self) -> String {
        format!("{AGENT}{} {}", self.hex(), Build::this().line())
    }

    /// Why a request is refused, by its `user-agent`, to which the engine adds a word of its own.
    fn check(&self, agent: &str) -> Result<(), Status> {
        let stranger = || Status::unauthenticated("this cluster of quietly needs its token");
        let rest = agent.strip_prefix(AGENT).ok_or_else(stranger)?;
        let (hex, rest) = rest.split_once(' ').ok_or_else(stranger)?;
        if !Token::from_hex(hex).is_some_and(|token| self.is(token.bytes())) {
            return Err(stranger());
        }
        let line = rest.split_once(" tonic/").map_or(rest, |(line, _)| line);
        match Build::from_line(line) {
            Some(build) if build == Build::this() => Ok(()),
            Some(other) => Err(Status::failed_precondition(Foreign::Build(other).to_string())),
            None => Err(Status::failed_precondition(Foreign::Bytes.to_string())),
        }
    }
}

/// Stands before a server of the engine.
#[derive(Clone)]
pub(crate) struct Gate(pub(crate) Token);

impl Interceptor for Gate {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let agent = request.metadata().get("user-agent").and_then(|value| value.to_str().ok());
        self.0.check(agent.unwrap_or_default()).map(|()| request)
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    #[test]
    fn a_token_is_256_random_bits_and_never_printed() {
        let (one, two) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        assert!(one.hex().len() == 64 && one.hex() != two.hex());
        assert!(Token::from_hex(&one.hex()).unwrap().is(one.bytes()) && !one.is(two.bytes()));
        assert!(!one.is(&one.bytes()[..31]) && !one.is(&[]));
        assert_eq!(format!("{one:?}"), "Token(..)");
        for bad in ["", "00", &"g".repeat(64), &"é".repeat(32), &"0".repeat(65)] {
            assert!(Token::from_hex(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn requests_need_the_token_and_this_build() {
        let (token, other) = (Token::fresh().unwrap(), Token::fresh().unwrap());
        let sent = |token: &Token| format!("{} tonic/0.14.9", token.agent());
        assert!(token.check(&sent(&token)).is_ok());
        for agent in ["", "tonic/0.14.9", AGENT, &sent(&other), &sent(&token)[..60]] {
            assert_eq!(token.check(agent).unwrap_err().code(), Code::Unauthenticated, "{agent}");
        }
        let line = Build::this().line();
        let last = line.rsplit_once(' ').unwrap().1;
        let error = token.check(&sent(&token).replace(last, "00000000deadbeef")).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition);
        assert!(error.message().contains("sources 00000000deadbeef"), "{}", error.message());
    }
}
