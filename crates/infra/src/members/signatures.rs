//! The signatures of passkeys, checked by ring, which the service's TLS uses anyway.

use intake_domain::{PasskeyKey, Signatures};
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm};

/// The port [`Signatures`] over ring.
pub struct RingSignatures;

impl Signatures for RingSignatures {
    fn is_valid(&self, key: &PasskeyKey, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, key): (&'static dyn VerificationAlgorithm, _) = match key {
            PasskeyKey::P256(point) => (&ECDSA_P256_SHA256_ASN1, point),
            PasskeyKey::Ed25519(key) => (&ED25519, key),
        };
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

    use super::*;

    #[test]
    fn the_keys_own_signature_of_the_message_is_valid_and_nothing_else() {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), &random).unwrap();
        let edwards = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap();
        let p256 = PasskeyKey::P256(pair.public_key().as_ref().to_vec());
        let ed25519 = PasskeyKey::Ed25519(edwards.public_key().as_ref().to_vec());
        let by_p256 = pair.sign(&random, b"message").unwrap().as_ref().to_vec();
        let by_ed25519 = edwards.sign(b"message").as_ref().to_vec();
        for (key, own, foreign) in [(&p256, &by_p256, &by_ed25519), (&ed25519, &by_ed25519, &by_p256)] {
            assert!(RingSignatures.is_valid(key, b"message", own));
            assert!(!RingSignatures.is_valid(key, b"massage", own));
            assert!(!RingSignatures.is_valid(key, b"message", foreign));
            assert!(!RingSignatures.is_valid(key, b"message", b""));
        }
    }
}
