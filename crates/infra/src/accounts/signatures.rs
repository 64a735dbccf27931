//! The signatures of passkeys, checked by ring, which the service's TLS uses anyway.

use intake_domain::{PasskeyKey, Signatures};
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey, VerificationAlgorithm,
};

/// The port [`Signatures`] over ring.
pub struct RingSignatures;

impl Signatures for RingSignatures {
    fn is_valid(&self, key: &PasskeyKey, message: &[u8], signature: &[u8]) -> bool {
        let (algorithm, key): (&'static dyn VerificationAlgorithm, _) = match key {
            PasskeyKey::P256(point) => (&ECDSA_P256_SHA256_ASN1, point),
            PasskeyKey::Ed25519(key) => (&ED25519, key),
            PasskeyKey::Rsa(key) => (&RSA_PKCS1_2048_8192_SHA256, key),
        };
        UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

    use super::*;

    /// A key of 2,048 bits and its signature of "message", made by OpenSSL: ring makes no such keys.
    const RSA_KEY: &str = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAkUh0pwEwpcJY1-m-kXTonggQZQ_HZnV6t_QHF8b8V8AMiKJirxq5qmGu\
         qmyUCLu9v6l798mGUTjAFWgOv50C-ms0t8IPJA9tr0Y2M7qWngTNWJMvomst7hS7kThEVU5A2Vpo1Ui_lAKxi0nOiZvu3jWFAsb6\
         rNj2ZML-AEaW_s6K7HDFaRngXH11fZx5wk43lFmn4CMKc5RB6xDeTiZhcATwBsaH_3lY5kaVk8lMhUhYE8CCVrnGG6dYN9z7ApX3\
         zL4uoGNtdVV2KYAhVMbGiNlKz_1Mx3otjPUE6tXEQ9hk7IwWZ31PVRPfD3_8s1u3Xe8n-x17yxJ1ibwBI06G8QIDAQAB";
    const BY_RSA: &str = "XrUU-r3iZU1s9fsNpR4X6hSyrx7bRECL0aKtpb2pLERb7kGkAFT9cOObHFWQjm1cBP2EgmQ1fg5T1P66fg5foAtsOCaP3-z2G0Tq\
         m3Hqt9IxtZ3HYaJXD6QdvsNIQoJIJ_Y-xZE-Y9DIyMN6pS7I-iAcRh8jn-Oaxv9vIrsFoSGvB8fE_7UU1ff5KjLn3ogYrjonzGkO\
         fZ_w_8IxU_LvDP5eUF56BdxgDW0eJ_5hVhETlkcpIxbO42DG8wH2zw6uf2MgTdYviRSbuw6h3Ar1CB0An9ppITMUidD-JfAY-9m4\
         TGdWkCFG48jv6q81bx6Lfu7ekRW-US8gTdbvMzy7Iw";

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
        let [rsa, by_rsa] = [RSA_KEY, BY_RSA].map(|text| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap());
        let rsa = PasskeyKey::from_spki(&rsa).unwrap();
        assert!(matches!(rsa, PasskeyKey::Rsa(_)));
        for (key, own, foreign) in
            [(&p256, &by_p256, &by_ed25519), (&ed25519, &by_ed25519, &by_p256), (&rsa, &by_rsa, &by_p256)]
        {
            assert!(RingSignatures.is_valid(key, b"message", own));
            assert!(!RingSignatures.is_valid(key, b"massage", own));
            assert!(!RingSignatures.is_valid(key, b"message", foreign));
            assert!(!RingSignatures.is_valid(key, b"message", b""));
        }
    }
}
